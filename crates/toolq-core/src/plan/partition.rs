//! Which batch a call belongs to, decided as calls come in. The one rule behind what `plan` prints and `run` does.

/// Numbers the batches of one turn: consecutive safe calls share a batch, an unsafe call has one of its own.
///
/// Only calls that will run are placed: a call that doesn't run separates nothing.
#[derive(Debug, Clone, Default)]
pub struct Partition {
    batches: usize,
    /// The last batch holds safe calls, so that another safe one may join it.
    open: bool,
}

impl Partition {
    /// The batch of the next call in call order, counted from 0.
    pub fn place(&mut self, safe: bool) -> usize {
        if !(safe && self.open) {
            self.batches += 1;
        }
        self.open = safe;
        self.batches - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same rule written as grouping a whole turn.
    fn grouped(turn: &[bool]) -> Vec<usize> {
        turn.chunk_by(|left, right| *left && *right)
            .enumerate()
            .flat_map(|(batch, calls)| vec![batch; calls.len()])
            .collect()
    }

    proptest! {
        #[test]
        fn placing_one_by_one_is_grouping_the_turn(turn in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut partition = Partition::default();
            let placed: Vec<usize> = turn.iter().map(|safe| partition.place(*safe)).collect();
            prop_assert_eq!(placed, grouped(&turn));
        }
    }

    #[test]
    fn reads_run_together_and_a_write_alone() {
        let mut partition = Partition::default();
        let batches = [true, true, false, false, true].map(|safe| partition.place(safe));
        assert_eq!(batches, [0, 0, 1, 2, 3]);
    }
}
