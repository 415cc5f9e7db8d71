//! News of a running call: what it says, how an attempt ended, and whether another follows.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::execute::attempt::{End, Written};
use crate::execute::retry;
use crate::execute::running::{News, Note};
use crate::model::{Event, Outcome, Refused};

use super::Turn;
use super::start::started;

impl Turn<'_> {
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Said(number, note) => self.pass_on(number, &note),
            News::Ended(number, End::Cancelled(written)) => self.given_up(number, written),
            News::Ended(
                number,
                End::Outcome {
                    outcome,
                    retry_after,
                },
            ) => {
                self.ended(number, outcome, retry_after);
            }
            News::Rested(number) => self.again(number),
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
        let Some(wait) = wait.filter(|_| run.cancelled_by.is_none() && self.halted.is_none())
        else {
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
        let control = self.engine.control();
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
    fn given_up(&mut self, number: usize, written: Written) {
        if self.unproven(number) {
            return;
        }
        let run = self.queue.run(number);
        let sibling = run.and_then(|(_, run)| run.cancelled_by.take());
        let outcome = match (sibling, self.engine.control.halted()) {
            (None, Some(by)) => Outcome::Interrupted {
                by,
                output: written.output,
                stderr: written.stderr,
                captured: written.captured,
            },
            (by, _) => Outcome::Cancelled {
                by: by.unwrap_or_default(),
            },
        };
        self.finish(number, &outcome);
    }
}
