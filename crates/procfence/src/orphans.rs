//! The host's own cleanup, for the worst case: a program killed both its reaper and the supervisor, so its orphans are
//! reparented to the host.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::descendants::{self, ProcEntry};
use crate::timing::{MAX_SWEEPS, SWEEP_INTERVAL};

/// The children of this process that aren't orphans. Held while a supervisor starts and while orphans are killed, so that
/// a supervisor isn't taken for an orphan before its pid is recorded.
static KNOWN_CHILDREN: Mutex<KnownChildren> = Mutex::new(KnownChildren {
    supervisors: BTreeSet::new(),
    earlier: None,
});

/// There are reapers that may release what they started. Released processes must not be reparented to this process.
static HAS_LENIENT_POOL: AtomicBool = AtomicBool::new(false);

struct KnownChildren {
    /// The pids of all supervisors of this process. Reapers stay in their supervisor's session; programs never do.
    supervisors: BTreeSet<i32>,
    /// The pids and start times of the children that this process had before it started a supervisor. They are its own:
    /// no orphan of a program can be among them.
    earlier: Option<BTreeSet<(i32, u64)>>,
}

impl KnownChildren {
    fn lock() -> MutexGuard<'static, Self> {
        KNOWN_CHILDREN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_earlier(&self, child: &ProcEntry) -> bool {
        let earlier = self.earlier.as_ref();
        earlier.is_some_and(|earlier| earlier.contains(&(child.pid, child.start_time)))
    }
}

/// Makes this process the subreaper of last resort, unless it has a lenient pool.
pub(crate) fn become_subreaper(lenient: bool) {
    let lenient = HAS_LENIENT_POOL.fetch_or(lenient, Ordering::Relaxed) || lenient;
    // If this fails, the supervisors still do their part.
    let _ = set_child_subreaper((!lenient).then(getpid));
}

/// Starts a supervisor with `spawn`, and records its pid.
///
/// # Errors
/// Those of `spawn`.
pub(crate) fn spawn_supervisor<E>(spawn: impl FnOnce() -> Result<Pid, E>) -> Result<Pid, E> {
    let mut known = KnownChildren::lock();
    known.earlier.get_or_insert_with(|| {
        let children = descendants::own_children().into_iter();
        children
            .map(|child| (child.pid, child.start_time))
            .collect()
    });
    let supervisor = spawn()?;
    known.supervisors.insert(supervisor.as_raw_nonzero().get());
    Ok(supervisor)
}

/// Kills and reaps orphans whose reaper and supervisor are gone. Returns when no orphan is left, or after about a
/// second. Waits for the reapers of `closed_supervisors`, too: their sockets are closed, so they exit by themselves.
pub(crate) fn kill_and_reap(closed_supervisors: &[Pid]) {
    let closed = closed_supervisors.iter();
    let closed: Vec<i32> = closed.map(|pid| pid.as_raw_nonzero().get()).collect();
    for _ in 0..MAX_SWEEPS {
        if !sweep(&closed) {
            return;
        }
        thread::sleep(SWEEP_INTERVAL);
    }
}

/// Kills and reaps orphans once. Returns whether there were any, or may be soon, or reapers of `closed_supervisors`.
fn sweep(closed_supervisors: &[i32]) -> bool {
    let known = KnownChildren::lock();
    // Without it, nothing tells which children are this process's own.
    let Some(own) = descendants::own_process() else {
        return false;
    };
    let children = descendants::own_children();
    let own_children = children.iter().filter(|child| known.is_earlier(child));
    let own_sessions: BTreeSet<i32> = own_children
        .map(|child| child.session)
        .chain([own.session])
        .collect();
    let is_supervisor = |child: &ProcEntry| known.supervisors.contains(&child.pid);
    let is_reaper = |child: &ProcEntry| known.supervisors.contains(&child.session);
    // What they have started is reparented to this process at the end of their exit: the next sweep finds it.
    let has_heirs_to_come = children.iter().any(|child| {
        let has_left_heirs = is_supervisor(child) && child.has_exited;
        child.is_exiting && is_reaper(child) && !has_left_heirs
    });
    let outsiders = children
        .into_iter()
        .filter(|child| !own_sessions.contains(&child.session) && !is_supervisor(child));
    let (mut reapers, orphans): (Vec<ProcEntry>, Vec<ProcEntry>) = outsiders.partition(is_reaper);
    descendants::signal_processes(Signal::KILL, &orphans);
    let pids = reapers.iter().chain(&orphans).map(|child| child.pid);
    for pid in pids.filter_map(Pid::from_raw) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    reapers.retain(|reaper| closed_supervisors.contains(&reaper.session));
    // A program may have stopped its reaper.
    descendants::signal_processes(Signal::CONT, &reapers);
    !orphans.is_empty() || !reapers.is_empty() || has_heirs_to_come
}
