//! A call that an earlier run started is about to run: first its tool's probe is asked whether it did its work.

use crate::dispatcher::restore::orphaned;
use crate::dispatcher::start::started;
use crate::dispatcher::turn::Turn;
use toolq_core::types::{Ending, Event, Finding, NotExecuted, Outcome, Refused};

impl Turn<'_> {
    /// The probe has answered: the call is done, is in doubt, or starts.
    pub(crate) fn probed(&mut self, number: usize, outcome: &Outcome) {
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

    /// The probe was ended before it answered. Whether there was one.
    pub(crate) fn unproven(&mut self, number: usize) -> bool {
        let Some((_, run)) = self.queue.run(number).filter(|(_, run)| run.probing) else {
            return false;
        };
        run.cancelled_by = None;
        self.finish(number, &orphaned());
        true
    }

    fn start_after_all(&mut self, number: usize) {
        let now = self.engine.control.now();
        let Some((_, run)) = self.queue.run(number) else {
            return;
        };
        run.probing = false;
        run.since = now;
        // The run may have been ended meanwhile.
        let cause = match (run.cancelled_by.take(), self.halted) {
            (Some(tool), _) => Some(NotExecuted::Sibling { tool }),
            (None, halted) => halted.map(NotExecuted::Halted),
        };
        if let Some(cause) = cause {
            run.attempt = run.before;
            return self.finish(number, &Outcome::NotExecuted(cause));
        }
        let event = self.queue.get(number).and_then(started);
        match self.sink.tell(event.as_slice()) {
            Ok(()) => self.launch(number),
            Err(Refused(why)) => self.finish(number, &Outcome::LogRefused(why)),
        }
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
