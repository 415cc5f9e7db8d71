//! The calls of a message that is still arriving: which may start by now.
//!
//! A call that writes waits for the end of the message, since only then it is known that the message was not cut off; what
//! stands behind it waits too. So does a call that may not run, until another follows it: cut off inside it, the message
//! would say so instead. What was let go and has not started can be revoked.
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};

use crate::check::checker::{Checker, rejected};
use crate::check::rejection;
use crate::types::{Arrival, Call, Checked, Effect, NotExecuted, Rejection, Verdict};

/// The calls of one message so far.
#[derive(Debug)]
pub struct Arriving<'c> {
    checker: &'c Checker,
    /// The gravest effect of what starts before the message is known to be whole.
    boldest: Effect,
    /// How many calls have begun.
    begun: usize,
    /// By id, the first call that has it.
    ids: HashMap<String, usize>,
    /// The calls that must not start yet, in call order.
    held: VecDeque<Checked>,
    ready: Vec<Arrival>,
}

impl<'c> Arriving<'c> {
    /// No call so far.
    pub fn new(checker: &'c Checker) -> Self {
        Self {
            checker,
            boldest: Effect::Idempotent,
            begun: 0,
            ids: HashMap::new(),
            held: VecDeque::new(),
            ready: Vec::new(),
        }
    }

    /// What only looks starts early, and nothing else: for who may hear another message in the place of one that broke off,
    /// and knows nothing of the calls of the first.
    #[must_use]
    pub fn timid(self) -> Self {
        Self {
            boldest: Effect::Read,
            ..self
        }
    }

    /// A call begins.
    pub fn begun(&mut self) {
        self.begun += 1;
        self.let_go();
    }

    /// The next call in call order is whole.
    pub fn whole(&mut self, call: Call) {
        let checked = match self.first_of(&call) {
            Some(first) => {
                self.revoke(first, rejection::duplicate());
                rejected(call, rejection::duplicate())
            }
            None => self.checker.call(call),
        };
        self.held.push_back(checked);
        self.let_go();
    }

    /// The message is over; `cut_off` inside its last call.
    pub fn closed(&mut self, cut_off: bool) {
        if let Some(last) = self.begun.checked_sub(1).filter(|_| cut_off) {
            self.revoke(last, rejection::truncated());
        }
        self.let_all_go();
    }

    /// No more comes of the message; of its last calls, `unfinished`, not all is there. None of what waits runs.
    pub fn broke_off(&mut self, unfinished: Vec<Call>) {
        self.ready.push(Arrival::Over(NotExecuted::BrokeOff));
        self.let_all_go();
        let unfinished = unfinished
            .into_iter()
            .map(|call| rejected(call, rejection::broken_off()));
        self.ready
            .extend(unfinished.map(Box::new).map(Arrival::Call));
    }

    /// What is to be passed on by now.
    pub fn take(&mut self) -> impl Iterator<Item = Arrival> + use<'_, 'c> {
        self.ready.drain(..)
    }

    /// The position of the call before that has the same id.
    fn first_of(&mut self, call: &Call) -> Option<usize> {
        match self.ids.entry(call.id.clone()) {
            Entry::Occupied(first) => Some(*first.get()),
            Entry::Vacant(id) => {
                id.insert(call.position);
                None
            }
        }
    }

    /// The call at `position` may not run, unless it has started. A call that may not run anyway keeps its reason, except
    /// that in a message read as a whole the id counts first, then the end.
    fn revoke(&mut self, position: usize, rejection: Rejection) {
        let held = self
            .held
            .iter_mut()
            .find(|checked| checked.call.position == position);
        match held {
            None => self.ready.push(Arrival::Revoked {
                position,
                rejection,
            }),
            Some(Checked { verdict, .. }) => {
                let shared = rejection::duplicate();
                if !matches!(verdict, Verdict::Rejected(known) if *known == shared) {
                    *verdict = Verdict::Rejected(rejection);
                }
            }
        }
    }

    fn let_go(&mut self) {
        while let Some(first) = self.held.front() {
            let goes = match &first.verdict {
                Verdict::Accepted(accepted) => accepted.tool.effect <= self.boldest,
                Verdict::Rejected(_) => self.begun > first.call.position + 1,
            };
            if !goes {
                return;
            }
            self.ready
                .extend(self.held.pop_front().map(Box::new).map(Arrival::Call));
        }
    }

    fn let_all_go(&mut self) {
        self.ready
            .extend(self.held.drain(..).map(Box::new).map(Arrival::Call));
    }
}
