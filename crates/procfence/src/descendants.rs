//! The descendants of this process: reaping, signaling and killing them.
//!
//! Only children and their groups are ever signaled: their pids can't be reused before this process reaps them. Deeper
//! descendants are reparented to this process, the subreaper, when the processes above them are gone. This file contains unsafe code.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use libc::c_int;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, kill_process_group, prlimit,
    set_child_subreaper, waitpid,
};

use crate::forked_child::{self, ReapedChild};
use crate::signal_fd::SignalFd;
use crate::timing::{KILL_POLL_INTERVAL, MAX_SWEEPS, SWEEP_INTERVAL};

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
    let mut unvisited = vec![own_pid()];
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
    signal_processes(signal, &own_children());
}

/// Sends a signal to each of these processes and its process group, once per group.
pub(crate) fn signal_processes(signal: Signal, processes: &[ProcEntry]) {
    let own_group = own_process().map(|own| own.group);
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
        let children = own_child_pids();
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

// Processes and their children, as `/proc` shows them.

/// Where `/proc/PID/stat` has the flags of the process, counted from the state.
const FLAGS_FIELD: usize = 6;
/// The flag of a process that exits (`PF_EXITING` of the kernel).
const EXITING_FLAG: u32 = 0x4;
/// Where it has the number of threads.
const THREAD_COUNT_FIELD: usize = 17;
/// Where it has the time at which the process was started.
const START_TIME_FIELD: usize = 19;

/// A process, as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcEntry {
    pub(crate) pid: i32,
    parent_pid: i32,
    /// Like `session`, 0 if its leader is outside the pid namespace, as may be the case for a container's first
    /// process. (That's why they aren't read with `getsid`: it returns 0 as well, which rustix considers impossible.)
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// In clock ticks since the system started. It tells a process from a later one with the same pid.
    pub(crate) start_time: u64,
    /// It has begun to exit. It closes its files before its children get another parent; they have one when it is a
    /// zombie.
    pub(crate) is_exiting: bool,
    /// It is a zombie: all of its threads have exited, but its parent hasn't reaped it.
    pub(crate) has_exited: bool,
}

/// Where the children of processes are looked up.
enum ProcessTree {
    /// The kernel's list of children of each process. The list of this process is exact, since a child stays in it
    /// until it is reaped. It is also quick to read, whereas a process could escape during a scan of all processes.
    ChildLists,
    /// A scan of all processes, on systems without such lists.
    Snapshot(Vec<ProcEntry>),
}

impl ProcessTree {
    pub(crate) fn read() -> Self {
        if Path::new("/proc/thread-self/children").exists() {
            Self::ChildLists
        } else {
            Self::Snapshot(read_all_processes())
        }
    }

    /// Returns the children of a process, including zombies.
    pub(crate) fn children(&self, parent_pid: i32) -> Vec<ProcEntry> {
        match self {
            Self::ChildLists => read_child_pids(parent_pid)
                .into_iter()
                .filter_map(Pid::from_raw)
                .map(ProcEntry::find)
                .collect(),
            Self::Snapshot(processes) => {
                let all = processes.iter().copied();
                all.filter(|process| process.parent_pid == parent_pid)
                    .collect()
            }
        }
    }
}

impl ProcEntry {
    /// Parses `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`. The name may contain anything.
    fn parse(stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        let (pid, rest) = stat.split_once(" (")?;
        let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
        let start_time = fields.get(START_TIME_FIELD)?.parse().ok()?;
        let flags: u32 = fields.get(FLAGS_FIELD)?.parse().ok()?;
        // The state is that of the first thread. If that has ended, others may still run.
        let first_thread_has_exited = matches!(*fields.first()?, "Z" | "X");
        Some(Self {
            has_exited: first_thread_has_exited && number(THREAD_COUNT_FIELD)? <= 1,
            is_exiting: flags & EXITING_FLAG != 0,
            pid: pid.parse().ok()?,
            parent_pid: number(1)?,
            group: number(2)?,
            session: number(3)?,
            start_time,
        })
    }

    fn read(dir: &Path) -> Option<Self> {
        Self::parse(&fs::read(dir.join("stat")).ok()?)
    }

    /// Returns the process with this pid. If the system hides its details, as it may for other users' processes,
    /// everything but the pid is 0.
    pub(crate) fn find(pid: Pid) -> Self {
        let pid = pid.as_raw_nonzero().get();
        Self::read(Path::new(&format!("/proc/{pid}"))).unwrap_or(Self {
            pid,
            parent_pid: 0,
            group: 0,
            session: 0,
            start_time: 0,
            is_exiting: false,
            has_exited: false,
        })
    }
}

/// Returns whether `/proc` shows the processes of this pid namespace. If it is missing or belongs to another namespace,
/// descendants can't be found, and [`ReaperPools::new`](crate::ReaperPools::new) returns `None`.
pub fn shows_own_pid_namespace() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == &*own_pid().to_string())
}

/// Returns this process, as `/proc` shows it.
pub(crate) fn own_process() -> Option<ProcEntry> {
    ProcEntry::read(Path::new("/proc/self"))
}

/// Returns the children of this process, including zombies.
pub(crate) fn own_children() -> Vec<ProcEntry> {
    ProcessTree::read().children(own_pid())
}

/// Returns the pids of the children of this process, including zombies.
fn own_child_pids() -> Vec<Pid> {
    let pids = match ProcessTree::read() {
        ProcessTree::ChildLists => read_child_pids(own_pid()),
        snapshot @ ProcessTree::Snapshot(_) => {
            let children = snapshot.children(own_pid()).into_iter();
            children.map(|child| child.pid).collect()
        }
    };
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

/// Returns the pid of this process.
fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Returns the children of a process, which the kernel lists by thread.
fn read_child_pids(parent_pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent_pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| -> Vec<i32> {
        let words = list.split_ascii_whitespace();
        words.filter_map(|number| number.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// Returns all processes of the system, or an empty list if `/proc` can't be read.
fn read_all_processes() -> Vec<ProcEntry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    numbered
        .filter_map(|entry| ProcEntry::read(&entry.path()))
        .collect()
}

// The host's own cleanup, for the worst case: a program killed both its reaper and the supervisor, so its orphans are
// reparented to the host.

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
        let children = own_children().into_iter();
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
    let Some(own) = own_process() else {
        return false;
    };
    let children = own_children();
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
    signal_processes(Signal::KILL, &orphans);
    let pids = reapers.iter().chain(&orphans).map(|child| child.pid);
    for pid in pids.filter_map(Pid::from_raw) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    reapers.retain(|reaper| closed_supervisors.contains(&reaper.session));
    // A program may have stopped its reaper.
    signal_processes(Signal::CONT, &reapers);
    !orphans.is_empty() || !reapers.is_empty() || has_heirs_to_come
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_that_looks_like_fields_is_parsed() {
        let stat = |state: &str, threads: u32| {
            format!("42 (a) Z 1 (b)) {state} 7 8 9 0 0 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 0")
        };
        let parse = |state, threads| ProcEntry::parse(stat(state, threads).as_bytes()).unwrap();
        let process = parse("S", 1);
        assert_eq!(
            (
                process.pid,
                process.parent_pid,
                process.group,
                process.has_exited
            ),
            (42, 7, 8, false)
        );
        assert!(parse("Z", 1).has_exited);
        assert!(parse("X", 0).has_exited);
    }

    /// A process lives until its last thread has ended, but `/proc` shows the state of its first one.
    #[test]
    fn a_process_whose_first_thread_has_ended_is_alive() {
        let stat = "42 (a) Z 7 8 9 0 0 0 0 0 0 0 0 0 0 0 20 0 2 0 0";
        assert!(!ProcEntry::parse(stat.as_bytes()).unwrap().has_exited);
    }

    #[test]
    fn child_lists_agree_with_a_snapshot_of_all_processes() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let find = |tree: &ProcessTree| {
            let children = tree.children(own_pid()).into_iter();
            let pid = i32::try_from(child.id()).unwrap();
            children
                .filter(|found| found.pid == pid)
                .collect::<Vec<_>>()
        };
        let in_snapshot = find(&ProcessTree::Snapshot(read_all_processes()));
        assert_eq!(in_snapshot.len(), 1);
        assert_eq!(find(&ProcessTree::read()), in_snapshot);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
