//! Resource limits of a program.

use std::time::Duration;

/// Resource limits for one program. `None` sets no limit beyond what the system already sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Processor time of each process, in whole seconds.
    pub cpu: Option<Duration>,
    /// Address space of each process, in bytes.
    pub memory: Option<u64>,
    /// Descriptors that each process may have open.
    pub files: Option<u64>,
    /// Processes of the whole tree that may live at the same time. Counted by the reaper.
    pub processes: Option<u64>,
    /// Size of one file that a process writes, in bytes.
    pub file_size: Option<u64>,
}
