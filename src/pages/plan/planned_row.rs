//! The row of a call on the page of a plan.

use std::time::Duration;

use maud::{Markup, html};

use crate::pages::time_axis::{CallDetails, RowLook, cut_text};
use crate::pages::visible_text;
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::plan::{
    PlannedCall, REMEMBERED_HEADING, RejectedCall, RememberedCall, TurnPlan, render_invocation,
    render_sandbox,
};
use toolq_core::text::format_duration;
use toolq_core::types::{Call, Effect, OutcomeKind};

/// The narrowest bar that can be seen and pointed at, in percent of the turn.
const MIN_BAR_PERCENT: f64 = 0.35;
/// How much a row shows of an input, and of what it runs, in bytes. The details have more.
const MAX_ROW_BYTES: usize = 2_000;
/// How much is shown of the input of a call that doesn't run, in bytes.
const MAX_IDLE_INPUT_BYTES: usize = 1_000;
const MORE: &str = "`toolq plan --format json` has more";

/// A call on the page.
pub(super) struct PlannedRow {
    /// Names the row, and its details: `0-3` for call 3 of turn 0.
    pub(super) key: String,
    pub(super) tool_name: String,
    pub(super) state: PlannedState,
    pub(super) details: CallDetails<'static>,
    tool_use_id: String,
    /// Its input, unless that is very long.
    input: String,
    /// What it runs.
    runs: String,
    position: usize,
    /// How long it takes.
    took: String,
    /// Why it was rejected.
    problem: String,
    /// Where its bar begins and how long it is, in percent of the turn. Without a length, it is unknown.
    bar: Option<(f64, Option<f64>)>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedState {
    Reads,
    Repeatable,
    Changes,
    NeedsApproval,
    Rejected,
    Skipped,
    Remembered,
    InDoubt,
    Repeated,
    Abandoned,
}

impl PlannedState {
    pub(super) const ALL: [Self; 10] = [
        Self::Reads,
        Self::Repeatable,
        Self::Changes,
        Self::NeedsApproval,
        Self::Rejected,
        Self::Skipped,
        Self::Remembered,
        Self::InDoubt,
        Self::Repeated,
        Self::Abandoned,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Reads => Effect::Read.verb(),
            Self::Repeatable => Effect::Idempotent.verb(),
            Self::Changes => Effect::Write.verb(),
            Self::NeedsApproval => "needs approval",
            Self::Rejected => OutcomeKind::Rejected.label(),
            Self::Skipped => OutcomeKind::Skipped.label(),
            Self::Remembered => REMEMBERED_HEADING,
            Self::InDoubt => "in doubt",
            Self::Repeated => "sent twice",
            Self::Abandoned => "abandoned",
        }
    }

    /// Says what the label means.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Reads => "changes nothing",
            Self::Repeatable => "may run again without harm",
            Self::Changes => "changes something, and runs once",
            Self::NeedsApproval => "would run once somebody approves it",
            Self::Rejected => "could not run as it was requested",
            Self::Skipped => "would be answered without running",
            Self::Remembered => "is answered with what an earlier run knows of it",
            Self::InDoubt => "may have run before, so it doesn't run until it is settled",
            Self::Repeated => "has the result of the call that it repeats",
            Self::Abandoned => "gets no result: the conversation went on without one",
        }
    }

    pub(super) fn look(self) -> RowLook {
        match self {
            Self::Reads => RowLook::new("planned", "○"),
            Self::Repeatable => RowLook::new("planned", "◐"),
            Self::Changes => RowLook::new("changes", "●"),
            Self::NeedsApproval => RowLook::new("approval", "?"),
            Self::Rejected => RowLook::new("rejected", "⊘"),
            Self::Skipped => RowLook::new("skipped", "◇"),
            Self::Remembered => RowLook::new("skipped", "↩"),
            Self::InDoubt => RowLook::new("approval", "!"),
            Self::Repeated => RowLook::new("skipped", "↺"),
            Self::Abandoned => RowLook::new("skipped", "–"),
        }
    }
}

impl PlannedRow {
    /// `limit` is how long its input and what it runs may be, in bytes.
    pub(super) fn of_planned(
        planned: &PlannedCall<'_>,
        plan: &TurnPlan<'_>,
        mask: &Mask,
        limit: usize,
    ) -> Self {
        let accepted = planned.accepted;
        let state = match accepted.tool.effect {
            _ if planned.waits_for_approval() => PlannedState::NeedsApproval,
            Effect::Read => PlannedState::Reads,
            Effect::Idempotent => PlannedState::Repeatable,
            Effect::Write => PlannedState::Changes,
        };
        let estimate = accepted.tool.estimate;
        let mut facts = vec![planned.call.id.clone(), planned.safety()];
        facts.extend(planned.notes(plan));
        facts.push(format!("effect: {}", accepted.tool.effect.name()));
        facts.push(format!(
            "timeout {}",
            format_duration(accepted.tool.timeout.after)
        ));
        let input = mask.apply(accepted.input.text()).into_owned();
        let runs = render_invocation(accepted, mask).unwrap_or_else(|| "no backing".to_owned());
        let mut details = vec![
            ("call", facts_line(&facts, planned.call, mask)),
            ("runs", cut_text(&runs, limit, MORE)),
        ];
        details.extend(render_sandbox(accepted, mask).map(|sandbox| ("sandbox", sandbox)));
        details.push(("input", cut_text(&input, limit, MORE)));
        let total = plan.estimate.planned;
        let took = estimate.map_or_else(|| "no estimate".to_owned(), format_duration);
        Self {
            took,
            runs: visible_text(&cut_text(&runs, limit.min(MAX_ROW_BYTES), MORE)),
            bar: Some((
                percent(planned.start, total),
                estimate.map(|estimate| percent(estimate, total)),
            )),
            ..Self::new(planned.call, plan.turn, state, &input, details, mask)
        }
    }

    pub(super) fn of_rejected(
        rejected: &RejectedCall<'_>,
        turn: usize,
        mask: &Mask,
        limit: usize,
    ) -> Self {
        let call = rejected.call;
        let reason = rejected.reason();
        let state = match rejected.kind() {
            OutcomeKind::Skipped => PlannedState::Skipped,
            _ => PlannedState::Rejected,
        };
        let facts = [call.id.clone(), reason.label()];
        let problems = rejected.details();
        let problems = problems.iter().map(|detail| match detail.path.as_str() {
            "" => detail.message.clone(),
            path => format!("{path}: {}", detail.message),
        });
        let problems = problems.collect::<Vec<_>>().join("\n");
        let input = mask.apply(call.input.as_ref().map_or("", Input::text));
        let details = vec![
            ("call", facts_line(&facts, call, mask)),
            ("problem", mask.apply(&problems).into_owned()),
            ("input", cut_text(&input, limit, MORE)),
        ];
        let problem = mask.apply(problems.lines().next().unwrap_or_default());
        Self {
            problem: problem.into_owned(),
            ..Self::new(call, turn, state, &input, details, mask)
        }
    }

    /// A call that is answered with what is known of it.
    pub(super) fn of_remembered(remembered: &RememberedCall<'_>, turn: usize, mask: &Mask) -> Self {
        let state = if remembered.is_in_doubt() {
            PlannedState::InDoubt
        } else {
            PlannedState::Remembered
        };
        let why = remembered.describe(true, mask);
        Self::of_idle(remembered.call, turn, (state, why), mask)
    }

    /// A call that has the result of the call at `of`.
    pub(super) fn of_repeat(call: &Call, of: usize, turn: usize, mask: &Mask) -> Self {
        let why = format!("has the result of call {of}");
        Self::of_idle(call, turn, (PlannedState::Repeated, why), mask)
    }

    /// A call that gets no result.
    pub(super) fn of_abandoned(call: &Call, turn: usize, mask: &Mask) -> Self {
        let why = "gets no result".to_owned();
        Self::of_idle(call, turn, (PlannedState::Abandoned, why), mask)
    }

    fn of_idle(
        call: &Call,
        turn: usize,
        (state, problem): (PlannedState, String),
        mask: &Mask,
    ) -> Self {
        let input = mask.apply(call.input.as_ref().map_or("", Input::text));
        let facts = [call.id.clone(), problem.clone()];
        let details = vec![
            ("call", facts_line(&facts, call, mask)),
            ("input", cut_text(&input, MAX_IDLE_INPUT_BYTES, MORE)),
        ];
        Self {
            problem,
            ..Self::new(call, turn, state, &input, details, mask)
        }
    }

    fn new(
        call: &Call,
        turn: usize,
        state: PlannedState,
        input: &str,
        details: Vec<(&'static str, String)>,
        mask: &Mask,
    ) -> Self {
        let tool_name = mask.apply(&call.name).into_owned();
        Self {
            key: format!("{turn}-{}", call.position),
            details: CallDetails::new(&tool_name, state.label(), details),
            tool_name,
            state,
            tool_use_id: mask.apply(&call.id).into_owned(),
            input: visible_text(&cut_text(input, MAX_ROW_BYTES, MORE)),
            runs: String::new(),
            position: call.position,
            took: String::new(),
            problem: String::new(),
            bar: None,
        }
    }

    /// Whether it runs, and nobody knows for how long.
    pub(super) fn lacks_estimate(&self) -> bool {
        matches!(self.bar, Some((_, None)))
    }

    pub(super) fn markup(&self) -> Markup {
        let RowLook { class, mark } = self.state.look();
        let anchor = format!("call-{}", self.key);
        html! {
            li id=(anchor) class=(class) data-tool-use-id=(visible_text(&self.tool_use_id)) {
                a href=(format!("#{anchor}")) {
                    span.state { (mark) " " (self.state.label()) }
                    span.name { (self.position) " " (visible_text(&self.tool_name)) }
                    span.input.whole {
                        (self.input)
                        @if !self.runs.is_empty() { span.runs { (self.runs) } }
                    }
                    span.took { (self.took) }
                    @match self.bar {
                        Some(bar) => svg aria-hidden="true" { (bar_markup(bar)) },
                        None => span.problem { (visible_text(&self.problem)) },
                    }
                }
            }
        }
    }
}

fn bar_markup((start, length): (f64, Option<f64>)) -> Markup {
    let Some(length) = length else {
        return html! { rect.point.never x=(format!("{start:.2}%")) width="8" {} };
    };
    let width = length.max(MIN_BAR_PERCENT);
    let start = start.min(100.0 - width);
    html! { rect.run x=(format!("{start:.2}%")) width=(format!("{width:.2}%")) {} }
}

fn facts_line(facts: &[String], call: &Call, mask: &Mask) -> String {
    let position = format!("turn {}, position {}", call.turn, call.position);
    mask.apply(&format!("{} · {position}", facts.join(" · ")))
        .into_owned()
}

/// Returns what part of the turn a duration is.
fn percent(part: Duration, total: Duration) -> f64 {
    if total.is_zero() {
        return 0.0;
    }
    part.as_secs_f64() / total.as_secs_f64() * 100.0
}
