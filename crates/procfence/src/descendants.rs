//! The processes below this one: waiting for them, signalling them, and ending them all.
//!
//! Only its own children are ever signalled, or their groups: their numbers can't become anybody else's before this
//! process has waited for them. Who is deeper comes up when those above are gone.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::proc_tree;
use crate::proc_tree::{Kin, Process};
use crate::signals::Signals;
use crate::sys;
use crate::sys::Ended;

/// How long a killed process is waited for before the next look.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for every child that has ended, tells of each, and says whether any is left.
pub(crate) fn reap(mut tell: impl FnMut(Ended)) -> bool {
    loop {
        match sys::wait_any() {
            Ok(Some(ended)) => tell(ended),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// How many processes below this one live.
pub(crate) fn living() -> u64 {
    let kin = Kin::look();
    let mut family = vec![proc_tree::number()];
    let mut living = 0;
    while let Some(parent) = family.pop() {
        for child in kin.children(parent) {
            living += u64::from(!child.ended);
            family.push(child.pid);
        }
    }
    living
}

/// Sends a signal to each child, with its group.
pub(crate) fn signal(signal: Signal) {
    signal_all(signal, &proc_tree::children());
}

/// Sends a signal to each of these, with its group, once to each.
pub(crate) fn signal_all(signal: Signal, those: &[Process]) {
    let own = proc_tree::own().map(|own| own.group);
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
pub(crate) fn kill(
    signals: &Signals,
    patience: Duration,
    chosen: impl Fn(Pid) -> bool,
    mut tell: impl FnMut(Ended),
) -> io::Result<bool> {
    let since = Instant::now();
    while reap(&mut tell) {
        let children = proc_tree::children();
        let everybody = children.len();
        let is_chosen = |child: &Process| Pid::from_raw(child.pid).is_some_and(&chosen);
        let those: Vec<Process> = children.into_iter().filter(is_chosen).collect();
        // To see nobody at all, where there is somebody to wait for, says nothing.
        if those.is_empty() && everybody > 0 {
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
