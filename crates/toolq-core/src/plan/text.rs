//! Renders a plan for people: a timeline as wide as the terminal, with what decided each call's safety, what the call
//! runs, and how long it takes.
//!
//! Text from models and tools is escaped. What a call runs is shown in full, however long: a person may be asked to
//! approve it.

use std::fmt::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::plan::invocation_line;
use crate::plan::rejected_call::RejectedCall;
use crate::plan::turn_plan::{PlannedCall, TurnPlan};
use crate::text::{escape, format_duration, paint, truncate_to_columns};
use crate::types::ProblemDetail;
use redact::Mask;

/// Bars narrower than this are useless; reasons then move to a line of their own.
const MIN_BAR_COLUMNS: usize = 12;
/// Maximum width of a drawing, however wide the terminal is.
const MAX_COLUMNS: usize = 1_000;
/// Maximum width of the name column; longer names are truncated.
const MAX_NAME_COLUMNS: usize = 32;
/// Indentation of a line below a call.
const INDENT: &str = "       ";
/// A line break and [`INDENT`].
const BREAK_AND_INDENT: &str = "\n       ";

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
    let timeline = TimelineLayout::new(plan, style);
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

/// The columns that all calls of a turn share.
struct TimelineLayout {
    style: PlanStyle,
    /// Width of the name column.
    name_columns: usize,
    /// Width of the bars; 0 if there are no estimates.
    bar_columns: usize,
    /// Width of the estimate column.
    estimate_columns: usize,
    /// The time that a full-width bar represents.
    total: Duration,
    /// Whether reasons fit into the row of their call.
    reasons_inline: bool,
}

impl TimelineLayout {
    fn new(plan: &TurnPlan<'_>, style: PlanStyle) -> Self {
        let widest = |width: &dyn Fn(&PlannedCall<'_>) -> usize| {
            plan.planned_calls().map(width).max().unwrap_or_default()
        };
        let name_columns =
            widest(&|planned| escape(&planned.call.name).width()).min(MAX_NAME_COLUMNS);
        let estimate_columns = widest(&|planned| format_estimate(planned).width());
        let reason_columns = widest(&|planned| format_reason(planned).width());
        let total = plan.estimate.planned;
        let has_estimates = !total.is_zero();
        // Position, name and estimate with the gaps between them, and one free column at the end.
        let fixed = INDENT.len()
            + name_columns
            + 2
            + if has_estimates {
                2 + estimate_columns
            } else {
                0
            }
            + 1;
        let width = style.width.min(MAX_COLUMNS);
        let inline_space = width.saturating_sub(fixed + reason_columns + 2);
        let reasons_inline = !has_estimates || inline_space >= MIN_BAR_COLUMNS;
        let wrapped_space = width.saturating_sub(fixed).max(MIN_BAR_COLUMNS);
        let bar_columns = if reasons_inline {
            inline_space
        } else {
            wrapped_space
        };
        Self {
            style,
            name_columns,
            bar_columns: if has_estimates { bar_columns } else { 0 },
            estimate_columns,
            total,
            reasons_inline,
        }
    }

    fn write_call(&self, out: &mut String, planned: &PlannedCall<'_>, mask: &Mask) -> fmt::Result {
        let name = mask.apply(&planned.call.name);
        let name = escape(&name);
        write!(
            out,
            "  {:>3}  {}",
            planned.call.position,
            pad_to_columns(&name, self.name_columns)
        )?;
        if self.bar_columns > 0 {
            let bar = self.style.cyan(&self.draw_bar(planned));
            write!(
                out,
                "  {bar}  {:>1$}",
                format_estimate(planned),
                self.estimate_columns
            )?;
        }
        let gap = if self.reasons_inline {
            "  "
        } else {
            BREAK_AND_INDENT
        };
        writeln!(out, "{gap}{}", self.style.dim(&format_reason(planned)))?;
        let runs = invocation_line::render_invocation(planned.accepted, mask);
        let runs = runs.unwrap_or_else(|| self.style.dim("no backing"));
        writeln!(out, "{INDENT}{runs}")
    }

    /// Draws a bar from the call's start to its end, on a scale that spans the turn.
    fn draw_bar(&self, planned: &PlannedCall<'_>) -> String {
        let takes = planned.accepted.tool.estimate.unwrap_or_default();
        let from = self.column_at(planned.start);
        let to = self.column_at(planned.start + takes);
        let shortest = usize::from(!takes.is_zero());
        let filled = (to - from).max(shortest);
        let before = from.min(self.bar_columns - filled);
        let after = self.bar_columns - before - filled;
        format!("{:before$}{}{:after$}", "", "━".repeat(filled), "")
    }

    /// Returns the column of a moment, rounded.
    fn column_at(&self, moment: Duration) -> usize {
        let total = self.total.as_micros().max(1);
        let bars = self.bar_columns as u128;
        let column = (moment.as_micros() * bars + total / 2) / total;
        usize::try_from(column.min(bars)).unwrap_or(self.bar_columns)
    }
}

/// `4s`, or `?` if the tool has no estimate.
fn format_estimate(planned: &PlannedCall<'_>) -> String {
    let estimate = planned.accepted.tool.estimate;
    estimate.map_or_else(|| "?".to_owned(), format_duration)
}

fn format_reason(planned: &PlannedCall<'_>) -> String {
    escape(&planned.safety_reason()).into_owned()
}

fn format_count(number: usize, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// Truncates text to `columns` columns, or pads it with spaces.
fn pad_to_columns(text: &str, columns: usize) -> String {
    let text = truncate_to_columns(text, columns);
    let missing = columns.saturating_sub(text.width());
    format!("{text}{:missing$}", "")
}

impl PlanStyle {
    fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    fn red(self, text: &str) -> String {
        self.paint(text, "31")
    }

    fn cyan(self, text: &str) -> String {
        self.paint(text, "36")
    }

    fn paint(self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }
}
