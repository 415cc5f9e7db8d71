//! A call arrives: it is queued behind the gate, or answered at once because it can't run.

use std::sync::Arc;

use crate::execute::queue::{Job, State};
use crate::model::{
    Accepted, Call, CallRef, Checked, Event, NotExecuted, Outcome, Rejection, Verdict,
};

use super::Turn;
use super::finish::Spent;

impl Turn<'_> {
    /// Puts a call last.
    pub(super) fn arrive(&mut self, checked: Checked) {
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
        halted.or_else(|| self.stopped_by.clone())
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
