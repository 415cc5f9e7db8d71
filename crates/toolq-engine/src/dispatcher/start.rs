//! Calls start: through the gate, past their tool's pause, and only after everybody was told.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::attempt::Attempt;
use crate::digests::idempotency_key;
use crate::dispatcher::turn::Turn;
use crate::scheduler::{Entry, Run, State};
use toolq_core::os::failpoint;
use toolq_core::types::{Event, Halt, NotExecuted, Outcome, Refused, Tool};

impl Turn<'_> {
    /// Starts every call that may run now.
    pub(crate) fn start(&mut self) {
        loop {
            let entered = self.enter();
            let Some(first) = entered.first() else {
                return;
            };
            match self.announce(*first, &entered) {
                Ok(()) => return entered.iter().for_each(|number| self.launch(*number)),
                Err(Refused(why)) => {
                    let refused = Outcome::LogRefused(why);
                    for number in entered {
                        self.finish(number, &refused);
                    }
                }
            }
        }
    }

    /// Lets calls through the gate; those that may not run are answered there.
    fn enter(&mut self) -> Vec<usize> {
        let mut entered = Vec::new();
        self.starved = false;
        while let Some(number) = self.gate.next() {
            let job = self.queue.waiting(number);
            let needs_slot = job.as_ref().is_some_and(|job| !job.is_agent());
            let slot = needs_slot.then(|| self.engine.slots.take());
            if matches!(slot, Some(None)) {
                self.starved = true;
                break;
            }
            self.gate.enter();
            let Some(job) = job else {
                continue;
            };
            if let Some(outcome) = self.held_back(number, &job.accepted.tool) {
                self.gate.leave();
                self.finish(number, &outcome);
            } else {
                let task = &self.engine.settings.task;
                let known = job.begun.as_ref().and_then(|begun| begun.key.clone());
                let key =
                    known.unwrap_or_else(|| idempotency_key(task, &job.call, &job.accepted.input));
                let run = Run::new(job, key, self.engine.control.now(), slot.flatten());
                self.queue.set_running(number, run);
                entered.push(number);
            }
        }
        entered
    }

    /// The outcome of a call that may not run now: nobody knows what its tool takes, one beside it failed in an earlier
    /// run, its tool is paused, or there were calls enough.
    fn held_back(&mut self, number: usize, tool: &Tool) -> Option<Outcome> {
        if tool.is_unasked() {
            let fault = "its input was not checked, since its tool was not asked what it takes";
            return Some(Outcome::Broken(fault.to_owned()));
        }
        let batch = self.queue.get(number).and_then(|entry| entry.call.batch);
        if let Some(tool) = batch.and_then(|batch| self.cancelled.get(&batch)) {
            let tool = tool.clone();
            return Some(Outcome::NotExecuted(NotExecuted::Sibling { tool }));
        }
        if let Some(failures) = self.engine.pauses.paused(tool) {
            return Some(Outcome::Paused { failures });
        }
        let over = self.engine.spending.take_call().err()?;
        let halted = NotExecuted::Halted(Halt::OverBudget(over));
        Some(Outcome::NotExecuted(halted))
    }

    /// Tells that these calls are about to start, all at once: who records it can do so in one go.
    fn announce(&mut self, first: usize, entered: &[usize]) -> Result<(), Refused> {
        let batch = self.queue.get(first).and_then(|entry| entry.call.batch);
        let new = batch.filter(|batch| *batch >= self.batches);
        let calls = new.map(|batch| (batch, self.queue.batch_from(first)));
        let mut events = Vec::with_capacity(entered.len() + 1);
        if let Some((batch, calls)) = &calls {
            self.batches = batch + 1;
            events.push(Event::BatchStarted {
                turn: self.number,
                batch: *batch,
                calls,
            });
        }
        let entries = entered.iter().filter_map(|number| self.queue.get(*number));
        events.extend(entries.filter_map(started));
        self.sink.tell(&events)
    }

    /// Runs the next attempt of a call.
    pub(crate) fn launch(&mut self, number: usize) {
        let voice = self.running.voice(number);
        let Some((call, run)) = self.queue.run(number) else {
            return;
        };
        let desk = run.job.is_agent().then(|| self.running.desk(number, call));
        if desk.is_some() {
            let agent = &run.job.accepted.tool.name;
            let _ = self.sink.tell(&[Event::AgentStarted { call, agent }]);
        }
        let (cancel, cancelled) = oneshot::channel();
        run.cancel = Some(cancel);
        let attempt = Attempt {
            job: Arc::clone(&run.job),
            probe: run.probing,
            key: Arc::clone(&run.key),
            limit: run.limit(self.engine.control.now()),
            cancel: cancelled,
            voice,
            desk,
            around: self.engine.around.clone(),
            meter: self.engine.spending.meter(),
            control: self.engine.control.clone(),
        };
        let runner = Arc::clone(&self.engine.runner);
        let _ = failpoint("start.before");
        self.running.start(number, runner, attempt);
        let _ = failpoint("start.after");
    }
}

/// The start record of a call's present attempt, or of what is asked before it.
pub(crate) fn started(entry: &Entry) -> Option<Event<'_>> {
    let State::Running(run) = &entry.state else {
        return None;
    };
    if run.probing {
        return Some(Event::Probing { call: &entry.call });
    }
    Some(Event::Started {
        call: &entry.call,
        accepted: &run.job.accepted,
        attempt: run.attempt,
        idempotency_key: &run.key,
    })
}
