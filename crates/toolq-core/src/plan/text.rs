//! Renders a plan for people: a timeline as wide as the terminal, with what decided each call's safety, what the call
//! runs, and how long it takes.
//!
//! Text from models and tools is escaped. What a call runs is shown in full, however long: a person may be asked to
//! approve it.

use std::fmt::{self, Write};

use crate::plan::rejected_call::RejectedCall;
use crate::plan::timeline::TimelineLayout;
use crate::plan::turn_plan::TurnPlan;
use crate::text::{escape, paint, truncate_to_columns};
use crate::types::ProblemDetail;
use redact::Mask;

/// Maximum width of the name column; longer names are truncated.
pub(crate) const MAX_NAME_COLUMNS: usize = 32;
/// Indentation of a line below a call.
pub(crate) const INDENT: &str = "       ";

/// How a plan is drawn.
#[derive(Debug, Clone, Copy)]
pub struct PlanStyle {
    /// Width of the terminal, in columns.
    pub width: usize,
    /// Whether to use colors.
    pub color: bool,
}

/// Renders the plan of one turn, with a trailing newline.
pub fn render_plan_text(plan: &TurnPlan<'_>, style: PlanStyle, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_plan(&mut out, plan, style, mask);
    out
}

fn write_plan(out: &mut String, plan: &TurnPlan<'_>, style: PlanStyle, mask: &Mask) -> fmt::Result {
    writeln!(out, "{}", style.bold(&format_title(plan)))?;
    let timeline = TimelineLayout::new(plan, style, mask);
    for (number, batch) in plan.batches.iter().enumerate() {
        writeln!(out, "\n  {}", plan.batch_title(number))?;
        for planned in &batch.calls {
            timeline.write_call(out, planned, mask)?;
        }
    }
    if !plan.rejected.is_empty() {
        writeln!(out, "\n  {}", style.red("rejected"))?;
    }
    for rejected in &plan.rejected {
        write_rejected(out, rejected, style, mask)?;
    }
    match format_totals(plan) {
        Some(totals) => writeln!(out, "\n{totals}"),
        None => Ok(()),
    }
}

fn write_rejected(
    out: &mut String,
    rejected: &RejectedCall<'_>,
    style: PlanStyle,
    mask: &Mask,
) -> fmt::Result {
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    let name = shown(&rejected.call.name);
    let (position, name) = (
        rejected.call.position,
        truncate_to_columns(&name, MAX_NAME_COLUMNS),
    );
    writeln!(
        out,
        "  {position:>3}  {name}  {}",
        style.red(rejected.reason().as_str())
    )?;
    for ProblemDetail { path, message, .. } in rejected.details().iter() {
        let colon = if path.is_empty() { "" } else { ": " };
        writeln!(out, "{INDENT}{}{colon}{}", shown(path), shown(message))?;
    }
    Ok(())
}

/// `turn 0: 4 calls, 3 batches, 1 rejected`.
fn format_title(plan: &TurnPlan<'_>) -> String {
    let calls = format_count(plan.call_count(), "call", "calls");
    let mut parts = vec![format!("turn {}: {calls}", plan.turn)];
    if !plan.batches.is_empty() {
        parts.push(format_count(plan.batches.len(), "batch", "batches"));
    }
    if !plan.rejected.is_empty() {
        parts.push(format!("{} rejected", plan.rejected.len()));
    }
    parts.join(", ")
}

/// `8s in series, 4s as planned`, and how many calls that leaves out; `None` if no call has an estimate.
fn format_totals(plan: &TurnPlan<'_>) -> Option<String> {
    let planned = plan.planned_calls().count();
    let unknown = plan.estimate.unestimated_calls;
    let totals = crate::plan::turn_plan::format_estimate_totals(&plan.estimate);
    match unknown {
        _ if unknown == planned => None,
        0 => Some(totals),
        _ => Some(format!(
            "{totals}; {} without an estimate",
            format_count(unknown, "call", "calls")
        )),
    }
}

fn format_count(number: usize, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

impl PlanStyle {
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint(text, "31")
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint(text, "36")
    }

    fn paint(self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }
}
