//! A call arrives: it is queued behind the gate, or answered at once because it can't run. While a model still speaks,
//! more arrives: parts of calls, and that one may not run after all.

use std::sync::Arc;

use crate::execute::queue::{Job, State};
use crate::model::{
    Accepted, Arrival, Call, CallRef, Checked, Event, NotExecuted, Outcome, Rejection, Verdict,
};

use super::Turn;
use super::finish::Spent;

impl Turn<'_> {
    /// Does what follows from an arrival.
    pub(super) fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Call(checked) => self.queue(*checked),
            Arrival::Part { call, text } => self.tell(&Event::Part {
                call: &call,
                text: &text,
            }),
            Arrival::Revoked {
                position,
                rejection,
            } => self.revoke(position, rejection),
            Arrival::BrokeOff => self.break_off(),
        }
    }

    /// Puts a call last.
    fn queue(&mut self, checked: Checked) {
        let batch = match (&checked.verdict, self.over()) {
            (Verdict::Accepted(accepted), None) => Some(self.partition.place(accepted.safe)),
            _ => None,
        };
        self.tally.calls += 1;
        self.tally.rejected += u64::from(matches!(checked.verdict, Verdict::Rejected(_)));
        self.tell(&Event::Queued {
            checked: &checked,
            batch,
        });
        let reference = CallRef::new(&checked.call, batch);
        let Checked { call, verdict } = checked;
        match verdict {
            Verdict::Accepted(accepted) => self.arrive_accepted(reference, call, *accepted),
            Verdict::Rejected(rejection) => self.arrive_rejected(&reference, &call, rejection),
        }
    }

    fn arrive_accepted(&mut self, reference: CallRef, call: Call, accepted: Accepted) {
        let place = self.engine.pauses.place(&accepted.tool);
        let safe = accepted.safe;
        let job = Arc::new(Job {
            call,
            accepted,
            place,
        });
        let number = self.queue.push(reference, State::Waiting(job));
        match self.over() {
            // Where nothing runs beside anything else, neither do agents, which take no place.
            None => self
                .gate
                .push(number, safe && self.engine.settings.jobs.get() > 1),
            Some(cause) => self.finish(number, &Outcome::NotExecuted(cause)),
        }
    }

    /// Why nothing more is queued in this turn, if nothing is.
    fn over(&self) -> Option<NotExecuted> {
        let halted = self.halted.map(NotExecuted::Halted);
        let broke_off = || self.broke_off.then_some(NotExecuted::BrokeOff);
        let stopped = || self.stopped_by.clone();
        halted.or_else(stopped).or_else(broke_off)
    }

    /// A call that waits may not run after all; one that has started goes on.
    fn revoke(&mut self, position: usize, rejection: Rejection) {
        let number = self.queue.number_of(position);
        if let Some(number) = number.filter(|&number| self.gate.remove(number)) {
            self.finish(number, &Outcome::Rejected(rejection));
        }
    }

    /// What waits, and what still comes, does not run.
    fn break_off(&mut self) {
        self.broke_off = true;
        let broke_off = Outcome::NotExecuted(NotExecuted::BrokeOff);
        for number in self.gate.withdraw(|_| true) {
            self.finish(number, &broke_off);
        }
    }

    /// A rejected call counts as a failed one of its tool, if it names one.
    fn arrive_rejected(&mut self, reference: &CallRef, call: &Call, rejection: Rejection) {
        let tool = self.engine.settings.tools.get(&call.name).cloned();
        let outcome = Outcome::Rejected(rejection);
        let number = self.queue.push(reference.clone(), State::Ended);
        let spent = Spent::default();
        self.answer(number, reference, call, tool.as_deref(), &outcome, spent);
        if let Some(tool) = &tool {
            let place = self.engine.pauses.place(tool);
            self.engine.pauses.settle(tool, place, &outcome);
            self.react(number, reference, tool, &outcome);
        }
        self.deliver();
    }
}
