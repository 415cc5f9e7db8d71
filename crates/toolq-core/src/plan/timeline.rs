//! Draws the calls of a plan as a timeline.

use std::fmt::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::plan::invocation_line;
use crate::plan::sandbox_text;
use crate::plan::text::{INDENT, MAX_NAME_COLUMNS, PlanStyle};
use crate::plan::turn_plan::{PlannedCall, TurnPlan};
use crate::text::{escape, format_duration, truncate_to_columns};
use redact::Mask;

/// Bars narrower than this are useless; reasons then move to a line of their own.
const MIN_BAR_COLUMNS: usize = 12;

/// Maximum width of a drawing, however wide the terminal is.
const MAX_COLUMNS: usize = 1_000;

/// A line break and [`INDENT`].
const BREAK_AND_INDENT: &str = "\n       ";

/// The columns that all calls of a turn share.
pub(crate) struct TimelineLayout<'a> {
    style: PlanStyle,
    plan: &'a TurnPlan<'a>,
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

impl<'a> TimelineLayout<'a> {
    pub(crate) fn new(plan: &'a TurnPlan<'a>, style: PlanStyle, mask: &Mask) -> Self {
        let widest = |width: &dyn Fn(&PlannedCall<'_>) -> usize| {
            plan.planned_calls().map(width).max().unwrap_or_default()
        };
        let name_columns =
            widest(&|planned| escape(&planned.call.name).width()).min(MAX_NAME_COLUMNS);
        let estimate_columns = widest(&|planned| format_estimate(planned).width());
        let reason_columns = widest(&|planned| format_reason(planned, plan, mask).width());
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
            plan,
            name_columns,
            bar_columns: if has_estimates { bar_columns } else { 0 },
            estimate_columns,
            total,
            reasons_inline,
        }
    }

    /// Writes the lines of a call: its name, its bar, what decided its safety, and what it runs.
    pub(crate) fn write_call(
        &self,
        out: &mut String,
        planned: &PlannedCall<'_>,
        mask: &Mask,
    ) -> fmt::Result {
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
        writeln!(
            out,
            "{gap}{}",
            self.style.dim(&format_reason(planned, self.plan, mask))
        )?;
        let runs = invocation_line::render_invocation(planned.accepted, mask);
        let runs = runs.unwrap_or_else(|| self.style.dim("no backing"));
        writeln!(out, "{INDENT}{runs}")?;
        if let Some(program) = planned.accepted.tool.hands_over_to() {
            let program = escape(program);
            let note = format!(
                "{program} hands this over: what it starts elsewhere doesn't end with the call"
            );
            writeln!(out, "{INDENT}{}", self.style.dim(&note))?;
        }
        match sandbox_text::render_sandbox(planned.accepted, mask) {
            Some(sandbox) => writeln!(out, "{INDENT}{}", self.style.dim(&sandbox)),
            None => Ok(()),
        }
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

fn format_reason(planned: &PlannedCall<'_>, plan: &TurnPlan<'_>, mask: &Mask) -> String {
    escape(&mask.apply(&planned.safety_reason(plan))).into_owned()
}

/// Truncates text to `columns` columns, or pads it with spaces.
fn pad_to_columns(text: &str, columns: usize) -> String {
    let text = truncate_to_columns(text, columns);
    let missing = columns.saturating_sub(text.width());
    format!("{text}{:missing$}", "")
}
