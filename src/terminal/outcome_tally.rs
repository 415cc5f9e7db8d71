//! How many calls ended how, in the words that summaries, logs and pages share.

use std::collections::BTreeMap;

use toolq_core::text::format_count;
use toolq_core::types::{OutcomeKind, Status};

/// Counts the ends of calls by kind, and within a kind by status.
#[derive(Debug, Default)]
pub(crate) struct OutcomeTally(BTreeMap<OutcomeKind, BTreeMap<Status, usize>>);

impl OutcomeTally {
    /// Counts the end of a call.
    pub(crate) fn add(&mut self, kind: OutcomeKind, status: Status) {
        *self.0.entry(kind).or_default().entry(status).or_default() += 1;
    }

    /// Returns how many calls were counted.
    pub(crate) fn total(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).sum()
    }

    /// Formats the counts, one text a kind: `9 ok`, `3 failed (1 timeout)`, `1 rejected (unknown tool)`.
    pub(crate) fn labels(&self) -> Vec<String> {
        let kinds = self.0.iter();
        kinds
            .map(|(kind, statuses)| kind_label(*kind, statuses))
            .collect()
    }
}

fn kind_label(kind: OutcomeKind, statuses: &BTreeMap<Status, usize>) -> String {
    let (count, label): (usize, _) = (statuses.values().sum(), kind.label());
    // A status that says no more than the kind isn't repeated.
    let mut causes = statuses
        .iter()
        .filter(|(status, _)| status.label() != label);
    let causes: Vec<String> = match (causes.next(), statuses.len()) {
        (None, _) => return format!("{count} {label}"),
        (Some((status, _)), 1) => vec![status.label()],
        (Some(first), _) => std::iter::once(first)
            .chain(causes)
            .map(|(status, count)| format!("{count} {}", status.label()))
            .collect(),
    };
    format!("{count} {label} ({})", causes.join(", "))
}

/// Formats how many calls there were: `8 calls`, or `8 calls, and 4 of agents`.
pub(crate) fn calls_label(own: usize, of_agents: usize) -> String {
    let own = format_count(own as u64, "call");
    match of_agents {
        0 => own,
        of_agents => format!("{own}, and {of_agents} of agents"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_says_why_unless_that_is_the_same_word() {
        let mut tally = OutcomeTally::default();
        for (kind, status) in [
            (OutcomeKind::Ok, Status::Ok),
            (OutcomeKind::Failed, Status::Failed),
            (OutcomeKind::Failed, Status::Timeout),
            (OutcomeKind::Failed, Status::Failed),
            (OutcomeKind::Rejected, Status::InvalidInput),
            (OutcomeKind::Rejected, Status::UnknownTool),
            (OutcomeKind::Skipped, Status::NeedsApproval),
            (OutcomeKind::Skipped, Status::NeedsApproval),
            (OutcomeKind::InDoubt, Status::InDoubt),
        ] {
            tally.add(kind, status);
        }
        assert_eq!(
            tally.labels(),
            [
                "1 ok",
                "3 failed (1 timeout)",
                "2 rejected (1 invalid input, 1 unknown tool)",
                "2 skipped (needs approval)",
                "1 in doubt"
            ]
        );
        assert_eq!(tally.total(), 9);
    }

    #[test]
    fn calls_of_agents_are_counted_apart() {
        assert_eq!(calls_label(1, 0), "1 call");
        assert_eq!(calls_label(8, 4), "8 calls, and 4 of agents");
    }
}
