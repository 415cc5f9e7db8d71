//! The calls of a turn that is played, until they start.

use std::collections::VecDeque;
use std::time::Duration;

use crate::schedule::AppliedLimits;

/// A call that hasn't started.
#[derive(Debug)]
pub(super) struct WaitingCall {
    pub(super) estimate: Option<Duration>,
    pub(super) slot_kind: SlotKind,
    pub(super) limits: AppliedLimits,
}

/// Agents take no slots of other calls, unless everything runs in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SlotKind {
    Call,
    Agent,
}

/// The calls taken so far, from the first one that hasn't started.
#[derive(Debug, Default)]
pub(super) struct WaitingCalls {
    /// Those that have started are `None`.
    calls: VecDeque<Option<WaitingCall>>,
    /// The index of the first of them in the turn.
    first: usize,
}

impl WaitingCalls {
    /// Adds the next call of the turn.
    pub(super) fn push(&mut self, call: WaitingCall) {
        self.calls.push_back(Some(call));
    }

    pub(super) fn get(&self, index: usize) -> Option<&WaitingCall> {
        self.calls.get(index.checked_sub(self.first)?)?.as_ref()
    }

    /// Removes a call that starts.
    pub(super) fn take(&mut self, index: usize) -> Option<WaitingCall> {
        let place = index.checked_sub(self.first)?;
        let call = self.calls.get_mut(place)?.take();
        while let Some(None) = self.calls.front() {
            self.calls.pop_front();
            self.first += 1;
        }
        call
    }
}
