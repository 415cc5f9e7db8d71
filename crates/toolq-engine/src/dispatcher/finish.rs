//! A call is over: it is answered, its tool's policies apply to the others, and answers are delivered in call order.

use std::sync::Arc;
use std::time::Duration;

use crate::dispatcher::restore::orphaned;
use crate::dispatcher::turn::Turn;
use crate::scheduler::{Run, State};
use crate::settings::EngineSettings;
use toolq_core::answer;
use toolq_core::types::{
    AgentUse, Call, CallRef, Doubt, Effect, Ending, Event, Invocation, NotExecuted, OnFailure,
    Outcome, Tool,
};

/// How a call spent its time, and what else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spent {
    duration: Duration,
    attempts: u32,
    agent: Option<Box<AgentUse>>,
}

impl Spent {
    /// Of a call that this run did not start.
    pub(crate) fn before(attempts: u32) -> Self {
        Self {
            attempts,
            ..Self::default()
        }
    }

    /// The same with what an agent used for it.
    pub(crate) fn with_agent(self, agent: Option<Box<AgentUse>>) -> Self {
        Self { agent, ..self }
    }

    fn of(run: &Run, outcome: &Outcome, now: Duration) -> Self {
        // One that was called off in time was started all the same, which its record must not hide.
        let called_off = matches!(outcome, Outcome::NotExecuted(_));
        if outcome.is_skipped() && !called_off {
            return Self::default();
        }
        let mut agent = run.agent.clone();
        if let Some(agent) = &mut agent {
            agent.unfinished = outcome.ending() == Some(Ending::Unfinished);
        }
        Self {
            duration: now.saturating_sub(run.since),
            attempts: if run.probing { run.before } else { run.attempt },
            agent,
        }
    }
}

impl Turn<'_> {
    /// Ends a call that waits or runs. One that an earlier run has started, and of which nobody could be asked, is in
    /// doubt, and not just skipped.
    pub(crate) fn finish(&mut self, number: usize, outcome: &Outcome) {
        let Some((reference, state)) = self.queue.end(number) else {
            return;
        };
        let outcome = if outcome.is_skipped() && state.is_unsure() {
            &orphaned()
        } else {
            outcome
        };
        let (job, spent) = match state {
            State::Waiting(job) => {
                let attempts = job.begun.as_ref().map_or(0, |begun| begun.attempts);
                let in_doubt = outcome.is_in_doubt();
                (job, Spent::before(if in_doubt { attempts } else { 0 }))
            }
            State::Running(run) => {
                self.gate.leave();
                self.unsettled |= run.job.accepted.tool.effect == Effect::Write;
                let spent = Spent::of(&run, outcome, self.engine.control.now());
                (Arc::clone(&run.job), spent)
            }
            State::Ended | State::Answered(_) => return,
        };
        let tool = &job.accepted.tool;
        if let Some(agent) = &spent.agent {
            self.tell(&Event::AgentCompleted {
                call: &reference,
                agent: &agent.agent_name,
                duration: spent.duration,
            });
        }
        self.answer(number, &reference, &job.call, Some(tool), outcome, spent);
        self.engine.pauses.settle(tool, job.place, outcome);
        self.react(number, &reference, tool, outcome);
        if let (Some(Invocation::Completion(_)), false) =
            (&job.accepted.invocation, outcome.is_error())
        {
            let tool = tool.name.clone();
            self.end_turn(number, NotExecuted::Completed { tool });
        }
        self.deliver();
    }

    /// Makes the answer, tells of it, and keeps it until its turn has come.
    pub(crate) fn answer(
        &mut self,
        number: usize,
        reference: &CallRef,
        call: &Call,
        tool: Option<&Tool>,
        outcome: &Outcome,
        Spent {
            duration,
            attempts,
            agent,
        }: Spent,
    ) {
        self.doubt(reference, outcome);
        let EngineSettings { tools, mask, .. } = &self.engine.settings;
        let words = tool.map_or(&tools.messages, |tool| &tool.messages);
        let answer = answer::answer(call, tool, outcome, words, mask);
        self.tell(&Event::Finished {
            call: reference,
            outcome,
            answer: &answer,
            duration,
            attempts,
            agent: agent.as_deref(),
        });
        self.queue.answer(number, answer);
    }

    /// Keeps the first call in doubt, for the agent whose turn it is: the one that can be settled, however deep it is.
    fn doubt(&mut self, call: &CallRef, outcome: &Outcome) {
        let first = self.tally.doubt.as_ref().map(|(position, _)| *position);
        if !outcome.is_in_doubt() || first.is_some_and(|first| first < call.position) {
            return;
        }
        let doubt = match outcome {
            Outcome::InDoubt {
                doubt: doubt @ Doubt::Within { .. },
                ..
            } => doubt.clone(),
            _ => Doubt::Within {
                tool: call.tool_name.clone(),
                id: call.tool_use_id.clone(),
            },
        };
        self.tally.doubt = Some((call.position, doubt));
    }

    /// What the end of a call does to the other calls of its turn.
    pub(crate) fn react(&mut self, number: usize, call: &CallRef, tool: &Tool, outcome: &Outcome) {
        if !outcome.is_error() {
            return;
        }
        match tool.on_failure {
            OnFailure::Continue => {}
            OnFailure::CancelSiblings => self.cancel_siblings(call, tool, outcome),
            OnFailure::Stop => {
                let tool = tool.name.clone();
                self.end_turn(number, NotExecuted::Preceding { tool });
            }
        }
    }

    /// Later calls don't run. A call that was not executed stops them like one that failed: what they build on is not
    /// there.
    fn end_turn(&mut self, last: usize, cause: NotExecuted) {
        if self.stopped_by.is_some() {
            return;
        }
        let outcome = Outcome::NotExecuted(cause.clone());
        self.stopped_by = Some(cause);
        for number in self.gate.withdraw(|number| number > last) {
            self.finish(number, &outcome);
        }
    }

    /// The other calls of the batch end, or don't start. A call that did not fail by itself does this to nobody.
    fn cancel_siblings(&mut self, call: &CallRef, tool: &Tool, outcome: &Outcome) {
        let failed = !outcome.is_skipped() && !outcome.is_given_up();
        if !failed || call.batch.is_none() {
            return;
        }
        for (batch, run) in self.queue.running() {
            if batch == call.batch {
                run.cancelled_by.get_or_insert_with(|| tool.name.clone());
                run.end();
            }
        }
        let sibling = Outcome::NotExecuted(NotExecuted::Sibling {
            tool: tool.name.clone(),
        });
        let queue = &self.queue;
        let same = |number| {
            queue
                .get(number)
                .is_some_and(|entry| entry.call.batch == call.batch)
        };
        for number in self.gate.withdraw(same) {
            self.finish(number, &sibling);
        }
    }

    /// Hands over the answers whose predecessors are all handed over.
    pub(crate) fn deliver(&mut self) {
        while let Some((call, answer)) = self.queue.pop_answered() {
            self.delivery.deliver(&call, answer, &mut self.sink);
        }
    }
}
