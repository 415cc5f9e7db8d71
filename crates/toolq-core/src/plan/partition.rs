//! Decides which batch each call belongs to, as calls arrive. `plan` and `run` share this rule.

/// Numbers the batches of one turn: consecutive safe calls share a batch, and an unsafe call gets its own.
///
/// Only assign calls that will run: a call that doesn't run doesn't separate batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPartition {
    batches: usize,
    /// Whether the last batch holds safe calls, so that another safe call may join it.
    accepts_safe: bool,
}

impl BatchPartition {
    /// Returns the batch of the next call in call order, counted from 0.
    pub fn assign_batch(&mut self, safe: bool) -> usize {
        if !(safe && self.accepts_safe) {
            self.batches += 1;
        }
        self.accepts_safe = safe;
        self.batches - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let assigned: Vec<usize> = turn.iter().map(|safe| partition.assign_batch(*safe)).collect();
            prop_assert_eq!(assigned, batch_numbers(&turn));
        }
    }

    #[test]
    fn reads_run_together_and_a_write_alone() {
        let mut partition = BatchPartition::default();
        let batches = [true, true, false, false, true].map(|safe| partition.assign_batch(safe));
        assert_eq!(batches, [0, 0, 1, 2, 3]);
    }
}
