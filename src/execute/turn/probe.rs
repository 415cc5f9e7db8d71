//! A call that an earlier run started is about to run: first its tool's probe is asked whether it did its work.

use crate::model::{Ending, Event, Finding, NotExecuted, Outcome, Refused};

use super::Turn;
use super::recall::orphaned;
use super::start::started;

impl Turn<'_> {
    /// The probe has answered: the call is done, is in doubt, or starts.
    pub(super) fn probed(&mut self, number: usize, outcome: &Outcome) {
        let now = self.engine.control.now();
        let Some((call, run)) = self.queue.run(number) else {
            return;
        };
        let finding = finding(outcome);
        let event = Event::Probed {
            call,
            finding,
            outcome,
            duration: now.saturating_sub(run.since),
        };
        let _ = self.sink.tell(&[event]);
        match finding {
            Finding::Done => self.finish(number, outcome),
            Finding::Unknown => self.finish(number, &orphaned()),
            Finding::NotDone => self.start_after_all(number),
        }
    }

    /// The probe was ended before it answered. What it is about is as unknown as before: a later run asks again.
    /// Whether there was one.
    pub(super) fn unproven(&mut self, number: usize) -> bool {
        let Some((_, run)) = self.queue.run(number).filter(|(_, run)| run.probing) else {
            return false;
        };
        let sibling = run.cancelled_by.take();
        let cause = match (sibling, self.engine.control.halted()) {
            (None, Some(by)) => NotExecuted::Halted(by),
            (tool, _) => NotExecuted::Sibling {
                tool: tool.unwrap_or_default(),
            },
        };
        self.finish(number, &Outcome::NotExecuted(cause));
        true
    }

    fn start_after_all(&mut self, number: usize) {
        // The run may have been ended meanwhile.
        if (self.halted.is_some() || self.is_cancelled(number)) && self.unproven(number) {
            return;
        }
        let now = self.engine.control.now();
        if let Some((_, run)) = self.queue.run(number) {
            run.probing = false;
            run.since = now;
        }
        let event = self.queue.get(number).and_then(started);
        match self.sink.tell(event.as_slice()) {
            Ok(()) => self.launch(number),
            Err(Refused(why)) => self.finish(number, &Outcome::LogRefused(why)),
        }
    }

    fn is_cancelled(&mut self, number: usize) -> bool {
        let run = self.queue.run(number);
        run.is_some_and(|(_, run)| run.cancelled_by.is_some())
    }
}

/// What a probe that ended so has found.
fn finding(outcome: &Outcome) -> Finding {
    match outcome.ending() {
        Some(Ending::Exit(0)) => Finding::Done,
        Some(Ending::Exit(1)) => Finding::NotDone,
        _ => Finding::Unknown,
    }
}
