//! The channel by which a running attempt reports progress.

use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// The maximum number of progress updates that wait to be shown. Further ones are dropped: people couldn't read
/// that many, and they must not fill up memory.
pub(crate) const MAX_QUEUED_PROGRESS: usize = 256;

/// A progress update about a running call, shown to people.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) message: Option<String>,
    /// From 0 to 1.
    pub(crate) fraction: Option<f64>,
    /// What to show as its parameters.
    pub(crate) params: Option<Box<RawValue>>,
    /// What to show as its result.
    pub(crate) result: Option<Box<RawValue>>,
}

/// Sends the progress updates of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    pub(crate) updates: mpsc::Sender<Progress>,
    /// Whether the updates are shown.
    pub(crate) is_shown: bool,
}

impl ProgressSender {
    pub(crate) fn send(&self, progress: Progress) {
        // When the queue is full, the update is dropped on purpose.
        let _ = self.updates.try_send(progress);
    }

    pub(crate) fn send_message(&self, message: String) {
        self.send(Progress {
            message: Some(message),
            ..Progress::default()
        });
    }
}
