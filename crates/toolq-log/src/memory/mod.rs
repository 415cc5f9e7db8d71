//! The memory: whether a call has run before. A call that writes runs once, whatever form its input comes in and whatever
//! happened meanwhile.
//!
//! The crate's `identity` says which calls are the same, and `decision` which of several earlier calls that look alike a call is
//! and what becomes of it. Both are pure. The crate's `claims` keeps one entry for each attempt, and a `log_index` knows what a
//! log says about them. `store` finds both, `recollection` makes the answer of it, and `doubts` and `approvals` are what people see and say.

mod approvals;
mod decision;
mod doubts;
mod known_call;
mod log_index;
mod recollection;
mod store;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::records::blob_dir_for;

pub use crate::claims::{Claim, ClaimsDir, Decided, EntryName, Made, Question, Settlement};
pub use crate::identity::{Identity, MemoryKey, Remembered};
pub use approvals::{WaitingCall, asked_digest, decide_call, waiting_calls};
pub(crate) use doubts::find_call;
pub use doubts::{CallInDoubt, SettleError, SettledCall, calls_in_doubt, settled_calls};
pub(crate) use log_index::LogIndex;
pub use store::MemoryStore;

// Where a memory is, and how a session uses it.

/// Where a memory is.
#[derive(Debug, Clone)]
pub enum RememberedIn {
    /// In the folders that the runs of a user share.
    State {
        /// The entries.
        claims: PathBuf,
        /// The logs.
        sessions: PathBuf,
    },
    /// In a log that the user named, and that only one run at a time writes. What others say about its calls is beside it.
    Log {
        /// What is beside it.
        entries: PathBuf,
    },
}

impl RememberedIn {
    /// The memory that the runs of a user share, in the directory that toolq has for its state.
    pub fn state(state_dir: &Path) -> Self {
        Self::State {
            claims: state_dir.join("claims"),
            sessions: state_dir.join("sessions"),
        }
    }

    /// The memory that a log belongs to: the one that the runs of a user share if the log lies in their folder, which is below
    /// `state_dir`, or else the log itself.
    pub fn of_log(log: &Path, state_dir: Option<&Path>) -> Self {
        if let Some(state_dir) = state_dir {
            let shared = Self::state(state_dir);
            let is_named_as_one = log
                .extension()
                .is_some_and(|extension| extension == "jsonl");
            if let Self::State { sessions, .. } = &shared
                && is_named_as_one
                && is_in(log, sessions)
            {
                return shared;
            }
        }
        Self::log(log)
    }

    /// The log at this path.
    pub fn log(path: &Path) -> Self {
        Self::Log {
            entries: blob_dir_for(path),
        }
    }
}

/// Which calls run again although they have run before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RunAgain {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those with these ids.
    Ids(HashSet<String>),
}

/// How a session uses the memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryUse {
    /// Which of its calls are remembered.
    pub remembered: Remembered,
    /// Which run again.
    pub again: RunAgain,
}

fn is_in(log: &Path, dir: &Path) -> bool {
    let parent = match log.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return false,
    };
    match (parent.canonicalize(), dir.canonicalize()) {
        (Ok(parent), Ok(dir)) => parent == dir,
        _ => false,
    }
}
