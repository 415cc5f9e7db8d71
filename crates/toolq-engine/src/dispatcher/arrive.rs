//! A call arrives: it is queued behind the gate, or answered at once because it can't run or did so already. While a model
//! still speaks, more arrives: parts of calls, and that one may not run after all.

use std::sync::Arc;

use crate::dispatcher::finish::Spent;
use crate::dispatcher::restore::orphaned;
use crate::dispatcher::turn::Turn;
use crate::scheduler::{Job, State};
use toolq_core::types::{
    Accepted, Arrival, Call, CallRef, Checked, Event, Invocation, NotExecuted, Outcome, Past,
    Rejection, Verdict,
};

impl Turn<'_> {
    /// Does what follows from an arrival.
    pub(crate) fn arrive(&mut self, arrival: Arrival) {
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
            Arrival::Over(cause) => self.end_arriving(&cause),
        }
    }

    /// Puts a call last.
    fn queue(&mut self, checked: Checked) {
        let recalled = matches!(checked.past, Past::Answered(_));
        let completes = checked.verdict.is_completion();
        let batch = match (&checked.verdict, self.why_over(completes)) {
            // What an earlier run did keeps its place: the others stand as a plan shows them.
            (Verdict::Accepted(accepted), over) if recalled || over.is_none() => {
                Some(self.partition.place(accepted.safe))
            }
            _ => None,
        };
        self.tally.calls += 1;
        self.tally.rejected += u64::from(matches!(checked.verdict, Verdict::Rejected(_)));
        self.tell(&Event::Queued {
            checked: &checked,
            batch,
        });
        let reference = CallRef::new(&checked.call, batch);
        let Checked {
            call,
            verdict,
            past,
        } = checked;
        match (past, verdict) {
            (Past::Answered(recalled), verdict) => {
                let completed = !recalled.is_error && verdict.is_completion();
                self.recall(&reference, &call, &Outcome::Recalled(recalled), 0);
                if completed {
                    let tool = call.name;
                    // What is behind it has not arrived yet.
                    self.stopped_by = self
                        .stopped_by
                        .take()
                        .or(Some(NotExecuted::Completed { tool }));
                }
            }
            (Past::InDoubt(begun), _) => {
                self.recall(&reference, &call, &orphaned(), begun.attempts);
            }
            (past, Verdict::Accepted(accepted)) => {
                self.arrive_accepted(reference, call, *accepted, past);
            }
            (_, Verdict::Rejected(rejection)) => {
                let outcome = Outcome::Rejected(rejection);
                self.arrive_over(&reference, &call, &outcome, 0);
            }
        }
    }

    fn arrive_accepted(&mut self, reference: CallRef, call: Call, accepted: Accepted, past: Past) {
        let place = self.engine.pauses.place(&accepted.tool);
        let safe = accepted.safe;
        let completes = matches!(accepted.invocation, Some(Invocation::Completion(_)));
        let unsure = matches!(past, Past::Unsure(_));
        let job = Arc::new(Job {
            call,
            accepted,
            place,
            begun: past.begun(),
            unsure,
        });
        let number = self.queue.push(reference, State::Waiting(job));
        match self.why_over(completes) {
            // Where nothing runs beside anything else, neither do agents, which take no place.
            None => self
                .gate
                .push(number, safe && self.engine.settings.jobs.get() > 1),
            Some(cause) => self.finish(number, &Outcome::NotExecuted(cause)),
        }
    }

    /// Why nothing more is queued in this turn, if nothing is; the answer of an agent is, in its last turn.
    fn why_over(&self, completes: bool) -> Option<NotExecuted> {
        let halted = self.halted.map(NotExecuted::Halted);
        let stopped = || self.stopped_by.clone();
        let over = || {
            let over = self.over.clone();
            over.filter(|over| !completes || *over != NotExecuted::LastTurn)
        };
        halted.or_else(stopped).or_else(over)
    }

    /// A call that waits may not run after all; one that has started goes on.
    fn revoke(&mut self, position: usize, rejection: Rejection) {
        let number = self.queue.number_of(position);
        if let Some(number) = number.filter(|&number| self.gate.remove(number)) {
            self.tally.rejected += 1;
            self.finish(number, &Outcome::Rejected(rejection));
        }
    }

    /// What waits, and what still comes, does not run.
    fn end_arriving(&mut self, cause: &NotExecuted) {
        self.over.get_or_insert_with(|| cause.clone());
        let over = Outcome::NotExecuted(cause.clone());
        for number in self.gate.withdraw(|_| true) {
            self.finish(number, &over);
        }
    }

    /// A call that was rejected, or ended in an earlier run, counts as one of its tool, if it names one.
    pub(crate) fn arrive_over(
        &mut self,
        reference: &CallRef,
        call: &Call,
        outcome: &Outcome,
        attempts: u32,
    ) {
        let tool = self.engine.settings.tools.get(&call.name).cloned();
        let number = self.queue.push(reference.clone(), State::Ended);
        let agent = match outcome {
            Outcome::Recalled(recalled) => recalled.agent.clone(),
            _ => None,
        };
        let spent = Spent::before(attempts).with_agent(agent);
        self.answer(number, reference, call, tool.as_deref(), outcome, spent);
        if let Some(tool) = &tool {
            let place = self.engine.pauses.place(tool);
            self.engine.pauses.settle(tool, place, outcome);
            self.react(number, reference, tool, outcome);
        }
        self.deliver();
    }
}
