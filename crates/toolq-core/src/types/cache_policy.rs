//! `cache`: when the result of a call answers later calls with the same input.

use std::fmt;
use std::time::Duration;

use crate::text::format_duration;
use crate::types::locks::CallLocks;

/// When the result of an earlier call answers a call with the same input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachePolicy {
    /// How old it may be.
    pub max_age: Duration,
    /// Whether results of earlier runs in the same log count, too.
    pub over_runs: bool,
}

/// A result that later runs find in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// Identifies the tool, `root`, the variables, the input and the locks.
    pub digest: String,
    /// What the call read. `None` if that isn't known.
    pub locks: Option<CallLocks>,
}

/// What the end of a call means for results in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheNote {
    /// The call's own result, if later runs may find it.
    pub kept: Option<KeptResult>,
    /// The call may have changed something that its locks at the start don't say.
    pub changed_more: bool,
}

/// `cached for 10m`, or `cached for 10m over runs`.
impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over_runs = if self.over_runs { " over runs" } else { "" };
        write!(f, "cached for {}{over_runs}", format_duration(self.max_age))
    }
}
