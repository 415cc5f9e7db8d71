//! What people are told while a command of a queue runs.

use std::fmt;
use std::sync::Arc;

/// Tells people what happens. Clones tell the same people.
#[derive(Clone)]
pub struct Notices {
    note: Arc<dyn Fn(&str) + Send + Sync>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Notices {
    /// What is as it should be goes to `note`, what isn't to `warn`.
    pub fn new(
        note: impl Fn(&str) + Send + Sync + 'static,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            note: Arc::new(note),
            warn: Arc::new(warn),
        }
    }

    pub(crate) fn note(&self, message: &str) {
        (self.note)(message);
    }

    pub(crate) fn warn(&self, message: &str) {
        (self.warn)(message);
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Notices")
    }
}
