//! Says when a batch of a plan runs, and why.

use crate::plan::turn_plan::TurnPlan;

impl TurnPlan<'_> {
    /// `batch 2: 2 in parallel, after call 3, which runs alone`.
    pub fn batch_heading(&self, index: usize) -> String {
        let parts = [Some(self.batch_size(index)), self.barrier_before(index)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }

    /// `batch 2: 2 in parallel`, or `batch 3: alone`.
    pub(crate) fn batch_size(&self, index: usize) -> String {
        let title = self.batch_title(index);
        match self.batches[index].calls.as_slice() {
            [single] if single.accepted.safe || self.waits.is_some() => format!("{title}: 1 call"),
            [_] => format!("{title}: alone"),
            _ => title,
        }
    }

    /// Returns what decided for all calls of a batch whether they run in parallel: `parallel by rule get_*`, or `by rule get_*` if the
    /// heading says the rest. `None` if they differ.
    pub fn common_safety(&self, index: usize) -> Option<String> {
        let (first, others) = self.batches[index].calls.split_first()?;
        let safety = first.safety();
        if others.iter().any(|call| call.safety() != safety) {
            return None;
        }
        let size = self.batch_size(index);
        let is_said = size.ends_with(" in parallel") || size.ends_with(" alone");
        Some(if is_said {
            format!("by {}", first.accepted.safety_source)
        } else {
            safety
        })
    }

    /// Returns what a batch waits for. With locks, each call says that of itself.
    pub(crate) fn barrier_before(&self, index: usize) -> Option<String> {
        if self.waits.is_some() {
            return None;
        }
        let before = self.batches[..index].iter();
        let before = before.flat_map(|batch| &batch.calls).last()?;
        let first = self.batches[index].calls.first()?;
        Some(if first.accepted.safe {
            format!("after call {}, which runs alone", before.call.position)
        } else {
            "after all calls before it".to_owned()
        })
    }
}
