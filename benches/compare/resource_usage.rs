//! The exit status and resource usage of a child process.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use crate::Result;

/// Resources used by a child and the descendants that were waited for.
#[derive(Debug, Clone, Copy)]
pub struct ResourceUsage {
    /// CPU time, user and system.
    pub cpu_time: Duration,
    /// The largest peak memory of any one of these processes, in MB (10⁶ bytes).
    pub peak_memory_mb: f64,
}

/// Waits for a child and returns its resource usage.
///
/// A child's peak memory starts at that of this process, whose pages it has until `exec`. So this process has to stay
/// small.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn wait_with_usage(child: &Child) -> Result<(ExitStatus, ResourceUsage)> {
    let pid = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: both pointers are valid for writing for the whole call, and the child is ours and not yet waited for.
    let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    if waited != pid {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: wait4 returned the child's pid, so it has filled in `usage`.
    let usage = unsafe { usage.assume_init() };
    let usage = ResourceUsage {
        cpu_time: duration_from_timeval(usage.ru_utime)? + duration_from_timeval(usage.ru_stime)?,
        peak_memory_mb: usage.ru_maxrss as f64 * 1024.0 / 1e6, // in KiB on Linux
    };
    Ok((ExitStatus::from_raw(status), usage))
}

fn duration_from_timeval(time: libc::timeval) -> Result<Duration> {
    let micros = Duration::from_micros(time.tv_usec.try_into()?);
    Ok(Duration::from_secs(time.tv_sec.try_into()?) + micros)
}
