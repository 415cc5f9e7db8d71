//! Exit statuses of programs.

use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramExit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// It was killed because it, or its whole tree, exceeded a resource limit.
    LimitExceeded(ExceededLimit),
}

/// The resource limit that killed a program. Exceeding any other limit makes a system call fail instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExceededLimit {
    /// [`ResourceLimits::cpu`](crate::ResourceLimits::cpu).
    Cpu,
    /// [`ResourceLimits::processes`](crate::ResourceLimits::processes).
    Processes,
    /// [`ResourceLimits::file_size`](crate::ResourceLimits::file_size).
    FileSize,
}
