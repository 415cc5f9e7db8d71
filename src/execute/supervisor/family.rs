//! The processes below this one: who they are, and ending them all.
//!
//! Only its own children are ever signalled, or their groups: their numbers can't become anybody else's before this
//! process has waited for them. Who is deeper comes up when those above are gone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use super::signals::Signals;
use super::system::{self, Ended};

/// How long a killed process is waited for before the next look.
const LOOK: Duration = Duration::from_millis(20);

/// A process as the system shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: i32,
    parent: i32,
    /// This and the session are 0 where their leader is outside of the namespace, as a container's first process may
    /// find its own; `getsid` gives 0 for it, too, which rustix takes for impossible.
    group: i32,
    pub(super) session: i32,
    /// It has ended, and its parent has not asked how.
    ended: bool,
}

/// Waits for every child that has ended, tells of each, and says whether any is left.
pub(super) fn reap(mut tell: impl FnMut(Ended)) -> bool {
    loop {
        match system::wait_any() {
            Ok(Some(ended)) => tell(ended),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// How many processes below this one live.
pub(super) fn living() -> u64 {
    let all = processes();
    let mut family = vec![number()];
    let mut living = 0;
    while let Some(parent) = family.pop() {
        for child in all.iter().filter(|process| process.parent == parent) {
            living += u64::from(!child.ended);
            family.push(child.pid);
        }
    }
    living
}

/// Sends a signal to each child, with its group.
pub(super) fn signal(signal: Signal) {
    signal_all(signal, &children().collect::<Vec<_>>());
}

/// Sends a signal to each of these, with its group, once to each.
pub(super) fn signal_all(signal: Signal, those: &[Process]) {
    let own = own().map(|own| own.group);
    let mut groups = BTreeSet::new();
    for Process { pid, group, .. } in those {
        match Pid::from_raw(*group).filter(|_| Some(*group) != own) {
            // As one: who forks while his group is killed can't slip through.
            Some(whole) if groups.insert(group) => drop(kill_process_group(whole, signal)),
            Some(_) => {}
            None => drop(Pid::from_raw(*pid).map(|pid| kill_process(pid, signal))),
        }
    }
}

/// Kills all that `chosen` names and everything below it, and looks again until nobody is left or the time is over. Says
/// whether somebody is left.
pub(super) fn kill(
    signals: &Signals,
    patience: Duration,
    chosen: impl Fn(Pid) -> bool,
    mut tell: impl FnMut(Ended),
) -> io::Result<bool> {
    let since = Instant::now();
    while reap(&mut tell) {
        let those: Vec<Process> = children()
            .filter(|child| Pid::from_raw(child.pid).is_some_and(&chosen))
            .collect();
        if those.is_empty() {
            return Ok(false);
        }
        signal_all(Signal::KILL, &those);
        if since.elapsed() > patience {
            return Ok(true);
        }
        signals.wait_for_child(LOOK)?;
    }
    Ok(false)
}

impl Process {
    /// From a line of `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP SESSION …`. The name may hold anything.
    fn parse(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let mut fields = rest.rsplit_once(") ")?.1.split(' ');
        Some(Self {
            ended: matches!(fields.next()?, "Z" | "X"),
            pid: pid.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
        })
    }
}

/// Whether /proc shows the processes by the numbers that signals go to. In a namespace of its own that was given another's
/// /proc it doesn't.
pub(super) fn is_visible() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == &*number().to_string())
}

/// This process, as the system shows it.
pub(super) fn own() -> Option<Process> {
    let stat = fs::read("/proc/self/stat").ok()?;
    Process::parse(&String::from_utf8_lossy(&stat))
}

fn number() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The children of this process, those that have ended too.
pub(super) fn children() -> impl Iterator<Item = Process> {
    let own = number();
    processes()
        .into_iter()
        .filter(move |process| process.parent == own)
}

/// All processes of the system. Where /proc can't be read there are none to see.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    let stats = numbered.filter_map(|entry| fs::read(entry.path().join("stat")).ok());
    stats
        .filter_map(|stat| Process::parse(&String::from_utf8_lossy(&stat)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_fields() {
        let process = Process::parse("42 (a) Z 1 (b)) S 7 8 9 0").unwrap();
        assert_eq!(
            (process.pid, process.parent, process.group, process.ended),
            (42, 7, 8, false)
        );
        assert!(Process::parse("42 (dead) Z 1 1 1").unwrap().ended);
    }
}
