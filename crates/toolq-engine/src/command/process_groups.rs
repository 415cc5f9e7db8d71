//! The groups of all running programs, so that they can be stopped and resumed together, at once and from anywhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

#[cfg(target_os = "linux")]
use procfence::Keeper;
use procfence::Request;

/// The groups that run. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    leaders: HashMap<u64, Leader>,
    /// How many have joined.
    joined: u64,
    held: bool,
}

/// Who is told, for a whole group.
#[derive(Debug)]
pub(crate) enum Leader {
    /// The group of this process.
    Group(Pid),
    /// Who keeps it.
    #[cfg(target_os = "linux")]
    Kept(Arc<Keeper>),
}

/// A group's place among those that run. It is left before its leader is reaped: no signal reaches a stranger.
#[derive(Debug)]
pub(crate) struct Member {
    groups: Groups,
    number: u64,
}

impl Groups {
    /// Adds a group. It is stopped if all are.
    pub(crate) fn join(&self, leader: Leader) -> Member {
        let mut state = self.lock();
        if state.held {
            leader.send(Signal::STOP);
        }
        state.joined += 1;
        let number = state.joined;
        state.leaders.insert(number, leader);
        drop(state);
        let groups = self.clone();
        Member { groups, number }
    }

    /// Stops all, until [`Self::release`].
    pub(crate) fn hold(&self) {
        self.set(true, Signal::STOP);
    }

    /// Lets all go on.
    pub(crate) fn release(&self) {
        self.set(false, Signal::CONT);
    }

    fn set(&self, held: bool, signal: Signal) {
        let mut state = self.lock();
        state.held = held;
        state
            .leaders
            .values()
            .for_each(|leader| leader.send(signal));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.groups.lock().leaders.remove(&self.number);
    }
}

impl Leader {
    /// That nobody is left to get a signal is no error.
    fn send(&self, signal: Signal) {
        match self {
            Self::Group(leader) => drop(kill_process_group(*leader, signal)),
            #[cfg(target_os = "linux")]
            Self::Kept(keeper) => keeper.tell(&Request::Signal(signal.as_raw())),
        }
    }
}
