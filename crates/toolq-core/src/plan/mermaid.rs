//! A plan as a Mermaid flowchart, for a page or a review: batches from left to right, the calls of a batch one below
//! the other, rejected calls apart.

use std::fmt::{self, Write};

use crate::plan::turn_plan::{Plan, Planned, Rejected};
use crate::text::{escape, format_duration};
use redact::Mask;

/// The first line of a diagram; the turns follow.
pub const MERMAID_HEADER: &str = "flowchart LR\n";

/// One turn of a diagram.
pub fn plan_mermaid(plan: &Plan<'_>, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_turn(&mut out, plan, mask);
    out
}

fn write_turn(out: &mut String, plan: &Plan<'_>, mask: &Mask) -> fmt::Result {
    let turn = plan.turn;
    let title = match plan.calls() {
        0 => "no calls".to_owned(),
        _ => crate::plan::turn_plan::totals(&plan.estimate),
    };
    writeln!(
        out,
        "  subgraph t{turn}[\"turn {turn}: {title}\"]\n    direction LR"
    )?;
    if plan.calls() == 0 {
        writeln!(out, "    t{turn}none[\"nothing to do\"]")?;
    }
    for number in 0..plan.batches.len() {
        write_batch(out, plan, number, mask)?;
    }
    for number in 1..plan.batches.len() {
        writeln!(out, "    t{turn}b{} --> t{turn}b{number}", number - 1)?;
    }
    if !plan.rejected.is_empty() {
        write_rejected(out, turn, &plan.rejected, mask)?;
    }
    writeln!(out, "  end")
}

fn write_batch(out: &mut String, plan: &Plan<'_>, number: usize, mask: &Mask) -> fmt::Result {
    let (turn, title) = (plan.turn, plan.batch_title(number));
    writeln!(
        out,
        "    subgraph t{turn}b{number}[\"{title}\"]\n      direction TB"
    )?;
    for planned in &plan.batches[number].calls {
        write_call(out, turn, planned, mask)?;
    }
    writeln!(out, "    end")
}

fn write_call(out: &mut String, turn: usize, planned: &Planned<'_>, mask: &Mask) -> fmt::Result {
    let Planned { call, accepted, .. } = planned;
    write!(
        out,
        "      t{turn}c{}[\"{}",
        call.position,
        label(&mask.text(&call.name))
    )?;
    if let Some(estimate) = accepted.tool.estimate {
        write!(out, " · {}", format_duration(estimate))?;
    }
    writeln!(out, "<br/>{}\"]", label(&planned.reason()))
}

fn write_rejected(
    out: &mut String,
    turn: usize,
    rejected: &[Rejected<'_>],
    mask: &Mask,
) -> fmt::Result {
    writeln!(
        out,
        "    subgraph t{turn}r[\"rejected\"]\n      direction TB"
    )?;
    for rejected in rejected {
        let name = label(&mask.text(&rejected.call.name));
        let position = rejected.call.position;
        let reason = rejected.reason();
        writeln!(out, "      t{turn}c{position}[/\"{name}<br/>{reason}\"/]")?;
    }
    writeln!(out, "    end")
}

/// A text between the quotes of a label: punctuation that Mermaid, Markdown or HTML could read as their own is an
/// entity.
fn label(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    for c in escape(text).chars() {
        if c.is_ascii_punctuation() && !"_-.,:/'".contains(c) {
            let _ = write!(label, "#{};", u32::from(c));
        } else {
            label.push(c);
        }
    }
    label
}
