//! Kinds of outcomes: the words in which the terminal, the pages and the tables tell people how calls ended.

/// How a call ended, in a word for people. Its [`Status`](crate::types::Status) says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeKind {
    /// It succeeded.
    Ok,
    /// It ran or was about to, and didn't succeed.
    Failed,
    /// It was rejected: it can't be run as it is.
    Rejected,
    /// It was answered without running. A later run may start it.
    Skipped,
    /// It may have had its effect, and nothing says so.
    InDoubt,
    /// It has no end yet, or its end isn't known.
    Unfinished,
}

impl OutcomeKind {
    /// All kinds, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Failed,
        Self::Rejected,
        Self::Skipped,
        Self::InDoubt,
        Self::Unfinished,
    ];

    /// Returns the word.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Skipped => "skipped",
            Self::InDoubt => "in doubt",
            Self::Unfinished => "unfinished",
        }
    }

    /// Returns whether the call counts as a failure: it failed, or was rejected.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Rejected)
    }

    /// Returns the word with what says more: `failed: exit 3`. A cause that is the word itself is left out.
    pub fn with_cause(self, cause: &str) -> String {
        let label = self.label();
        if cause.is_empty() || cause == label {
            label.to_owned()
        } else {
            format!("{label}: {cause}")
        }
    }
}
