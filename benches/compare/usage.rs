//! What the system says of a child that ended: how, and what it used.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::Result;

/// What a child used, and those of its own children that it waited for.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Time on processors, for itself and in the system for it.
    pub processor: Duration,
    /// The most memory that one of them held at once, in MB (10⁶ bytes).
    pub memory_mb: f64,
}

/// Waits for a child.
///
/// As to memory, a child starts out with this process's own figure (its pages until `exec`), so this process has to stay
/// small.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn wait(child: &Child) -> Result<(ExitStatus, Usage)> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: both pointers are valid for writing for the whole call, and the child is ours and not yet waited for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: wait4 has filled it, since it returned the child's pid.
    let usage = unsafe { usage.assume_init() };
    let usage = Usage {
        processor: duration(usage.ru_utime)? + duration(usage.ru_stime)?,
        memory_mb: usage.ru_maxrss as f64 * 1024.0 / 1e6, // Linux counts in KiB
    };
    Ok((ExitStatus::from_raw(status), usage))
}

fn duration(time: libc::timeval) -> Result<Duration> {
    let micros = Duration::from_micros(time.tv_usec.try_into()?);
    Ok(Duration::from_secs(time.tv_sec.try_into()?) + micros)
}
