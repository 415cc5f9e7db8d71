//! Starts programs, and watches for their exit. This file contains unsafe code.
//!
//! Don't `fork` in the host unless the C library is too old for `posix_spawn`: with a gigabyte in memory, copying the page
//! tables would take longer than most programs run. `posix_spawn` doesn't copy them, but it can't run code of this crate
//! in the child before the program starts.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Once;
use std::time::Duration;

use libc::{c_char, c_int};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[cfg(target_os = "linux")]
use crate::fork_spawn::fork_spawn;
use crate::limits::ResourceLimits;
use crate::posix_spawn::{FileActionFunctions, posix_spawn};
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
    /// Applied by reapers before the program starts; ignored by [`spawn`].
    pub limits: ResourceLimits,
    /// What the program can reach. Applied by reapers; ignored by [`spawn`].
    pub sandbox: Option<ProgramSandbox>,
    /// The time between SIGTERM and SIGKILL if the host is gone, at most [`MAX_HOST_EXIT_GRACE`]. Used by reapers;
    /// ignored by [`spawn`].
    ///
    /// [`MAX_HOST_EXIT_GRACE`]: crate::timing::MAX_HOST_EXIT_GRACE
    pub host_exit_grace: Duration,
    /// Whether the reaper replies with the program's process id once it runs.
    pub reports_pid: bool,
}

/// What becomes descriptors 0, 1, 2 and 3 of the program, the only ones it gets. All must be 4 or higher.
pub type ChildDescriptors<'a> = [BorrowedFd<'a>; 4];

/// Starts a program as the leader of its own session and process group, with default signals. Doesn't apply its
/// limits or its sandbox, since no code can run in the child before the program starts.
///
/// # Errors
/// The operating system's error number. Nothing ran.
pub fn spawn(request: &SpawnRequest, descriptors: &ChildDescriptors<'_>) -> Result<Pid, c_int> {
    static SIGCHLD: Once = Once::new();
    SIGCHLD.call_once(restore_default_sigchld);
    match FileActionFunctions::find() {
        Some(functions) => posix_spawn(request, descriptors, functions),
        #[cfg(target_os = "linux")]
        None => fork_spawn(request, descriptors),
        #[cfg(not(target_os = "linux"))]
        None => Err(libc::ENOSYS),
    }
}

/// Looks up what [`spawn`] needs of the C library. Otherwise the first program that this process starts does it.
#[cfg(target_os = "linux")]
pub(crate) fn find_functions() {
    FileActionFunctions::find();
}

/// Returns a descriptor that becomes readable when the process exits (a pidfd), or `None` if the system doesn't support
/// that or can't provide one now.
pub fn watch_for_exit(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    #[cfg(target_os = "linux")]
    {
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        // SAFETY: an owned descriptor stays open and unchanged as long as its owner lives.
        unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }.ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Restores the default action of SIGCHLD, which a parent may have passed on as ignored: exit codes would be lost.
fn restore_default_sigchld() {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only returns the current one; setting the default runs no code of ours.
    unsafe {
        let result = libc::sigaction(libc::SIGCHLD, ptr::null(), action.as_mut_ptr());
        if result == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Returns pointers to the strings, followed by a null pointer, as C expects.
pub(crate) fn null_terminated_pointers(strings: &[CString]) -> Vec<*mut c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
    pointers.chain([ptr::null_mut()]).collect()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
