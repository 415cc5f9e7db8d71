//! Renders a plan for people: one line per call, as wide as the terminal, with its input, when it runs, and why. What
//! the call runs follows below it.
//!
//! Text from models and tools is escaped. What a user will have to approve is never shortened.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use crate::plan::remembered_call::RejectedCall;
use crate::plan::timeline::{
    INDENT, MAX_INPUT_COLUMNS, MAX_NAME_COLUMNS, PlanDetail, PlanStyle, TimelineLayout, short_input,
};
use crate::plan::turn_plan::{
    ABANDONED_HEADING, REMEMBERED_HEADING, REPEATS_HEADING, TurnPlan, format_estimate_totals,
};
use crate::text::{escape, format_count, list_some};
use crate::types::{Call, OutcomeKind, ProblemDetail};
use redact::Mask;

/// Renders the plan of one turn, with a trailing newline.
pub fn render_plan_text(plan: &TurnPlan<'_>, style: PlanStyle, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_plan_text(&mut out, plan, style, mask);
    out
}

fn write_plan_text(
    out: &mut dyn Write,
    plan: &TurnPlan<'_>,
    style: PlanStyle,
    mask: &Mask,
) -> fmt::Result {
    writeln!(out, "{}", style.bold(&plan.title()))?;
    let timeline = TimelineLayout::new(plan, style, mask);
    let mut is_folded = false;
    for (number, batch) in plan.batches.iter().enumerate() {
        if batch.calls.is_empty() {
            continue;
        }
        write_heading(out, plan, number, style)?;
        let has_own_reasons = plan.common_safety(number).is_none();
        for planned in &batch.calls {
            timeline.write_call(out, planned, has_own_reasons, mask)?;
            is_folded |= timeline.write_invocation(out, planned, mask)?;
        }
    }
    if let Some(heading) = plan.rejected_heading() {
        writeln!(out, "\n  {}", style.red(&heading))?;
    }
    for rejected in &plan.rejected {
        write_rejected(out, rejected, style, mask)?;
    }
    write_idle_calls(out, plan, style, mask)?;
    if plan.call_count() > 0 {
        write_totals(out, plan, style, mask)?;
    }
    if is_folded {
        writeln!(
            out,
            "{}",
            style.dim("shortened; `-v` shows all of what runs")
        )?;
    }
    Ok(())
}

/// Writes the heading of a batch, with what decided the safety of all its calls, and what it waits for. What doesn't
/// fit is written on the next line.
fn write_heading(
    out: &mut dyn Write,
    plan: &TurnPlan<'_>,
    number: usize,
    style: PlanStyle,
) -> fmt::Result {
    let size = plan.batch_size(number);
    let mut columns = 2 + size.width();
    write!(out, "\n  {size}")?;
    let safety = plan.common_safety(number);
    let safety = safety.map(|safety| format!("({})", escape(&safety)));
    let barrier = plan.barrier_before(number);
    for (separator, part) in [("", safety), (",", barrier)] {
        let Some(part) = part else { continue };
        let part_columns = separator.len() + 1 + part.width();
        let fits = columns + part_columns < style.width;
        columns = if fits {
            columns + part_columns
        } else {
            3 + part_columns
        };
        let gap = if fits { " " } else { "\n    " };
        write!(out, "{separator}{gap}{}", style.dim(&part))?;
    }
    writeln!(out)
}

/// Writes the calls that neither run nor are rejected: those that are remembered, that repeat others, and that nobody waits for.
fn write_idle_calls(
    out: &mut dyn Write,
    plan: &TurnPlan<'_>,
    style: PlanStyle,
    mask: &Mask,
) -> fmt::Result {
    let line = |call: &Call| {
        let [name, id] = [&*call.name, &call.id].map(|text| escape(&mask.apply(text)).into_owned());
        let name = style.truncate(&name, MAX_NAME_COLUMNS);
        format!("  {:>3}  {name}  {}", call.position, style.dim(&id))
    };
    for (heading, are_doubts) in [("in doubt", true), (REMEMBERED_HEADING, false)] {
        let mut calls = plan.remembered.iter();
        let mut calls = calls
            .by_ref()
            .filter(|call| call.is_in_doubt() == are_doubts)
            .peekable();
        if calls.peek().is_some() {
            writeln!(out, "\n  {heading}")?;
        }
        for remembered in calls {
            let input = short_input(remembered.call, mask, MAX_INPUT_COLUMNS, style);
            let text = remembered.describe(style.detail == PlanDetail::Whole, mask);
            let text = escape(&text).into_owned();
            let text = if are_doubts {
                style.yellow(&text)
            } else {
                text
            };
            let call = line(remembered.call);
            writeln!(out, "{call}  {}\n{INDENT}{text}", style.dim(&input))?;
        }
    }
    if !plan.repeats.is_empty() {
        writeln!(out, "\n  {REPEATS_HEADING}")?;
    }
    for (call, of) in &plan.repeats {
        writeln!(out, "{}  has the result of call {of}", line(call))?;
    }
    if !plan.abandoned.is_empty() {
        let heading = style.wrap(ABANDONED_HEADING, "  ");
        writeln!(out, "\n  {}", style.yellow(&heading))?;
    }
    plan.abandoned
        .iter()
        .try_for_each(|call| writeln!(out, "{}", line(call)))
}

/// How much of the input of a call that won't run is shown, in columns.
const MAX_REJECTED_COLUMNS: usize = 400;

fn write_rejected(
    out: &mut dyn Write,
    rejected: &RejectedCall<'_>,
    style: PlanStyle,
    mask: &Mask,
) -> fmt::Result {
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    let name = shown(&rejected.call.name);
    let (position, name) = (
        rejected.call.position,
        style.truncate(&name, MAX_NAME_COLUMNS),
    );
    let reason = rejected.reason().label();
    let used = INDENT.len() + name.width() + reason.width() + 5;
    let room = style.width.saturating_sub(used).min(MAX_INPUT_COLUMNS);
    let input = short_input(rejected.call, mask, MAX_REJECTED_COLUMNS, style);
    let (beside, below) = match input.width() {
        0 => (input, None),
        columns if columns <= room => (format!("  {input}"), None),
        // What is wrong with it may be at its end.
        _ => (String::new(), Some(input)),
    };
    let (beside, reason) = (style.dim(&beside), style.red(&reason));
    writeln!(out, "  {position:>3}  {name}{beside}  {reason}")?;
    if let Some(input) = below {
        writeln!(out, "{INDENT}{}", style.dim(&style.wrap(&input, INDENT)))?;
    }
    for ProblemDetail { path, message, .. } in rejected.details().iter() {
        let colon = if path.is_empty() { "" } else { ": " };
        let problem = format!("{}{colon}{}", shown(path), shown(message));
        writeln!(out, "{INDENT}{}", style.wrap(&problem, INDENT))?;
    }
    Ok(())
}

// What a plan says about all calls of a turn: how long they take, and which need an approval.

/// Maximum number of names in a line.
const MAX_NAMES: usize = 8;

fn write_totals(
    out: &mut dyn Write,
    plan: &TurnPlan<'_>,
    style: PlanStyle,
    mask: &Mask,
) -> fmt::Result {
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    if plan.planned_calls().next().is_some() {
        writeln!(out, "\n{}", style.wrap(&plan.duration_line(mask), ""))?;
    }
    let asking = plan
        .planned_calls()
        .filter(|planned| planned.waits_for_approval());
    let asking: Vec<String> = asking
        .map(|planned| format!("{} {}", shown(&planned.call.name), shown(&planned.call.id)))
        .collect();
    if !asking.is_empty() {
        let line = format!("needs approval: {}", list_some(asking.iter(), MAX_NAMES));
        writeln!(out, "{}", style.yellow(&style.wrap(&line, "")))?;
    }
    Ok(())
}

impl TurnPlan<'_> {
    /// `turn 0: 4 calls, 3 batches, 1 rejected`.
    pub fn title(&self) -> String {
        if self.call_count() == 0 {
            return format!("turn {}: no calls", self.turn);
        }
        let calls = format_count(self.call_count() as u64, "call");
        let mut parts = vec![format!("turn {}: {calls}", self.turn)];
        // Those of remembered calls count, too: they have their numbers.
        parts.extend(match self.batches.len() {
            _ if self.planned_calls().next().is_none() => None,
            1 => Some("1 batch".to_owned()),
            count => Some(format!("{count} batches")),
        });
        let doubts = self.remembered.iter().filter(|call| call.is_in_doubt());
        let doubts = doubts.count();
        for (count, label) in [
            (self.remembered.len() - doubts, REMEMBERED_HEADING),
            (doubts, "in doubt"),
        ] {
            parts.extend((count > 0).then(|| format!("{count} {label}")));
        }
        for kind in [OutcomeKind::Rejected, OutcomeKind::Skipped] {
            let calls = self.rejected.iter().filter(|call| call.kind() == kind);
            let count = calls.count();
            parts.extend((count > 0).then(|| format!("{count} {}", kind.label())));
        }
        parts.join(", ")
    }

    /// Returns what becomes of the calls that won't run, if there are any: `rejected`, or `rejected or skipped`.
    pub fn rejected_heading(&self) -> Option<String> {
        let kinds: BTreeSet<OutcomeKind> = self.rejected.iter().map(RejectedCall::kind).collect();
        let labels: Vec<&str> = kinds.into_iter().map(OutcomeKind::label).collect();
        (!labels.is_empty()).then(|| labels.join(" or "))
    }

    /// `estimated 4s, 8s if run one after another`. Calls whose duration is unknown are named.
    pub fn duration_line(&self, mask: &Mask) -> String {
        let unknown = self.estimate.unestimated_calls;
        if unknown == self.planned_calls().count() {
            return "duration unknown: no tool has an `estimate`".to_owned();
        }
        let totals = format_estimate_totals(&self.estimate);
        if unknown == 0 {
            return totals;
        }
        let names: BTreeSet<&str> = self
            .planned_calls()
            .filter(|planned| planned.accepted.tool.estimate.is_none())
            .map(|planned| &*planned.call.name)
            .collect();
        let names = names
            .into_iter()
            .map(|name| escape(&mask.apply(name)).into_owned());
        let names = list_some(names, MAX_NAMES);
        let calls = format_count(unknown as u64, "call");
        format!("{totals}; unknown for {calls}: {names}")
    }
}

// Says when a batch of a plan runs, and why.

impl TurnPlan<'_> {
    /// `batch 2: 2 in parallel, after call 3, which runs alone`.
    pub fn batch_heading(&self, index: usize) -> String {
        let parts = [Some(self.batch_size(index)), self.barrier_before(index)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }

    /// `batch 2: 2 in parallel`, or `batch 3: alone`.
    fn batch_size(&self, index: usize) -> String {
        let title = self.batch_title(index);
        match self.batches[index].calls.as_slice() {
            [single] if single.accepted.safe || self.waits.is_some() => format!("{title}: 1 call"),
            [_] => format!("{title}: alone"),
            _ => title,
        }
    }

    /// Returns what decided for all calls of a batch whether they run in parallel: `parallel by rule get_*`, or `by rule get_*` if the
    /// heading says the rest. `None` if they differ.
    pub fn common_safety(&self, index: usize) -> Option<String> {
        let (first, others) = self.batches[index].calls.split_first()?;
        let safety = first.safety();
        if others.iter().any(|call| call.safety() != safety) {
            return None;
        }
        let size = self.batch_size(index);
        let is_said = size.ends_with(" in parallel") || size.ends_with(" alone");
        Some(if is_said {
            format!("by {}", first.accepted.safety_source)
        } else {
            safety
        })
    }

    /// Returns what a batch waits for. With locks, each call says that of itself.
    fn barrier_before(&self, index: usize) -> Option<String> {
        if self.waits.is_some() {
            return None;
        }
        let before = self.batches[..index].iter();
        let before = before.flat_map(|batch| &batch.calls).last()?;
        let first = self.batches[index].calls.first()?;
        Some(if first.accepted.safe {
            format!("after call {}, which runs alone", before.call.position)
        } else {
            "after all calls before it".to_owned()
        })
    }
}
