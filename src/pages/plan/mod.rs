//! The page of `toolq plan --format html`: what would run, in which batches, when, and why.

mod planned_row;

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::pages::plan::planned_row::{PlannedRow, PlannedState};
use crate::pages::time_axis::{
    RowLook, TimeAxis, axis_row, bar_patterns, details_panel, text_limit_after,
};
use crate::pages::{CHUNK_ROWS, Page, filter_form, visible_text};
use redact::Mask;
use toolq_core::json::expect_json;
use toolq_core::plan::{ABANDONED_HEADING, REMEMBERED_HEADING, REPEATS_HEADING, TurnPlan};

/// A browser lays out this many turns or batches at once. They may have a single call each.
const CHUNK_HEADINGS: usize = 50;

/// The page, to which turns are added.
#[derive(Default)]
pub(crate) struct PlanPage {
    turns: Vec<PlannedTurnView>,
    /// How much text the calls have together, in bytes.
    text_bytes: usize,
}

/// A turn of the plan.
struct PlannedTurnView {
    title: String,
    /// How long it takes, if something runs.
    duration: Option<String>,
    /// The times of its bars, unless they are unknown.
    axis: Option<TimeAxis>,
    batches: Vec<BatchView>,
}

/// The calls below one heading.
struct BatchView {
    heading: String,
    /// What decided the safety of all of them.
    safety: String,
    rows: Vec<PlannedRow>,
}

impl BatchView {
    /// Creates the view of calls that aren't planned, if there are any.
    fn without_safety(heading: Option<String>, rows: Vec<PlannedRow>) -> Option<Self> {
        let heading = heading.filter(|_| !rows.is_empty())?;
        Some(Self {
            heading,
            safety: String::new(),
            rows,
        })
    }
}

impl PlanPage {
    /// Adds the plan of a turn.
    pub(crate) fn add_turn(&mut self, plan: &TurnPlan<'_>, mask: &Mask) {
        let mut batches: Vec<BatchView> = Vec::new();
        for (number, batch) in plan.batches.iter().enumerate() {
            if batch.calls.is_empty() {
                continue;
            }
            let mut rows = Vec::new();
            for planned in &batch.calls {
                let limit = text_limit_after(self.text_bytes);
                let row = PlannedRow::of_planned(planned, plan, mask, limit);
                self.text_bytes += row.details.text_bytes();
                rows.push(row);
            }
            batches.push(BatchView {
                heading: plan.batch_heading(number),
                safety: plan.common_safety(number).unwrap_or_default(),
                rows,
            });
        }
        let mut rows = Vec::new();
        for rejected in &plan.rejected {
            let limit = text_limit_after(self.text_bytes);
            let row = PlannedRow::of_rejected(rejected, plan.turn, mask, limit);
            self.text_bytes += row.details.text_bytes();
            rows.push(row);
        }
        batches.extend(BatchView::without_safety(plan.rejected_heading(), rows));
        let remembered = plan.remembered.iter();
        let remembered = remembered.map(|call| PlannedRow::of_remembered(call, plan.turn, mask));
        batches.extend(BatchView::without_safety(
            Some(REMEMBERED_HEADING.to_owned()),
            remembered.collect(),
        ));
        let repeats = plan.repeats.iter();
        let repeats = repeats.map(|(call, of)| PlannedRow::of_repeat(call, *of, plan.turn, mask));
        batches.extend(BatchView::without_safety(
            Some(REPEATS_HEADING.to_owned()),
            repeats.collect(),
        ));
        let abandoned = plan.abandoned.iter();
        let abandoned = abandoned.map(|call| PlannedRow::of_abandoned(call, plan.turn, mask));
        batches.extend(BatchView::without_safety(
            Some(ABANDONED_HEADING.to_owned()),
            abandoned.collect(),
        ));
        self.turns.push(PlannedTurnView {
            title: plan.title(),
            duration: plan
                .planned_calls()
                .next()
                .is_some()
                .then(|| plan.duration_line(mask)),
            axis: turn_axis(plan),
            batches,
        });
    }

    /// Returns the page for a plan with the tools of `tools_path`.
    pub(crate) fn into_html(self, tools_path: &str) -> String {
        let rows = || self.turns.iter().flat_map(|turn| &turn.batches);
        let rows = || rows().flat_map(|batch| &batch.rows);
        let has = |state: &PlannedState| rows().any(|row| row.state == *state);
        let states: Vec<PlannedState> = PlannedState::ALL.into_iter().filter(has).collect();
        let details: BTreeMap<&str, _> = rows().map(|row| (&*row.key, &row.details)).collect();
        let body = html! {
            (bar_patterns())
            header {
                h1 { "toolq plan: what would run" }
                p.path { "With " (visible_text(tools_path)) ". Nothing has run; all times are estimates." }
                (filter_form(rows().map(|row| row.tool_name.as_str()), states.iter().map(|state| state.label())))
            }
            main.plan {
                (legend(&states, rows().any(PlannedRow::lacks_estimate)))
                @for turns in self.turns.chunks(CHUNK_HEADINGS) {
                    div.lazy[turns.len() == CHUNK_HEADINGS] { @for turn in turns { (turn_view(turn)) } }
                }
                p #none hidden { "No call matches the filter." }
            }
            (details_panel("what it runs, its input, and why it runs when it does"))
            noscript { p { "The calls are listed above; what they run needs scripts." } }
        };
        Page {
            title: "toolq plan".to_owned(),
            body,
            data: expect_json(serde_json::to_string(&details)),
            script: concat!(include_str!("../filter.js"), include_str!("../calls.js")),
            reload_after: None,
        }
        .into_html()
    }
}

/// Returns the times from the beginning of a turn to its end.
fn turn_axis(plan: &TurnPlan<'_>) -> Option<TimeAxis> {
    let planned_ms = u64::try_from(plan.estimate.planned.as_millis()).ok()?;
    (planned_ms > 0).then(|| TimeAxis::new([(0, planned_ms)]))
}

fn turn_view(turn: &PlannedTurnView) -> Markup {
    html! {
        article {
            h2.turn { (visible_text(&turn.title)) }
            @if let Some(line) = &turn.duration { p.totals { (visible_text(line)) } }
            @if let Some(axis) = &turn.axis { (axis_row(axis, false)) }
            @for batches in turn.batches.chunks(CHUNK_HEADINGS) {
                div.lazy[batches.len() == CHUNK_HEADINGS] {
                    @for batch in batches { (batch_view(batch)) }
                }
            }
        }
    }
}

fn batch_view(batch: &BatchView) -> Markup {
    html! {
        section {
            h3 {
                (visible_text(&batch.heading))
                @if !batch.safety.is_empty() { span { " (" (visible_text(&batch.safety)) ")" } }
            }
            @for chunk in batch.rows.chunks(CHUNK_ROWS) {
                ol.lazy[chunk.len() == CHUNK_ROWS] { @for row in chunk { (row.markup()) } }
            }
        }
    }
}

/// Explains the marks of the states that the page has, and the bars that it has.
fn legend(states: &[PlannedState], some_lack_estimates: bool) -> Markup {
    let may_need_approval = states.contains(&PlannedState::NeedsApproval);
    let bar = |state: &str, class: &str, meaning: &str| {
        html! { span class=(state) { svg aria-hidden="true" { rect class=(class) width="100%" {} } " " (meaning) } }
    };
    let state = |state: &PlannedState| {
        let RowLook { class, mark } = state.look();
        html! { span class=(class) { span.state { (mark) " " (state.label()) } (state.meaning()) } }
    };
    html! {
        p.legend { @for one in states { (state(one)) } }
        p.legend {
            (bar("planned", "run", "time by `estimate` in tools.yaml"))
            @if may_need_approval { (bar("approval", "run", "the same, once it is approved")) }
            @if some_lack_estimates { (bar("", "never", "starts here, no estimate")) }
        }
    }
}
