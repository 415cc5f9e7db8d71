//! Handles events from running calls: progress, the end of an attempt, and the retry that may follow.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::attempt::{AttemptResult, CancelPoint};
use crate::dispatcher::attempt_tasks::TaskEvent;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::progress::Progress;
use crate::scheduler::retry;
use toolq_core::types::{
    CallOutput, DoubtCause, Effect, EmitError, Event, HaltCause, NotExecutedCause, Outcome,
};

impl Dispatcher<'_> {
    pub(crate) fn handle_task_event(&mut self, event: TaskEvent) {
        match event {
            TaskEvent::Progress(number, progress) => self.forward_progress(number, &progress),
            TaskEvent::AttemptFinished(number, result) => {
                // The calls of an agent finish before the agent's own call does.
                if let Some(result) = self.sub_turns.defer_result(number, result) {
                    self.finish_attempt(number, result);
                }
            }
            TaskEvent::BackoffElapsed(number) => self.finish_backoff(number),
            TaskEvent::ApprovalReplied(number, reply) => self.handle_reply(number, reply),
            TaskEvent::AgentRequest(number, request) => self.handle_agent_request(number, request),
            TaskEvent::Recalled(number, recalled) => self.handle_recalled(number, recalled),
            TaskEvent::OtherRunEnded(number, recalled) => self.handle_other_run(number, recalled),
            TaskEvent::Committed(numbers, committed) => self.handle_committed(numbers, &committed),
            TaskEvent::Settled(number, settled) => self.handle_settled(number, settled),
            TaskEvent::Synced(request) => {
                self.queue.note_synced(request);
                self.deliver_answers();
            }
        }
    }

    pub(crate) fn finish_attempt(&mut self, number: usize, result: AttemptResult) {
        self.sub_turns.drop_engine(number);
        match result {
            AttemptResult::Canceled {
                partial_output,
                cancel_point,
            } => self.finish_canceled(number, partial_output, cancel_point),
            AttemptResult::Finished {
                outcome,
                retry_after,
            } => self.finish_or_retry(number, outcome, retry_after),
        }
    }

    fn forward_progress(&mut self, number: usize, progress: &Progress) {
        if let Some((call, _)) = self.queue.running_call(number) {
            let event = Event::Status {
                call,
                message: progress.message.as_deref(),
                progress: progress.fraction,
                params: progress.params.as_deref(),
                result: progress.result.as_deref(),
            };
            let _ = self.sink.emit(&[event]);
        }
    }

    /// Handles the end of an attempt: either schedules a retry or finishes the call.
    fn finish_or_retry(&mut self, number: usize, outcome: Outcome, retry_after: Option<Duration>) {
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        if run.is_probing() {
            return self.finish_probe(number, &outcome);
        }
        let wait = retry::next_wait(
            &run.job.accepted.tool,
            run.attempt,
            &outcome,
            retry_after,
            run.remaining_time(self.engine.control.now()),
            run.jitter_seed(),
        );
        let may_retry =
            run.agent_usage.is_none() && run.canceled_by.is_none() && self.halted_by.is_none();
        let Some(wait) = wait.filter(|_| may_retry) else {
            return self.finish_call(number, outcome);
        };
        let event = Event::Retrying {
            call,
            attempt: run.attempt,
            outcome: &outcome,
            wait,
        };
        let _ = self.sink.emit(&[event]);
        let (cancel, canceled) = oneshot::channel();
        run.cancel = Some(cancel);
        run.last_outcome = Some(Box::new(outcome));
        let control = self.engine.control.clone();
        self.attempt_tasks
            .spawn_backoff(number, wait, canceled, control);
    }

    /// Starts the next attempt after its backoff, or lets it wait for its limits.
    fn finish_backoff(&mut self, number: usize) {
        let is_halted = self.halted_by.is_some();
        let Some((_, run)) = self.queue.running_call(number) else {
            return;
        };
        run.cancel = None;
        // It was canceled after the backoff had elapsed. Nobody would cancel another attempt.
        if is_halted || run.canceled_by.is_some() {
            if let Some(outcome) = self.canceled_retry_outcome(number) {
                self.finish_call(number, outcome);
            }
            return;
        }
        let job = Arc::clone(&run.job);
        let limits = self.limits_of(&job);
        if limits.is_empty() {
            self.start_retry(number);
        } else {
            self.throttle_call(number, &limits, true);
        }
    }

    /// Starts the next attempt. If a sink refuses the start, the call finishes with the outcome of the previous attempt.
    pub(crate) fn start_retry(&mut self, number: usize) {
        let Some((_, run)) = self.queue.running_call(number) else {
            return;
        };
        run.attempt += 1;
        let last_outcome = run.last_outcome.take();
        let Err(EmitError(why)) = self.emit_start(number) else {
            return self.start_attempt(number);
        };
        if let Some((_, run)) = self.queue.running_call(number) {
            run.attempt -= 1;
        }
        let outcome = last_outcome.map_or(Outcome::LogRefused(why), |outcome| *outcome);
        self.finish_call(number, outcome);
    }

    /// Finishes a call that was canceled, because another one failed or because the run was halted.
    fn finish_canceled(&mut self, number: usize, output: CallOutput, cancel_point: CancelPoint) {
        if self.abort_probe(number) {
            return;
        }
        if let Some(outcome) = self.outcome_of_canceled(number, output, cancel_point) {
            self.finish_call(number, outcome);
        }
    }

    /// Returns the outcome of a call that was canceled while it waited for another attempt.
    pub(crate) fn canceled_retry_outcome(&mut self, number: usize) -> Option<Outcome> {
        let cancel_point = CancelPoint::WhileRunning;
        self.outcome_of_canceled(number, CallOutput::default(), cancel_point)
    }

    fn outcome_of_canceled(
        &mut self,
        number: usize,
        output: CallOutput,
        cancel_point: CancelPoint,
    ) -> Option<Outcome> {
        let (_, run) = self.queue.running_call(number)?;
        let accepted = &run.job.accepted;
        // An agent would make its calls once more.
        let writes = if run.job.is_agent() {
            run.has_inner_effect
        } else {
            accepted.tool.effect == Effect::Write
        };
        // An agent that times out has its answer, and what it had started is part of that.
        let by_agent = run.canceled_by.is_none()
            && self.engine.control.halt_cause() == Some(HaltCause::AgentStopped);
        let cancel_point = match (&run.last_outcome, cancel_point) {
            // A tool that writes is retried only if the last attempt surely did nothing.
            (Some(_), _) if writes => CancelPoint::BeforeStart,
            // It may have done its work or not, and running it again could do it twice.
            (None, CancelPoint::WhileRunning) if writes && !by_agent => CancelPoint::Unknown,
            (_, cancel_point) => cancel_point,
        };
        Some(
            match (run.canceled_by.take(), self.engine.control.halt_cause()) {
                (None, Some(by)) => interrupted_outcome(by, output, cancel_point),
                (by, _) => canceled_outcome(by.unwrap_or_default(), output, cancel_point),
            },
        )
    }
}

fn interrupted_outcome(by: HaltCause, output: CallOutput, cancel_point: CancelPoint) -> Outcome {
    match cancel_point {
        CancelPoint::BeforeStart => Outcome::NotExecuted(NotExecutedCause::Halted(by)),
        CancelPoint::WhileRunning => Outcome::Interrupted { cause: by, output },
        CancelPoint::Unknown => Outcome::InDoubt {
            cause: DoubtCause::Interrupted(by),
            output,
        },
    }
}

fn canceled_outcome(by: String, output: CallOutput, cancel_point: CancelPoint) -> Outcome {
    match cancel_point {
        CancelPoint::BeforeStart => {
            Outcome::NotExecuted(NotExecutedCause::SiblingFailed { tool: by })
        }
        CancelPoint::WhileRunning => Outcome::Canceled {
            failed_tool: by,
            output,
        },
        CancelPoint::Unknown => Outcome::InDoubt {
            cause: DoubtCause::Canceled(by),
            output,
        },
    }
}
