//! Draws the calls of a plan as a timeline.

use std::fmt::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::json::{Input, join_json_lines};
use crate::plan::invocation_line::{self, FoldedLine, render_folded_invocation, render_invocation};
use crate::plan::turn_plan::{PlannedCall, TurnPlan};
use crate::text::{escape, format_duration, paint, truncate_to_columns, wrap_words};
use crate::types::{Call, Effect};
use redact::Mask;

/// Bars narrower than this are useless; they are left out then.
const MIN_BAR_COLUMNS: usize = 12;
/// An input keeps at least this much beside a bar, if it has that.
const MIN_INPUT_COLUMNS: usize = 16;
/// Maximum width of a drawing, however wide the terminal is.
const MAX_COLUMNS: usize = 1_000;
/// The gap between two columns.
const GAP: &str = "  ";

/// The columns that all calls of a turn share.
pub(crate) struct TimelineLayout<'a> {
    style: PlanStyle,
    plan: &'a TurnPlan<'a>,
    name_columns: usize,
    /// Width of the words for what calls do to the world.
    effect_columns: usize,
    /// Width of the beginnings of inputs; 0 if there are none.
    input_columns: usize,
    /// Width of the bars; 0 if there are no estimates, or no room.
    bar_columns: usize,
    /// Width of the estimates; 0 if there are none.
    estimate_columns: usize,
    /// Whether notes fit into the row of their call.
    notes_inline: bool,
}

impl<'a> TimelineLayout<'a> {
    pub(crate) fn new(plan: &'a TurnPlan<'a>, style: PlanStyle, mask: &Mask) -> Self {
        let widest = |width: &dyn Fn(&PlannedCall<'_>) -> usize| {
            plan.planned_calls().map(width).max().unwrap_or_default()
        };
        let mut layout = Self {
            style,
            plan,
            name_columns: widest(&|planned| escape(&planned.call.name).width())
                .min(MAX_NAME_COLUMNS),
            effect_columns: widest(&|planned| planned.verb().len()),
            input_columns: widest(&|planned| {
                short_input(planned.call, mask, MAX_INPUT_COLUMNS, style).width()
            }),
            bar_columns: 0,
            estimate_columns: 0,
            notes_inline: true,
        };
        let has_estimates = plan.estimate.unestimated_calls < plan.planned_calls().count();
        if has_estimates {
            layout.estimate_columns = widest(&|planned| format_estimate(planned).width());
        }
        let note_columns = (0..plan.batches.len())
            .map(|number| layout.widest_note(number, mask))
            .max();
        layout.share_width(note_columns.unwrap_or_default());
        layout
    }

    /// Divides what the other columns leave among inputs, bars and notes.
    fn share_width(&mut self, note_columns: usize) {
        let with_gap = |columns: usize| if columns == 0 { 0 } else { columns + GAP.len() };
        let width = self.style.width.min(MAX_COLUMNS);
        // One column stays free at the end.
        let columns = [self.effect_columns, self.estimate_columns].map(with_gap);
        let fixed = INDENT.len() + self.name_columns + columns.iter().sum::<usize>() + 1;
        let mut room = width.saturating_sub(fixed);
        let is_drawn = self.estimate_columns > 0 && !self.plan.estimate.planned.is_zero();
        let least_input = with_gap(self.input_columns.min(MIN_INPUT_COLUMNS));
        let least_bar = if is_drawn {
            with_gap(MIN_BAR_COLUMNS)
        } else {
            0
        };
        self.notes_inline = room >= least_input + least_bar + with_gap(note_columns);
        if self.notes_inline {
            room -= with_gap(note_columns);
        }
        if is_drawn && room >= least_input + least_bar {
            let half = (room / 2).max(least_input);
            self.input_columns = self.input_columns.min(half.saturating_sub(GAP.len()));
            self.bar_columns = room - with_gap(self.input_columns) - GAP.len();
        } else {
            self.input_columns = self.input_columns.min(room.saturating_sub(GAP.len()));
        }
    }

    fn widest_note(&self, number: usize, mask: &Mask) -> usize {
        let has_own_reasons = self.plan.common_safety(number).is_none();
        let calls = self.plan.batches[number].calls.iter();
        let notes = calls.map(|planned| self.note(planned, has_own_reasons, mask).width());
        notes.max().unwrap_or_default()
    }

    /// Writes the row of a call, and its notes below it if they don't fit.
    pub(crate) fn write_call(
        &self,
        out: &mut dyn Write,
        planned: &PlannedCall<'_>,
        has_own_reason: bool,
        mask: &Mask,
    ) -> fmt::Result {
        let style = self.style;
        let name = mask.apply(&planned.call.name);
        let name = self.pad(&escape(&name), self.name_columns);
        let mut row = format!("  {:>3}  {name}{GAP}", planned.call.position);
        let verb = self.pad(planned.verb(), self.effect_columns);
        row += &match planned.accepted.tool.effect {
            Effect::Read => style.dim(&verb),
            Effect::Idempotent => verb,
            Effect::Write => style.yellow(&verb),
        };
        if self.input_columns > 0 {
            let input = short_input(planned.call, mask, self.input_columns, style);
            row += GAP;
            row += &style.dim(&self.pad(&input, self.input_columns));
        }
        if self.bar_columns > 0 {
            row += GAP;
            row += &style.cyan(&self.draw_bar(planned));
        }
        if self.estimate_columns > 0 {
            write!(
                row,
                "{GAP}{:>1$}",
                format_estimate(planned),
                self.estimate_columns
            )?;
        }
        let note = self.note(planned, has_own_reason, mask);
        let note =
            if planned.waits_for_approval() || planned.unsettled.is_some() || planned.is_renewed {
                style.yellow(&note)
            } else {
                style.dim(&note)
            };
        if note.is_empty() {
            writeln!(out, "{}", row.trim_end())
        } else if self.notes_inline {
            writeln!(out, "{row}{GAP}{note}")
        } else {
            let note = style.wrap(&note, INDENT);
            writeln!(out, "{}\n{INDENT}{note}", row.trim_end())
        }
    }

    /// Writes what a call runs, below its row. Returns whether something was left out.
    pub(crate) fn write_invocation(
        &self,
        out: &mut dyn Write,
        planned: &PlannedCall<'_>,
        mask: &Mask,
    ) -> Result<bool, fmt::Error> {
        let style = self.style;
        let line = self.invocation(planned, mask);
        let is_folded = line.as_ref().is_some_and(|line| line.is_folded);
        let runs = line.map_or_else(|| style.dim("no backing"), |line| line.text);
        writeln!(out, "{INDENT}{runs}")?;
        if let Some(program) = planned.accepted.tool.hands_over_to() {
            let program = escape(program);
            let note = format!(
                "{program} hands this over: what it starts elsewhere doesn't end with the call"
            );
            writeln!(out, "{INDENT}{}", style.dim(&style.wrap(&note, INDENT)))?;
        }
        if let Some(sandbox) = invocation_line::render_sandbox(planned.accepted, mask) {
            writeln!(out, "{INDENT}{}", style.dim(&style.wrap(&sandbox, INDENT)))?;
        }
        Ok(is_folded)
    }

    /// Returns what a call runs, all of it if the call needs an approval.
    fn invocation(&self, planned: &PlannedCall<'_>, mask: &Mask) -> Option<FoldedLine> {
        let accepted = planned.accepted;
        if self.style.detail == PlanDetail::Whole || accepted.needs_approval {
            let text = render_invocation(accepted, mask)?;
            return Some(FoldedLine {
                text,
                is_folded: false,
            });
        }
        let mut line = render_folded_invocation(accepted, mask, self.style.cut_mark())?;
        let room = self.style.width.saturating_sub(INDENT.len() + 1);
        if self.style.detail == PlanDetail::OneLine && line.text.width() > room {
            line.text = self.style.truncate(&line.text, room);
            line.is_folded = true;
        }
        Some(line)
    }

    /// Returns what decides when a call runs, as far as the heading of its batch doesn't say so.
    fn note(&self, planned: &PlannedCall<'_>, has_own_reason: bool, mask: &Mask) -> String {
        let mut parts = planned.notes(self.plan);
        if has_own_reason {
            parts.insert(0, planned.safety());
        }
        escape(&mask.apply(&parts.join("; "))).into_owned()
    }

    /// Draws a bar from the call's start to its end, on a scale that spans the turn. If its end is unknown, only its start is
    /// marked.
    fn draw_bar(&self, planned: &PlannedCall<'_>) -> String {
        let from = self.column_at(planned.start);
        let Some(takes) = planned.accepted.tool.estimate else {
            let before = from.min(self.bar_columns - 1);
            return format!(
                "{:before$}?{:after$}",
                "",
                "",
                after = self.bar_columns - before - 1
            );
        };
        let to = self.column_at(planned.start + takes);
        let shortest = usize::from(!takes.is_zero());
        let filled = (to - from).max(shortest);
        let before = from.min(self.bar_columns - filled);
        let after = self.bar_columns - before - filled;
        let bar = if self.style.is_unicode { "━" } else { "=" };
        format!("{:before$}{}{:after$}", "", bar.repeat(filled), "")
    }

    /// Returns the column of a moment, rounded.
    fn column_at(&self, moment: Duration) -> usize {
        let total = self.plan.estimate.planned.as_micros().max(1);
        let bars = self.bar_columns as u128;
        let column = (moment.as_micros() * bars + total / 2) / total;
        usize::try_from(column.min(bars)).unwrap_or(self.bar_columns)
    }

    /// Truncates text to `columns` columns, or pads it with spaces.
    fn pad(&self, text: &str, columns: usize) -> String {
        let text = self.style.truncate(text, columns);
        let missing = columns.saturating_sub(text.width());
        format!("{text}{:missing$}", "")
    }
}

/// `4s`, or `unknown` if the tool has no estimate.
fn format_estimate(planned: &PlannedCall<'_>) -> String {
    let estimate = planned.accepted.tool.estimate;
    estimate.map_or_else(|| "unknown".to_owned(), format_duration)
}

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

// Shortens texts for lines that people read: scripts to their first words, inputs to their beginning.
/// Maximum part of an input that is masked to show its beginning. No secret that begins in the shown part is longer.
pub(crate) const MAX_MASKED_BYTES: usize = 64 << 10;

/// Returns the beginning of the input of a call on one line, or nothing for an empty one.
pub(crate) fn short_input(call: &Call, mask: &Mask, columns: usize, style: PlanStyle) -> String {
    let input = call.input.as_ref().map_or("", Input::text);
    if input == "{}" {
        return String::new();
    }
    let beginning = &input[..input.floor_char_boundary(MAX_MASKED_BYTES)];
    let line = join_json_lines(beginning);
    style.truncate(&escape(&mask.apply(&line)), columns)
}
