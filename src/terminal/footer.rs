//! What stands behind the bar of all calls.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is said about all calls.
#[derive(Default)]
pub(crate) struct Footer {
    /// Number of running calls without a bar.
    hidden_count: AtomicUsize,
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

    fn lock_batch_label(&self) -> MutexGuard<'_, String> {
        let label = self.batch_label.lock();
        label.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns as much as fits into `columns`: the batch and the number of hidden calls, only that number, or nothing.
    pub(crate) fn text(&self, columns: usize) -> String {
        let label = self.lock_batch_label().clone();
        let more = match self.hidden_count.load(Relaxed) {
            0 => None,
            hidden => Some(format!("{hidden} more")),
        };
        let label = Some(label).filter(|label| !label.is_empty());
        let parts: Vec<String> = label.into_iter().chain(more.clone()).collect();
        let texts = [Some(parts.join(", ")), more];
        let fitting = texts
            .into_iter()
            .flatten()
            .find(|text| text.len() <= columns);
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
    }
}
