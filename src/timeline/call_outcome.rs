//! How a call ended, as pages and traces tell calls apart.

use toolq_log::CallEvent;

/// How a call ended, as pages and traces tell calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallOutcome {
    Ok,
    Failed,
    /// It was rejected before it could start.
    Rejected,
    /// It was answered without running.
    Skipped,
    InDoubt,
    /// It has no end in the log.
    Unfinished,
}

impl CallOutcome {
    /// All outcomes, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] = [
        Self::Ok,
        Self::Failed,
        Self::Rejected,
        Self::Skipped,
        Self::InDoubt,
        Self::Unfinished,
    ];

    /// Returns the words for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Skipped => "skipped",
            Self::InDoubt => "in doubt",
            Self::Unfinished => "unfinished",
        }
    }

    /// Returns the outcome of a call that ends with this record.
    pub(super) fn of_end(event: &CallEvent<'_>) -> Self {
        match event {
            CallEvent::Result(end) if end.status.is_rejected() => Self::Rejected,
            CallEvent::Skipped(_) => Self::Skipped,
            CallEvent::InDoubt(_) => Self::InDoubt,
            CallEvent::Resolved(resolve) if !resolve.done => Self::Unfinished,
            event if event.is_error() => Self::Failed,
            _ => Self::Ok,
        }
    }
}
