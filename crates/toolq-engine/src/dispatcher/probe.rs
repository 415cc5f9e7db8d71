//! Probes calls. Before a call that an earlier run started runs again, its tool's probe checks whether it already did
//! its work.

use crate::dispatcher::restore::orphaned_outcome;
use crate::dispatcher::turn_loop::Dispatcher;
use toolq_core::answer::{AnswerWording, build_answer};
use toolq_core::types::{CallEnding, Event, Outcome, ProbeFinding, RestoredResult, Status};

impl Dispatcher<'_> {
    /// Handles the outcome of a probe: the call is done, is in doubt, or starts.
    pub(crate) fn finish_probe(&mut self, number: usize, outcome: &Outcome) {
        let now = self.engine.control.now();
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        let finding = finding_from_outcome(outcome);
        let event = Event::Probed {
            call,
            finding,
            outcome,
            duration: now.saturating_sub(run.started_at),
        };
        let _ = self.sink.emit(&[event]);
        match finding {
            ProbeFinding::Done => {
                let result = self.probed_result(number, outcome);
                self.settle(number, result);
            }
            ProbeFinding::Unknown => self.finish_call(number, orphaned_outcome()),
            ProbeFinding::NotDone => self.settle(number, None),
        }
    }

    /// Returns what a probe says that the result of its call was: its output.
    fn probed_result(&mut self, number: usize, outcome: &Outcome) -> Option<RestoredResult> {
        let (_, run) = self.queue.running_call(number)?;
        let mask = &self.engine.settings.mask;
        let tool = &run.job.accepted.tool;
        let wording = AnswerWording {
            messages: &tool.messages,
            mask,
            output_reader: None,
        };
        let answer = build_answer(&run.job.call, Some(tool), outcome, wording);
        Some(RestoredResult {
            status: Status::Resolved,
            is_error: answer.is_error,
            content: answer.content,
            cut_output: None,
            agent_usage: None,
            source: None,
        })
    }

    /// Handles the cancellation of a probe: the call is in doubt. Returns whether a probe was running.
    pub(crate) fn abort_probe(&mut self, number: usize) -> bool {
        let running = self.queue.running_call(number);
        let Some((_, run)) = running.filter(|(_, run)| run.is_probing()) else {
            return false;
        };
        run.canceled_by = None;
        self.finish_call(number, orphaned_outcome());
        true
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
