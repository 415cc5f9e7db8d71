//! The text after the bar of all calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolq_core::types::OutcomeKind;

/// What is said about all calls.
#[derive(Default)]
pub(crate) struct Footer {
    /// Number of running calls without a bar.
    hidden_count: AtomicUsize,
    /// Numbers of calls that didn't succeed, by the words for that.
    failure_counts: Mutex<BTreeMap<OutcomeKind, usize>>,
    /// The size of the current batch, or nothing.
    batch_label: Mutex<String>,
}

impl Footer {
    /// Sets what is said about the current batch.
    pub(crate) fn set_batch_label(&self, label: String) {
        *self.lock_batch_label() = label;
    }

    /// Sets the number of running calls without a bar. Returns whether it has changed.
    pub(crate) fn set_hidden_count(&self, count: usize) -> bool {
        self.hidden_count.swap(count, Relaxed) != count
    }

    /// Counts a call that didn't succeed.
    pub(crate) fn count_failure(&self, kind: OutcomeKind) {
        *self.lock_failure_counts().entry(kind).or_default() += 1;
    }

    fn lock_failure_counts(&self) -> MutexGuard<'_, BTreeMap<OutcomeKind, usize>> {
        let counts = self.failure_counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner)
    }

    /// Formats how many calls didn't succeed: `2 failed, 1 rejected`.
    fn failures_text(&self) -> Option<String> {
        let counts = self.lock_failure_counts();
        let texts = counts
            .iter()
            .map(|(kind, count)| format!("{count} {}", kind.label()));
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    fn lock_batch_label(&self) -> MutexGuard<'_, String> {
        let label = self.batch_label.lock();
        label.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns as much as fits into `columns`: how many calls didn't succeed, the batch, and the number of hidden calls.
    pub(crate) fn text(&self, columns: usize) -> String {
        let label = self.lock_batch_label().clone();
        let failed = self.failures_text();
        let more = match self.hidden_count.load(Relaxed) {
            0 => None,
            count => Some(format!("{count} more")),
        };
        let label = Some(label).filter(|label| !label.is_empty());
        let join = |parts: &[&Option<String>]| {
            let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
            parts.join(", ")
        };
        let texts = [
            join(&[&failed, &label, &more]),
            join(&[&failed, &more]),
            join(&[&more]),
        ];
        let fitting = texts.into_iter().find(|text| text.len() <= columns);
        fitting.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What doesn't fit is left out, instead of being cut in the middle.
    #[test]
    fn a_narrow_footer_says_less() {
        let footer = Footer::default();
        assert_eq!(footer.text(100), "");
        footer.set_batch_label("40 calls, 10 at a time".to_owned());
        assert_eq!(footer.text(100), "40 calls, 10 at a time");
        assert_eq!(footer.text(20), "");
        assert!(footer.set_hidden_count(22));
        assert!(!footer.set_hidden_count(22));
        assert_eq!(footer.text(31), "40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "22 more");
        assert_eq!(footer.text(6), "");
        footer.count_failure(OutcomeKind::Failed);
        assert_eq!(footer.text(41), "1 failed, 40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "1 failed, 22 more");
        for kind in [OutcomeKind::Rejected, OutcomeKind::Rejected] {
            footer.count_failure(kind);
        }
        assert_eq!(footer.text(30), "1 failed, 2 rejected, 22 more");
    }
}
