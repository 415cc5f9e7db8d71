//! What stands behind the bar of all calls.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is said about all calls.
#[derive(Default)]
pub(crate) struct Footer {
    /// Number of running calls without a bar.
    hidden_count: AtomicUsize,
    /// Number of calls that failed.
    failure_count: AtomicUsize,
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

    /// Counts a call that failed.
    pub(crate) fn count_failure(&self) {
        self.failure_count.fetch_add(1, Relaxed);
    }

    fn lock_batch_label(&self) -> MutexGuard<'_, String> {
        let label = self.batch_label.lock();
        label.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns as much as fits into `columns`: how many calls failed, the batch, and the number of hidden calls.
    pub(crate) fn text(&self, columns: usize) -> String {
        let label = self.lock_batch_label().clone();
        let count = |count: &AtomicUsize, what: &str| match count.load(Relaxed) {
            0 => None,
            count => Some(format!("{count} {what}")),
        };
        let failed = count(&self.failure_count, "failed");
        let more = count(&self.hidden_count, "more");
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
        footer.count_failure();
        assert_eq!(footer.text(41), "1 failed, 40 calls, 10 at a time, 22 more");
        assert_eq!(footer.text(30), "1 failed, 22 more");
    }
}
