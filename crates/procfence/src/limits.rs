//! Resource limits of a program.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Resource limits for one program. `None` leaves the limit of the system in place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processor time of each process, in whole seconds.
    pub cpu: Option<Duration>,
    /// Address space of each process, in bytes.
    pub memory: Option<u64>,
    /// Number of descriptors that each process may have open.
    pub files: Option<u64>,
    /// Number of processes that may live at the same time in the whole tree. The reaper counts them.
    pub processes: Option<u64>,
    /// Size of any one file that a process writes, in bytes.
    pub file_size: Option<u64>,
}
