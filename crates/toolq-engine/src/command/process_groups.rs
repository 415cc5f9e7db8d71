//! The process groups of all running programs, so that they can be suspended and resumed together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

#[cfg(target_os = "linux")]
use procfence::{ReaperClient, ReaperRequest};

/// The groups of running programs. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessGroups(Arc<Mutex<GroupRegistry>>);

#[derive(Debug, Default)]
struct GroupRegistry {
    handles: HashMap<u64, GroupHandle>,
    /// How many groups have been registered so far.
    registered: u64,
    suspended: bool,
}

/// How to signal a group.
#[derive(Debug)]
pub(crate) enum GroupHandle {
    /// Signal the group of this process directly.
    Direct(Pid),
    /// Let its reaper signal it.
    #[cfg(target_os = "linux")]
    Supervised(Arc<ReaperClient>),
}

/// The registration of a group, which ends when it is dropped. Drop it before reaping the group's leader, or a signal
/// may hit an unrelated process that reuses its pid.
#[derive(Debug)]
pub(crate) struct Registration {
    groups: ProcessGroups,
    number: u64,
}

impl ProcessGroups {
    /// Registers a group. It is stopped at once if all groups are suspended.
    pub(crate) fn register(&self, handle: GroupHandle) -> Registration {
        let mut state = self.lock();
        if state.suspended {
            handle.send_signal(Signal::STOP);
        }
        state.registered += 1;
        let number = state.registered;
        state.handles.insert(number, handle);
        drop(state);
        let groups = self.clone();
        Registration { groups, number }
    }

    /// Stops all groups, including those registered later, until [`Self::resume`].
    pub(crate) fn suspend(&self) {
        self.set_suspended(true, Signal::STOP);
    }

    /// Resumes all groups.
    pub(crate) fn resume(&self) {
        self.set_suspended(false, Signal::CONT);
    }

    fn set_suspended(&self, suspended: bool, signal: Signal) {
        let mut state = self.lock();
        state.suspended = suspended;
        state
            .handles
            .values()
            .for_each(|handle| handle.send_signal(signal));
    }

    fn lock(&self) -> MutexGuard<'_, GroupRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.groups.lock().handles.remove(&self.number);
    }
}

impl GroupHandle {
    /// Sends a signal. It isn't an error if no process is left to receive it.
    fn send_signal(&self, signal: Signal) {
        match self {
            Self::Direct(pid) => drop(kill_process_group(*pid, signal)),
            #[cfg(target_os = "linux")]
            Self::Supervised(reaper) => reaper.try_send(&ReaperRequest::Signal(signal.as_raw())),
        }
    }
}
