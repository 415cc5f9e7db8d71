//! Decides which batch each call belongs to, as calls arrive. `plan` and `run` share this rule.

use crate::schedule::{CallAccess, Gate};

/// Numbers the batches of one turn: consecutive calls share a batch if they don't wait for each other. Without locks, a
/// batch consists of consecutive safe calls, and an unsafe call gets its own.
///
/// Only assign calls that will run: a call that doesn't run doesn't separate batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPartition {
    batches: usize,
    calls: usize,
    /// The calls of the last batch, without the safe ones that have no locks: only a call that always begins another batch
    /// waits for those.
    batch: Gate,
}

impl BatchPartition {
    /// Returns the batch of the next call in call order, counted from 0.
    pub fn assign_batch(&mut self, access: &CallAccess) -> usize {
        self.calls += 1;
        if self.batches == 0 || !self.joins_batch(access) {
            self.batches += 1;
            self.batch = Gate::default();
            if !access.is_shared() {
                self.batch.push(self.calls, access.clone());
            }
        }
        self.batches - 1
    }

    /// Adds a call to the last batch if it waits for no call of that batch. Returns whether it does.
    fn joins_batch(&mut self, access: &CallAccess) -> bool {
        if access.is_barrier() {
            return false;
        }
        if access.is_shared() && self.batch.is_empty() {
            return true;
        }
        self.batch.push(self.calls, access.clone());
        let joins = self.batch.is_ready(self.calls);
        if access.is_shared() {
            self.batch.remove(self.calls);
        }
        joins
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{CallLock, LockMode, LockedResource};

    /// A call that is safe or not, and reads or writes some of three texts if it has locks.
    fn any_access() -> impl Strategy<Value = CallAccess> {
        let lock = (any::<bool>(), 0..3_u8).prop_map(|(writes, text)| CallLock {
            name: text.to_string(),
            mode: if writes {
                LockMode::Write
            } else {
                LockMode::Read
            },
            resource: LockedResource::Text(text.to_string()),
        });
        let locks = prop::collection::vec(lock, 1..3).prop_map(Into::into);
        (any::<bool>(), prop::option::of(locks))
            .prop_map(|(safe, locks)| CallAccess { safe, locks })
    }

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

        #[test]
        fn a_call_joins_the_last_batch_if_it_waits_for_no_call_of_it(turn in prop::collection::vec(any_access(), 0..40)) {
            let mut partition = BatchPartition::default();
            let mut batches: Vec<Vec<&CallAccess>> = Vec::new();
            for access in &turn {
                let joins = |batch: &Vec<&CallAccess>| batch.iter().all(|other| access.waits_for(other).is_none());
                match batches.last_mut().filter(|batch| joins(batch)) {
                    Some(batch) => batch.push(access),
                    None => batches.push(vec![access]),
                }
                prop_assert_eq!(partition.assign_batch(access), batches.len() - 1);
            }
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
