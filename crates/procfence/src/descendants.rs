//! The descendants of this process: reaping, signaling and killing them.
//!
//! Only children and their groups are ever signaled: their pids can't be reused before this process reaps them. Deeper
//! descendants are reparented to this process, the subreaper, when the processes above them are gone.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::proc_tree;
use crate::proc_tree::{ProcEntry, ProcessTree};
use crate::signal_fd::SignalFd;
use crate::sys;
use crate::sys::ReapedChild;
use crate::timing::KILL_POLL_INTERVAL;

/// Reaps every child that has exited, and calls `on_exit` for each. Returns whether any children are left.
pub(crate) fn reap_exited(mut on_exit: impl FnMut(ReapedChild)) -> bool {
    loop {
        match sys::wait_any_child() {
            Ok(Some(child)) => on_exit(child),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
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
        match Pid::from_raw(*group).filter(|_| Some(*group) != own_group) {
            // The kernel signals a group as a whole: a process that forks meanwhile can't slip through.
            Some(target) if groups.insert(group) => drop(kill_process_group(target, signal)),
            Some(_) => {}
            None => drop(Pid::from_raw(*pid).map(|pid| kill_process(pid, signal))),
        }
    }
}

/// Kills the children that `should_kill` selects, with all of their descendants, until none is left or `timeout` has
/// elapsed. Returns whether any are left.
pub(crate) fn kill_until_gone(
    signals: &SignalFd,
    timeout: Duration,
    should_kill: impl Fn(Pid) -> bool,
    mut on_exit: impl FnMut(ReapedChild),
) -> io::Result<bool> {
    let started = Instant::now();
    while reap_exited(&mut on_exit) {
        let children = proc_tree::own_children();
        let child_count = children.len();
        let is_target = |child: &ProcEntry| Pid::from_raw(child.pid).is_some_and(&should_kill);
        let targets: Vec<ProcEntry> = children.into_iter().filter(is_target).collect();
        // If no children are visible at all, keep waiting: `reap_exited` found that there are some.
        if targets.is_empty() && child_count > 0 {
            return Ok(false);
        }
        signal_processes(Signal::KILL, &targets);
        if started.elapsed() > timeout {
            return Ok(true);
        }
        signals.wait_for_child(KILL_POLL_INTERVAL)?;
    }
    Ok(false)
}
