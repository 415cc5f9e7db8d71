//! Decides which calls of a message that is still streaming may start.
//!
//! A `write` call waits for the end of the message, because only then is it known that the message wasn't cut off; all
//! calls after it wait too. A rejected call waits until another call follows it: if the message turns out to be cut off
//! inside it, that is the reason to report. A released call that hasn't started can still be revoked.
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use crate::check::checker::{CallChecker, refuse_call, reject_call};
use crate::check::rejection;
use crate::types::{
    Call, CheckedCall, Effect, NotExecutedCause, Rejection, ResponseEnding, TurnArrival, Verdict,
};

/// Collects the calls of one message and releases those that may start.
#[derive(Debug)]
pub struct StreamAdmission<'c> {
    checker: &'c CallChecker,
    /// Number of calls that have begun to arrive.
    calls_begun: usize,
    /// The position of the first call with each id.
    first_position_by_id: HashMap<String, usize>,
    /// Complete calls that may not start yet, in call order.
    waiting: VecDeque<CheckedCall>,
    ready: Vec<TurnArrival>,
}

impl<'c> StreamAdmission<'c> {
    /// Creates an admission that has seen no calls.
    pub fn new(checker: &'c CallChecker) -> Self {
        Self {
            checker,
            calls_begun: 0,
            first_position_by_id: HashMap::new(),
            waiting: VecDeque::new(),
            ready: Vec::new(),
        }
    }

    /// Records that a call has begun to arrive.
    pub fn begin(&mut self) {
        self.calls_begun += 1;
        self.release_ready();
    }

    /// Adds the next call in call order, whose input is now complete.
    pub fn complete(&mut self, call: Call) {
        let checked = match self.first_position_of(&call) {
            Some(first) => {
                self.revoke(first, rejection::duplicate_id());
                reject_call(call, rejection::duplicate_id())
            }
            None => self.checker.check_call(call),
        };
        self.waiting.push_back(checked);
        self.release_ready();
    }

    /// Ends the message. Releases the waiting calls, as far as the ending lets them run.
    pub fn close(&mut self, ending: ResponseEnding) {
        match ending {
            ResponseEnding::Complete => {}
            ResponseEnding::CutOff => {
                if let Some(last) = self.calls_begun.checked_sub(1) {
                    self.revoke(last, rejection::truncated());
                }
            }
            ResponseEnding::Refused => self.refuse_all(),
        }
        self.release_all();
    }

    /// Rejects all calls that haven't started, because the message was refused.
    fn refuse_all(&mut self) {
        let released = self.calls_begun.saturating_sub(self.waiting.len());
        self.ready
            .extend((0..released).map(|position| TurnArrival::Revoked {
                position,
                rejection: rejection::response_refused(),
            }));
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().map(refuse_call).collect();
    }

    /// Ends a message that broke off. `unfinished` are its last calls, whose inputs are incomplete. No waiting call
    /// runs.
    pub fn abort(&mut self, unfinished: Vec<Call>) {
        self.ready
            .push(TurnArrival::RestSkipped(NotExecutedCause::StreamAborted));
        self.release_all();
        let unfinished = unfinished
            .into_iter()
            .map(|call| reject_call(call, rejection::broken_off()));
        self.ready
            .extend(unfinished.map(Box::new).map(TurnArrival::Call));
    }

    /// Drains what can be passed on now.
    pub fn drain_ready(&mut self) -> impl Iterator<Item = TurnArrival> + use<'_, 'c> {
        self.ready.drain(..)
    }

    /// Returns the position of the earlier call with the same id; if there is none, records this call as the first.
    fn first_position_of(&mut self, call: &Call) -> Option<usize> {
        match self.first_position_by_id.entry(call.id.clone()) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(id) => {
                id.insert(call.position);
                None
            }
        }
    }

    /// Rejects the call at `position`, unless it has started. This replaces an earlier reason, but never a duplicate
    /// id: as in a message that is checked as a whole, the id takes precedence over the end of the message.
    fn revoke(&mut self, position: usize, rejection: Rejection) {
        let waiting = self
            .waiting
            .iter_mut()
            .find(|checked| checked.call.position == position);
        match waiting {
            None => self.ready.push(TurnArrival::Revoked {
                position,
                rejection,
            }),
            Some(CheckedCall { verdict, .. }) => {
                let duplicate = rejection::duplicate_id();
                if !matches!(verdict, Verdict::Rejected(known) if **known == duplicate) {
                    *verdict = Verdict::rejected(rejection);
                }
            }
        }
    }

    fn release_ready(&mut self) {
        while let Some(first) = self.waiting.front() {
            let may_start = match &first.verdict {
                Verdict::Accepted(accepted) => accepted.tool.effect != Effect::Write,
                Verdict::Rejected(_) => self.calls_begun > first.call.position + 1,
            };
            if !may_start {
                return;
            }
            self.ready.extend(
                self.waiting
                    .pop_front()
                    .map(Box::new)
                    .map(TurnArrival::Call),
            );
        }
    }

    fn release_all(&mut self) {
        self.ready
            .extend(self.waiting.drain(..).map(Box::new).map(TurnArrival::Call));
    }
}
