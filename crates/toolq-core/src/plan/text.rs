//! A plan for people: a timeline as wide as the terminal, with who decided, what runs, and how long it takes.
//!
//! Whatever a model or a tool wrote stands in it escaped. What runs is shown whole, however long: a person may be asked
//! to agree to it.

use std::fmt::{self, Write};
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::plan::rendered;
use crate::plan::turn_plan::{Plan, Planned, Rejected};
use crate::text::{cut, escape, format_duration, paint};
use crate::types::Detail;
use redact::Mask;

/// A bar narrower than this says nothing; then reasons move to a line of their own.
const NARROWEST_BAR: usize = 12;
/// A terminal wider than this is taken for one of this width.
const WIDEST: usize = 1_000;
/// The widest column of names; longer ones are cut there.
const WIDEST_NAME: usize = 32;
/// What stands before a line under a call.
const INDENT: &str = "       ";
/// The same after a break.
const BELOW: &str = "\n       ";

/// How a drawing looks.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether it may have colours.
    pub color: bool,
}

/// The plan of one turn, ending in a line break.
pub fn plan_text(plan: &Plan<'_>, look: Look, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_plan(&mut out, plan, look, mask);
    out
}

fn write_plan(out: &mut String, plan: &Plan<'_>, look: Look, mask: &Mask) -> fmt::Result {
    writeln!(out, "{}", look.bold(&title(plan)))?;
    let timeline = Timeline::of(plan, look);
    for (number, batch) in plan.batches.iter().enumerate() {
        writeln!(out, "\n  {}", plan.batch_title(number))?;
        for planned in &batch.calls {
            timeline.write_call(out, planned, mask)?;
        }
    }
    if !plan.rejected.is_empty() {
        writeln!(out, "\n  {}", look.red("rejected"))?;
    }
    for rejected in &plan.rejected {
        write_rejected(out, rejected, look, mask)?;
    }
    match totals(plan) {
        Some(totals) => writeln!(out, "\n{totals}"),
        None => Ok(()),
    }
}

fn write_rejected(
    out: &mut String,
    rejected: &Rejected<'_>,
    look: Look,
    mask: &Mask,
) -> fmt::Result {
    let shown = |text: &str| escape(&mask.text(text)).into_owned();
    let name = shown(&rejected.call.name);
    let (position, name) = (rejected.call.position, cut(&name, WIDEST_NAME));
    writeln!(
        out,
        "  {position:>3}  {name}  {}",
        look.red(rejected.reason())
    )?;
    for Detail { path, message } in rejected.details().iter() {
        let colon = if path.is_empty() { "" } else { ": " };
        writeln!(out, "{INDENT}{}{colon}{}", shown(path), shown(message))?;
    }
    Ok(())
}

/// `turn 0: 4 calls, 3 batches, 1 rejected`.
fn title(plan: &Plan<'_>) -> String {
    let calls = count(plan.calls(), "call", "calls");
    let mut parts = vec![format!("turn {}: {calls}", plan.turn)];
    if !plan.batches.is_empty() {
        parts.push(count(plan.batches.len(), "batch", "batches"));
    }
    if !plan.rejected.is_empty() {
        parts.push(format!("{} rejected", plan.rejected.len()));
    }
    parts.join(", ")
}

/// `8s in series, 4s as planned`, and how many calls that leaves out; none where nothing is known.
fn totals(plan: &Plan<'_>) -> Option<String> {
    let planned = plan.planned().count();
    let unknown = plan.estimate.unknown;
    let totals = crate::plan::turn_plan::totals(&plan.estimate);
    match unknown {
        _ if unknown == planned => None,
        0 => Some(totals),
        _ => Some(format!(
            "{totals}; {} without an estimate",
            count(unknown, "call", "calls")
        )),
    }
}

/// The columns that all calls of a turn share.
struct Timeline {
    look: Look,
    /// Columns of names.
    names: usize,
    /// Columns of bars; 0 where nothing has an estimate.
    bars: usize,
    /// Columns of estimates.
    estimates: usize,
    /// What a whole bar stands for.
    total: Duration,
    /// Reasons stand in the row of their call.
    reasons_beside: bool,
}

impl Timeline {
    fn of(plan: &Plan<'_>, look: Look) -> Self {
        let widest = |width: &dyn Fn(&Planned<'_>) -> usize| {
            plan.planned().map(width).max().unwrap_or_default()
        };
        let names = widest(&|planned| escape(&planned.call.name).width()).min(WIDEST_NAME);
        let estimates = widest(&|planned| estimate(planned).width());
        let reasons = widest(&|planned| reason(planned).width());
        let total = plan.estimate.planned;
        let known = !total.is_zero();
        // Position, name and estimate with the gaps between them, and a last column that stays free.
        let fixed = INDENT.len() + names + 2 + if known { 2 + estimates } else { 0 } + 1;
        let width = look.width.min(WIDEST);
        let beside = width.saturating_sub(fixed + reasons + 2);
        let reasons_beside = !known || beside >= NARROWEST_BAR;
        let below = width.saturating_sub(fixed).max(NARROWEST_BAR);
        let bars = if reasons_beside { beside } else { below };
        Self {
            look,
            names,
            bars: if known { bars } else { 0 },
            estimates,
            total,
            reasons_beside,
        }
    }

    fn write_call(&self, out: &mut String, planned: &Planned<'_>, mask: &Mask) -> fmt::Result {
        let name = mask.text(&planned.call.name);
        let name = escape(&name);
        write!(
            out,
            "  {:>3}  {}",
            planned.call.position,
            pad(&name, self.names)
        )?;
        if self.bars > 0 {
            let bar = self.look.cyan(&self.bar(planned));
            write!(out, "  {bar}  {:>1$}", estimate(planned), self.estimates)?;
        }
        let gap = if self.reasons_beside { "  " } else { BELOW };
        writeln!(out, "{gap}{}", self.look.dim(&reason(planned)))?;
        let runs = rendered::line(planned.accepted, mask);
        let runs = runs.unwrap_or_else(|| self.look.dim("no backing"));
        writeln!(out, "{INDENT}{runs}")
    }

    /// From the call's start to its end, on a scale that ends with the turn.
    fn bar(&self, planned: &Planned<'_>) -> String {
        let takes = planned.accepted.tool.estimate.unwrap_or_default();
        let from = self.column(planned.starts);
        let to = self.column(planned.starts + takes);
        let shortest = usize::from(!takes.is_zero());
        let filled = (to - from).max(shortest);
        let before = from.min(self.bars - filled);
        let after = self.bars - before - filled;
        format!("{:before$}{}{:after$}", "", "━".repeat(filled), "")
    }

    /// The column of a moment, rounded.
    fn column(&self, moment: Duration) -> usize {
        let total = self.total.as_micros().max(1);
        let bars = self.bars as u128;
        let column = (moment.as_micros() * bars + total / 2) / total;
        usize::try_from(column.min(bars)).unwrap_or(self.bars)
    }
}

/// `4s`, or `?` where the tool has no estimate.
fn estimate(planned: &Planned<'_>) -> String {
    let estimate = planned.accepted.tool.estimate;
    estimate.map_or_else(|| "?".to_owned(), format_duration)
}

fn reason(planned: &Planned<'_>) -> String {
    escape(&planned.reason()).into_owned()
}

fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

/// The text in `columns` columns, cut or filled with spaces.
fn pad(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let missing = columns.saturating_sub(text.width());
    format!("{text}{:missing$}", "")
}

impl Look {
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
