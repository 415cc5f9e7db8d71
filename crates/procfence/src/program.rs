//! A program: what it is started with, and how it ended.

use std::ffi::CString;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::time::Duration;

use libc::c_char;
use serde::{Deserialize, Serialize};

use crate::sandbox::ProgramSandbox;

/// A program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// The executable file.
    pub path: CString,
    /// The arguments, starting with the program's own name.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// Applied by reapers before the program starts; ignored by [`spawn`](crate::spawn).
    pub limits: ResourceLimits,
    /// What the program can reach. Applied by reapers; ignored by [`spawn`](crate::spawn).
    pub sandbox: Option<ProgramSandbox>,
    /// The time between SIGTERM and SIGKILL if the host is gone, at most [`MAX_HOST_EXIT_GRACE`]. Used by reapers;
    /// ignored by [`spawn`](crate::spawn).
    ///
    /// [`MAX_HOST_EXIT_GRACE`]: crate::timing::MAX_HOST_EXIT_GRACE
    pub host_exit_grace: Duration,
    /// Whether the reaper replies with the program's process id once it runs.
    pub reports_pid: bool,
}

/// What becomes descriptors 0, 1, 2 and 3 of the program, the only ones it gets. All must be 4 or higher.
pub type ChildDescriptors<'a> = [BorrowedFd<'a>; 4];

/// Returns pointers to the strings, followed by a null pointer, as C expects.
pub(crate) fn null_terminated_pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([ptr::null_mut()]).collect()
}

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
