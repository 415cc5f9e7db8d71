//! Renders a plan as a Mermaid flowchart, for a page or a review: batches from left to right, the calls of a batch
//! stacked, rejected calls in a group of their own.

use std::fmt::{self, Write};

use crate::plan::rejected_call::RejectedCall;
use crate::plan::turn_plan::{PlannedCall, TurnPlan};
use crate::text::{escape, format_duration};
use redact::Mask;

/// The first line of a diagram; the turns follow.
pub const MERMAID_HEADER: &str = "flowchart LR\n";

/// Renders one turn of a diagram.
pub fn render_plan_mermaid(plan: &TurnPlan<'_>, mask: &Mask) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_turn(&mut out, plan, mask);
    out
}

fn write_turn(out: &mut String, plan: &TurnPlan<'_>, mask: &Mask) -> fmt::Result {
    let turn = plan.turn;
    let title = match plan.call_count() {
        0 => "no calls".to_owned(),
        _ => crate::plan::turn_plan::format_estimate_totals(&plan.estimate),
    };
    writeln!(
        out,
        "  subgraph t{turn}[\"turn {turn}: {title}\"]\n    direction LR"
    )?;
    if plan.call_count() == 0 {
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

fn write_batch(out: &mut String, plan: &TurnPlan<'_>, number: usize, mask: &Mask) -> fmt::Result {
    let (turn, title) = (plan.turn, plan.batch_title(number));
    writeln!(
        out,
        "    subgraph t{turn}b{number}[\"{title}\"]\n      direction TB"
    )?;
    for planned in &plan.batches[number].calls {
        write_call(out, plan, planned, mask)?;
    }
    writeln!(out, "    end")
}

fn write_call(
    out: &mut String,
    plan: &TurnPlan<'_>,
    planned: &PlannedCall<'_>,
    mask: &Mask,
) -> fmt::Result {
    let turn = plan.turn;
    let PlannedCall { call, accepted, .. } = planned;
    write!(
        out,
        "      t{turn}c{}[\"{}",
        call.position,
        escape_label(&mask.apply(&call.name))
    )?;
    if let Some(estimate) = accepted.tool.estimate {
        write!(out, " · {}", format_duration(estimate))?;
    }
    writeln!(
        out,
        "<br/>{}\"]",
        escape_label(&mask.apply(&planned.safety_reason(plan)))
    )
}

fn write_rejected(
    out: &mut String,
    turn: usize,
    rejected: &[RejectedCall<'_>],
    mask: &Mask,
) -> fmt::Result {
    writeln!(
        out,
        "    subgraph t{turn}r[\"rejected\"]\n      direction TB"
    )?;
    for rejected in rejected {
        let name = escape_label(&mask.apply(&rejected.call.name));
        let position = rejected.call.position;
        let reason = rejected.reason().label();
        writeln!(out, "      t{turn}c{position}[/\"{name}<br/>{reason}\"/]")?;
    }
    writeln!(out, "    end")
}

/// Escapes text for a quoted label: punctuation that Mermaid, Markdown or HTML could interpret becomes an entity.
fn escape_label(text: &str) -> String {
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
