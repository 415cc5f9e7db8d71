//! News of a running call: what it says, how an attempt ended, and whether another follows.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::attempt::{End, Reach, Written};
use crate::dispatcher::attempt_tasks::News;
use crate::dispatcher::start::started;
use crate::dispatcher::turn::Turn;
use crate::progress::Note;
use crate::scheduler::retry;
use toolq_core::types::{Doubt, Effect, Event, Halt, NotExecuted, Outcome, Refused};

impl Turn<'_> {
    pub(crate) fn hear(&mut self, news: News) {
        match news {
            News::Said(number, note) => self.pass_on(number, &note),
            News::Ended(number, end) => {
                // What an agent called ends before it does.
                if let Some(end) = self.inner.hold(number, end) {
                    self.conclude(number, end);
                }
            }
            News::Rested(number) => self.again(number),
            News::Asked(number, ask) => self.oblige(number, ask),
        }
    }

    pub(crate) fn conclude(&mut self, number: usize, end: End) {
        self.inner.forget(number);
        match end {
            End::Cancelled { written, reach } => self.given_up(number, written, reach),
            End::Outcome {
                outcome,
                retry_after,
            } => self.ended(number, outcome, retry_after),
        }
    }

    fn pass_on(&mut self, number: usize, note: &Note) {
        if let Some((call, _)) = self.queue.run(number) {
            let event = Event::Status {
                call,
                tip: note.tip.as_deref(),
                progress: note.progress,
            };
            let _ = self.sink.tell(&[event]);
        }
    }

    /// An attempt is over: another follows, or the call is over too.
    fn ended(&mut self, number: usize, outcome: Outcome, retry_after: Option<Duration>) {
        let Some((call, run)) = self.queue.run(number) else {
            return;
        };
        if run.probing {
            return self.probed(number, &outcome);
        }
        let wait = retry::wait(
            &run.job.accepted.tool,
            run.attempt - run.before,
            &outcome,
            retry_after,
            run.left(self.engine.control.now()),
            run.seed(),
        );
        let goes_on = run.agent.is_none() && run.cancelled_by.is_none() && self.halted.is_none();
        let Some(wait) = wait.filter(|_| goes_on) else {
            return self.finish(number, &outcome);
        };
        let event = Event::Retrying {
            call,
            attempt: run.attempt,
            outcome: &outcome,
            wait,
        };
        let _ = self.sink.tell(&[event]);
        let (cancel, cancelled) = oneshot::channel();
        run.cancel = Some(cancel);
        run.last = Some(outcome);
        let control = self.engine.control.clone();
        self.running.rest(number, wait, cancelled, control);
    }

    /// The wait is over: the next attempt starts, if that may be recorded. If not, the last one was the last.
    fn again(&mut self, number: usize) {
        let Some((_, run)) = self.queue.run(number) else {
            return;
        };
        run.attempt += 1;
        let last = run.last.take();
        let event = self.queue.get(number).and_then(started);
        let Err(Refused(why)) = self.sink.tell(event.as_slice()) else {
            return self.launch(number);
        };
        if let Some((_, run)) = self.queue.run(number) {
            run.attempt -= 1;
        }
        self.finish(number, &last.unwrap_or(Outcome::LogRefused(why)));
    }

    /// A call was ended because another failed, or because the run is over.
    fn given_up(&mut self, number: usize, written: Written, reach: Reach) {
        if self.unproven(number) {
            return;
        }
        let Some((_, run)) = self.queue.run(number) else {
            return;
        };
        let writes = run.job.accepted.tool.effect == Effect::Write;
        // What writes waits for its next attempt only if the last one surely did nothing.
        let reach = match &run.last {
            Some(_) if writes => Reach::Nowhere,
            _ => reach,
        };
        let outcome = match (run.cancelled_by.take(), self.engine.control.halted()) {
            (None, Some(by)) => interrupted(by, written, reach),
            (by, _) => cancelled(by.unwrap_or_default(), written, reach),
        };
        self.finish(number, &outcome);
    }
}

fn interrupted(by: Halt, written: Written, reach: Reach) -> Outcome {
    let Written {
        output,
        stderr,
        captured,
    } = written;
    match reach {
        Reach::Nowhere => Outcome::NotExecuted(NotExecuted::Halted(by)),
        Reach::Midway => Outcome::Interrupted {
            by,
            output,
            stderr,
            captured,
        },
        Reach::Unknown => Outcome::InDoubt {
            doubt: Doubt::Interrupted(by),
            output,
            captured,
        },
    }
}

fn cancelled(by: String, written: Written, reach: Reach) -> Outcome {
    let Written {
        output,
        stderr,
        captured,
    } = written;
    match reach {
        Reach::Nowhere => Outcome::NotExecuted(NotExecuted::Sibling { tool: by }),
        Reach::Midway => Outcome::Cancelled {
            by,
            output,
            stderr,
            captured,
        },
        Reach::Unknown => Outcome::InDoubt {
            doubt: Doubt::Cancelled(by),
            output,
            captured,
        },
    }
}
