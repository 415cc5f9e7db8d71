//! Decides which batch each call belongs to, as calls arrive. `plan` and `run` share this rule.

use crate::schedule::{CallAccess, Gate};

/// Numbers the batches of one turn: consecutive calls of which none waits for another share a batch. Without locks, these
/// are consecutive safe calls; an unsafe call gets its own.
///
/// Only assign calls that will run: a call that doesn't run doesn't separate batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPartition {
    batches: usize,
    calls: usize,
    /// The calls of the last batch.
    batch: Gate,
}

impl BatchPartition {
    /// Returns the batch of the next call in call order, counted from 0.
    pub fn assign_batch(&mut self, access: &CallAccess) -> usize {
        self.calls += 1;
        self.batch.push(self.calls, access.clone());
        if self.batches == 0 || !self.batch.is_ready(self.calls) {
            self.batches += 1;
            self.batch = Gate::default();
            self.batch.push(self.calls, access.clone());
        }
        self.batches - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access(safe: bool) -> CallAccess {
        CallAccess { safe, locks: None }
    }

    /// The same rule, written as a grouping of a whole turn.
    fn batch_numbers(turn: &[bool]) -> Vec<usize> {
        turn.chunk_by(|left, right| *left && *right)
            .enumerate()
            .flat_map(|(batch, calls)| vec![batch; calls.len()])
            .collect()
    }

    proptest! {
        #[test]
        fn assigning_one_by_one_matches_grouping_the_turn(turn in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut partition = BatchPartition::default();
            let assigned: Vec<usize> = turn.iter().map(|safe| partition.assign_batch(&access(*safe))).collect();
            prop_assert_eq!(assigned, batch_numbers(&turn));
        }
    }

    #[test]
    fn reads_run_together_and_a_write_alone() {
        let mut partition = BatchPartition::default();
        let batches =
            [true, true, false, false, true].map(|safe| partition.assign_batch(&access(safe)));
        assert_eq!(batches, [0, 0, 1, 2, 3]);
    }
}
