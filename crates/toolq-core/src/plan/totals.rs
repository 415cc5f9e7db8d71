//! What a plan says about all calls of a turn: how long they take, and which need an approval.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::plan::rejected_call::RejectedCall;
use crate::plan::text::PlanStyle;
use crate::plan::turn_plan::{PlannedCall, REMEMBERED_HEADING, TurnPlan, format_estimate_totals};
use crate::text::{escape, format_count};
use crate::types::OutcomeKind;
use redact::Mask;

/// Maximum number of names in a line.
const MAX_NAMES: usize = 8;

pub(crate) fn write_totals(
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
        let line = format!("needs approval: {}", list_names(&asking));
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
        let batches = self.batches.iter();
        let batches = batches.filter(|batch| !batch.calls.is_empty()).count();
        parts.extend(match batches {
            0 => None,
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
            return "duration unknown: no call has an estimate".to_owned();
        }
        let totals = format_estimate_totals(&self.estimate);
        if unknown == 0 {
            return totals;
        }
        let names: BTreeSet<&str> = self
            .planned_calls()
            .filter(|planned| !planned.has_estimate())
            .map(|planned| &*planned.call.name)
            .collect();
        let names = names
            .into_iter()
            .map(|name| escape(&mask.apply(name)).into_owned());
        let names: Vec<String> = names.collect();
        let calls = format_count(unknown as u64, "call");
        format!("{totals}; unknown for {calls}: {}", list_names(&names))
    }
}

impl PlannedCall<'_> {
    fn has_estimate(&self) -> bool {
        self.accepted.tool.estimate.is_some()
    }
}

/// Joins names, and says how many are left out.
fn list_names(names: &[String]) -> String {
    let listed = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>();
    match names.len() - listed.len() {
        0 => listed.join(", "),
        others => format!("{} and {others} more", listed.join(", ")),
    }
}
