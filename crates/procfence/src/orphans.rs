//! The host's own cleanup, for the worst case: a program killed both its reaper and the supervisor, so its orphans are
//! reparented to the host.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::descendants;
use crate::proc_tree;
use crate::proc_tree::ProcEntry;
use crate::timing::{MAX_SWEEPS, SWEEP_INTERVAL};

/// The pids of all supervisors of this process. Reapers stay in their supervisor's session; programs never do.
static SUPERVISORS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// There are reapers that may release what they started. Released processes must not be reparented to this process.
static HAS_LENIENT_POOL: AtomicBool = AtomicBool::new(false);

/// Makes this process the subreaper of last resort, unless it has a lenient pool.
pub(crate) fn become_subreaper(lenient: bool) {
    let lenient = HAS_LENIENT_POOL.fetch_or(lenient, Ordering::Relaxed) || lenient;
    // If this fails, the supervisors still do their part.
    let _ = set_child_subreaper((!lenient).then(getpid));
}

/// Records the pid of a supervisor.
pub(crate) fn register_supervisor(supervisor: Pid) {
    SUPERVISORS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(supervisor.as_raw_nonzero().get());
}

/// Kills and reaps orphans whose reaper and supervisor are gone. Returns when no orphan is left, or after about a
/// second. Reapers of `closed_supervisor` are waited for, but not killed, because they exit by themselves.
pub(crate) fn kill_and_reap(closed_supervisor: Option<Pid>) {
    let supervisors = SUPERVISORS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let own_session = proc_tree::own_process().map(|own| own.session);
    let closed_supervisor = closed_supervisor.map(|supervisor| supervisor.as_raw_nonzero().get());
    for _ in 0..MAX_SWEEPS {
        let children = proc_tree::own_children().into_iter();
        let outsiders = children.filter(|child| {
            Some(child.session) != own_session && !supervisors.contains(&child.pid)
        });
        let (reapers, orphans): (Vec<ProcEntry>, Vec<ProcEntry>) =
            outsiders.partition(|child| supervisors.contains(&child.session));
        descendants::signal_processes(Signal::KILL, &orphans);
        let pids = reapers.iter().chain(&orphans).map(|child| child.pid);
        for pid in pids.filter_map(Pid::from_raw) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        let is_awaited = |reaper: &ProcEntry| Some(reaper.session) == closed_supervisor;
        if orphans.is_empty() && !reapers.iter().any(is_awaited) {
            return;
        }
        thread::sleep(SWEEP_INTERVAL);
    }
}
