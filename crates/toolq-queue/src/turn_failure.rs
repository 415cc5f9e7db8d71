//! Why a worker can't run a turn, which decides what becomes of the turn.

use std::io;

use toolq_log::LogError;

/// Why a turn can't be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TurnFailure {
    /// Another worker, or a later moment, may have more luck: the disk is full, or the server doesn't answer.
    #[error("{0}")]
    Passing(String),
    /// Only a newer toolq knows what the stream has of it.
    #[error("{0}")]
    NeedsNewer(String),
    /// No worker can continue what the stream has of it.
    #[error("{0}")]
    Permanent(String),
}

/// Files of a turn are on this machine alone.
impl From<io::Error> for TurnFailure {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

impl From<LogError> for TurnFailure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io { .. } => Self::Passing(error.to_string()),
            LogError::NewerFormat { .. } => Self::NeedsNewer(error.to_string()),
            _ => Self::Permanent(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_full_disk_says_nothing_about_a_turn() {
        let path = PathBuf::from("turn.jsonl");
        let full = LogError::Io {
            path: path.clone(),
            action: "written",
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(full.into(), TurnFailure::Passing(_)));
        let newer = LogError::NewerFormat {
            path: path.clone(),
            major: 9,
            minor: 0,
        };
        assert!(matches!(newer.into(), TurnFailure::NeedsNewer(_)));
        let damaged = LogError::NotALog(path);
        assert!(matches!(damaged.into(), TurnFailure::Permanent(_)));
    }
}
