//! System calls that decide which process gets CPU time, so that a reaper is faster than what it kills. This file
//! contains unsafe code.

use libc::c_int;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Keeps a process that is about to be killed from forking: it runs only when nothing else does, and, unless it is
/// privileged, may not have more processes. Its children inherit both.
pub(crate) fn slow_down(process: Pid) {
    let no_more = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // It may have exited, or belong to another user. Then the next look finds out.
    let _ = prlimit(Some(process), Resource::Nproc, no_more);
    set_scheduling(process.as_raw_nonzero().get(), libc::SCHED_IDLE, 0);
}

/// Until this is dropped, this process runs before all processes without real-time scheduling, if it is privileged.
///
/// Without it, a fork bomb that puts each process into a new session would leave this process hardly any CPU time: with
/// autogroups (sched(7)), each session gets an equal share, regardless of the policy of its processes.
pub(crate) struct RealTimeSpan {
    is_real_time: bool,
}

impl RealTimeSpan {
    pub(crate) fn begin() -> Self {
        // SAFETY: this takes no pointers.
        let policy = unsafe { libc::sched_getscheduler(0) };
        // A policy that was set explicitly is kept. With SCHED_RESET_ON_FORK, children start without real-time
        // scheduling.
        let is_real_time = policy == libc::SCHED_OTHER
            && set_scheduling(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
        Self { is_real_time }
    }
}

impl Drop for RealTimeSpan {
    fn drop(&mut self) {
        if self.is_real_time {
            set_scheduling(0, libc::SCHED_OTHER, 0);
        }
    }
}

/// Sets the scheduling policy of a process (0: this one). Returns whether the system allowed it.
fn set_scheduling(process: i32, policy: c_int, priority: c_int) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameters` is valid for reading.
    unsafe { libc::sched_setscheduler(process, policy, &raw const parameters) == 0 }
}
