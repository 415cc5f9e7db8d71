//! Probes calls. Before a call that an earlier run started runs again, its tool's probe checks whether it already did
//! its work.

use crate::dispatcher::restore::orphaned_outcome;
use crate::dispatcher::start::start_event;
use crate::dispatcher::turn_loop::Dispatcher;
use toolq_core::types::{CallEnding, EmitError, Event, NotExecutedCause, Outcome, ProbeFinding};

impl Dispatcher<'_> {
    /// Handles the outcome of a probe: the call is done, is in doubt, or starts.
    pub(crate) fn finish_probe(&mut self, number: usize, outcome: Outcome) {
        let now = self.engine.control.now();
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        let finding = finding_from_outcome(&outcome);
        let event = Event::Probed {
            call,
            finding,
            outcome: &outcome,
            duration: now.saturating_sub(run.started_at),
        };
        let _ = self.sink.emit(&[event]);
        match finding {
            ProbeFinding::Done => self.finish_call(number, outcome),
            ProbeFinding::Unknown => self.finish_call(number, orphaned_outcome()),
            ProbeFinding::NotDone => self.start_after_probe(number),
        }
    }

    /// Handles the cancellation of a probe: the call is in doubt. Returns whether a probe was running.
    pub(crate) fn abort_probe(&mut self, number: usize) -> bool {
        let Some((_, run)) = self
            .queue
            .running_call(number)
            .filter(|(_, run)| run.is_probing)
        else {
            return false;
        };
        run.canceled_by = None;
        self.finish_call(number, orphaned_outcome());
        true
    }

    fn start_after_probe(&mut self, number: usize) {
        let now = self.engine.control.now();
        let Some((_, run)) = self.queue.running_call(number) else {
            return;
        };
        run.is_probing = false;
        run.started_at = now;
        // The call may have been canceled, or the run halted, in the meantime.
        let cause = match (run.canceled_by.take(), self.halted_by) {
            (Some(tool), _) => Some(NotExecutedCause::SiblingFailed { tool }),
            (None, halted) => halted.map(NotExecutedCause::Halted),
        };
        if let Some(cause) = cause {
            run.attempt = run.prior_attempts;
            return self.finish_call(number, Outcome::NotExecuted(cause));
        }
        let event = self.queue.get(number).and_then(start_event);
        match self.sink.emit(event.as_slice()) {
            Ok(()) => self.start_attempt(number),
            Err(EmitError(why)) => self.finish_call(number, Outcome::LogRefused(why)),
        }
    }
}

/// Returns what a probe with this outcome has found.
fn finding_from_outcome(outcome: &Outcome) -> ProbeFinding {
    match outcome.ending() {
        Some(CallEnding::ExitCode(0)) => ProbeFinding::Done,
        Some(CallEnding::ExitCode(1)) => ProbeFinding::NotDone,
        _ => ProbeFinding::Unknown,
    }
}
