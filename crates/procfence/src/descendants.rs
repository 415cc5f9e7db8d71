//! The descendants of this process: reaping, signaling and killing them.
//!
//! Only children and their groups are ever signaled: their pids can't be reused before this process reaps them. Deeper
//! descendants are reparented to this process, the subreaper, when the processes above them are gone. This file contains unsafe code.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use libc::c_int;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group, prlimit};

use crate::forked_child::{self, ReapedChild};
use crate::proc_tree::{self, ProcEntry, ProcessTree};
use crate::signal_fd::SignalFd;
use crate::timing::KILL_POLL_INTERVAL;

/// Processes that survive this many rounds of killing are slowed down, because they fork faster than they are killed.
const BRAKE_ROUND: u32 = 1;
/// A process that forks and exits all the time makes zombies as fast as they are reaped, so reaping must end sometime.
const MAX_REAPED_AT_ONCE: usize = 256;
/// How many are reaped before each look for living processes, which takes longer the more zombies there are. By default,
/// a system has no more pids than half of this.
const MAX_REAPED_BEFORE_KILL: usize = 1 << 16;

/// Reaps children that have exited, and calls `on_exit` for each. Returns whether any children are left. If more have
/// exited than are reaped at once, the next wait on `signals` returns at once.
pub(crate) fn reap_exited(signals: &SignalFd, on_exit: impl FnMut(ReapedChild)) -> bool {
    reap_at_most(MAX_REAPED_AT_ONCE, signals, on_exit)
}

fn reap_at_most(max: usize, signals: &SignalFd, mut on_exit: impl FnMut(ReapedChild)) -> bool {
    for _ in 0..max {
        match forked_child::wait_any_child() {
            Ok(Some(child)) => on_exit(child),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
    signals.expect_exits();
    true
}

/// Counts the living descendants of this process.
pub(crate) fn count_living() -> u64 {
    let tree = ProcessTree::read();
    let mut unvisited = vec![proc_tree::own_pid()];
    let mut living = 0;
    while let Some(parent) = unvisited.pop() {
        for child in tree.children(parent) {
            living += u64::from(!child.has_exited);
            unvisited.push(child.pid);
        }
    }
    living
}

/// Sends a signal to each child and its process group.
pub(crate) fn signal_children(signal: Signal) {
    signal_processes(signal, &proc_tree::own_children());
}

/// Sends a signal to each of these processes and its process group, once per group.
pub(crate) fn signal_processes(signal: Signal, processes: &[ProcEntry]) {
    let own_group = proc_tree::own_process().map(|own| own.group);
    let mut groups = BTreeSet::new();
    for ProcEntry { pid, group, .. } in processes {
        // A process that is being reaped has no group anymore (-1), and signaling group 1 would mean every process.
        let may_signal = *group > 1 && Some(*group) != own_group;
        match Pid::from_raw((*group).max(0)).filter(|_| may_signal) {
            // The kernel signals a group as a whole: a process that forks meanwhile can't slip through.
            Some(target) if groups.insert(group) => drop(kill_process_group(target, signal)),
            Some(_) => {}
            None => drop(Pid::from_raw(*pid).map(|pid| kill_process(pid, signal))),
        }
    }
}

/// Kills the children that `should_kill` selects, with all of their descendants, until they are gone or `timeout` has
/// elapsed. Returns whether any are left.
pub(crate) fn kill_until_gone(
    signals: &SignalFd,
    timeout: Duration,
    should_kill: impl Fn(Pid) -> bool,
    mut on_exit: impl FnMut(ReapedChild),
) -> io::Result<bool> {
    let started = Instant::now();
    let _real_time = RealTimeSpan::begin();
    for round in 0_u32.. {
        if !reap_at_most(MAX_REAPED_BEFORE_KILL, signals, &mut on_exit) {
            break;
        }
        let children = proc_tree::own_child_pids();
        let child_count = children.len();
        let targets: Vec<Pid> = children
            .into_iter()
            .filter(|pid| should_kill(*pid))
            .collect();
        // If no children are visible at all, keep waiting: `reap_exited` found that there are some.
        if targets.is_empty() && child_count > 0 {
            break;
        }
        kill_children(&targets, round >= BRAKE_ROUND);
        if started.elapsed() > timeout {
            return Ok(true);
        }
        // A process that can't be killed at all, such as one that waits for a dead disk, isn't worth a busy loop.
        signals.wait_for_child(KILL_POLL_INTERVAL.max(started.elapsed() / 50))?;
    }
    Ok(false)
}

/// Kills children and their groups, in as little time as possible: a process that forks must not get ahead of this.
fn kill_children(children: &[Pid], brake: bool) {
    let mut members = Vec::new();
    // The youngest first: the others may be about to exit.
    for child in children.iter().rev() {
        // A group with the pid of a child that wasn't reaped is that child's own.
        let leads_group = kill_process_group(*child, Signal::KILL).is_ok();
        let _ = kill_process(*child, Signal::KILL);
        if brake {
            slow_down(*child);
        }
        if !leads_group {
            members.push(*child);
        }
    }
    let members: Vec<ProcEntry> = members.into_iter().map(ProcEntry::find).collect();
    signal_processes(Signal::KILL, &members);
}

// Which process gets CPU time, so that a reaper is faster than what it kills.

/// Keeps a process that is about to be killed from forking: it runs only when nothing else does, and, unless it is
/// privileged, may not have more processes. Its children inherit both.
fn slow_down(process: Pid) {
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
struct RealTimeSpan {
    is_real_time: bool,
}

impl RealTimeSpan {
    fn begin() -> Self {
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
