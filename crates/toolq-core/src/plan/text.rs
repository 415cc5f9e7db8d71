//! Renders a plan for people: one line per call, as wide as the terminal, with its input, when it runs, and why. What
//! the call runs follows below it.
//!
//! Text from models and tools is escaped. What a user will have to approve is never shortened.

use std::fmt::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::plan::folded_text::short_input;
use crate::plan::rejected_call::RejectedCall;
use crate::plan::timeline::TimelineLayout;
use crate::plan::totals::write_totals;
use crate::plan::turn_plan::{ABANDONED_HEADING, REMEMBERED_HEADING, REPEATS_HEADING, TurnPlan};
use crate::text::{escape, paint, truncate_to_columns, wrap_words};
use crate::types::{Call, ProblemDetail};
use redact::Mask;

/// Maximum width of the name column; longer names are truncated.
pub(crate) const MAX_NAME_COLUMNS: usize = 32;
/// Maximum width of the beginning of an input.
pub(crate) const MAX_INPUT_COLUMNS: usize = 48;
/// Indentation of a line below a call.
pub(crate) const INDENT: &str = "       ";

/// How a plan is drawn.
#[derive(Debug, Clone, Copy)]
pub struct PlanStyle {
    /// Width of the terminal, in columns.
    pub width: usize,
    /// Whether to use colors.
    pub color: bool,
    /// Whether to draw with characters beyond ASCII.
    pub is_unicode: bool,
    /// How much of what runs is shown.
    pub detail: PlanDetail,
}

/// How much of what a call runs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanDetail {
    /// All of it.
    Whole,
    /// Of scripts, only the first words.
    FoldedScripts,
    /// As with folded scripts, and only what fits into a line.
    OneLine,
}

/// Renders the plan of one turn, with a trailing newline.
pub fn render_plan_text(plan: &TurnPlan<'_>, style: PlanStyle, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_plan_text(&mut out, plan, style, mask);
    out
}

/// Writes the plan of one turn, with a trailing newline. A long plan is never in memory as a whole.
///
/// # Errors
/// Those of `out`.
pub fn write_plan_text(
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
    let input = match short_input(rejected.call, mask, room, style) {
        input if input.is_empty() => input,
        input => format!("  {input}"),
    };
    writeln!(
        out,
        "  {position:>3}  {name}{}  {}",
        style.dim(&input),
        style.red(&reason)
    )?;
    for ProblemDetail { path, message, .. } in rejected.details().iter() {
        let colon = if path.is_empty() { "" } else { ": " };
        let problem = format!("{}{colon}{}", shown(path), shown(message));
        writeln!(out, "{INDENT}{}", style.wrap(&problem, INDENT))?;
    }
    Ok(())
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

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint(text, "33")
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint(text, "36")
    }

    /// Truncates a text to this width, with a mark that the terminal can show.
    pub(crate) fn truncate(self, text: &str, columns: usize) -> String {
        let cut = truncate_to_columns(text, columns);
        if self.is_unicode || cut == text {
            return cut.into_owned();
        }
        let kept = cut.strip_suffix('…').unwrap_or(&cut);
        format!("{kept}{}", self.cut_mark())
    }

    /// Returns the mark for omitted text, one column wide.
    pub(crate) fn cut_mark(self) -> &'static str {
        if self.is_unicode { "…" } else { "~" }
    }

    /// Breaks a text that begins after `indent` into lines that fit the terminal.
    pub(crate) fn wrap(self, text: &str, indent: &str) -> String {
        match self.detail {
            PlanDetail::OneLine => {
                let columns = self.width.saturating_sub(indent.len() + 1);
                wrap_words(text, columns, "").replace('\n', &format!("\n{indent}"))
            }
            PlanDetail::Whole | PlanDetail::FoldedScripts => text.to_owned(),
        }
    }

    fn paint(self, text: &str, style: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        paint(text, style, self.color)
    }
}
