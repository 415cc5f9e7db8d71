//! Decides which calls of a message that is still streaming may start.
//!
//! A `write` call waits for the end of the message, because only then is it known that the message wasn't cut off; all
//! calls after it wait too. A rejected call waits until another call follows it: if the message turns out to be cut off
//! inside it, that is the reason to report. A released call that hasn't started can still be revoked. If the pieces of the
//! stream don't fit together, the call that they are about doesn't run, nor does any after it.
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::check::checker::{CallChecker, KnownCalls, break_call, refuse_call, reject_call};
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
    /// Number of calls that are complete.
    calls_complete: usize,
    /// The calls so far.
    known: KnownCalls,
    /// From this call on, it isn't certain what was sent.
    broken_from: Option<usize>,
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
            calls_complete: 0,
            known: KnownCalls::default(),
            broken_from: None,
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
        let is_broken = self.broken_from.is_some_and(|first| first <= call.position);
        let repeats = self.known.add(&call);
        let checked = self.checker.check_call(call);
        let checked = if is_broken {
            break_call(checked)
        } else {
            CheckedCall { repeats, ..checked }
        };
        self.calls_complete += 1;
        self.waiting.push_back(checked);
        self.release_ready();
    }

    /// Rejects the call at `position` and all after it, whether they have arrived or not: it isn't certain what was sent.
    pub fn break_from(&mut self, position: usize) {
        let first = self
            .broken_from
            .map_or(position, |first| first.min(position));
        self.broken_from = Some(first);
        let released = self.calls_released();
        self.ready
            .extend((first..released).map(|position| TurnArrival::Revoked {
                position,
                rejection: rejection::not_whole(None),
            }));
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let judge = |checked: CheckedCall| {
            if checked.call.position >= first {
                break_call(checked)
            } else {
                checked
            }
        };
        self.waiting = waiting.map(judge).collect();
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
        let released = self.calls_released();
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

    /// Returns the number of calls that were passed on.
    fn calls_released(&self) -> usize {
        let first = self.waiting.front().map(|first| first.call.position);
        first.unwrap_or(self.calls_complete)
    }

    /// Rejects the call at `position`, unless it has started. This replaces an earlier reason.
    fn revoke(&mut self, position: usize, rejection: Rejection) {
        let mut waiting = self.waiting.iter_mut();
        match waiting.find(|checked| checked.call.position == position) {
            None => self.ready.push(TurnArrival::Revoked {
                position,
                rejection,
            }),
            Some(checked) => {
                checked.verdict = Verdict::rejected(rejection);
                checked.repeats = None;
            }
        }
    }

    fn release_ready(&mut self) {
        while let Some(first) = self.waiting.front() {
            let may_start = match &first.verdict {
                _ if first.repeats.is_some() => true,
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
