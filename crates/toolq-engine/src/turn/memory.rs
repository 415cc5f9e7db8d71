//! What the memory has to do with the life of a call: it is asked once the call has its place, and a probe settles what it
//! doesn't know.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::attempt::AttemptResult;
use crate::timing::{MAX_LOOK_AGAIN_INTERVAL, MIN_LOOK_AGAIN_INTERVAL};
use crate::turn::call::{RunningCall, StopSignal};
use crate::turn::starts::TurnLink;
use toolq_core::answer::{AnswerWording, build_answer};
use toolq_core::types::{
    Approval, ApprovalDecision, CallEnding, CallMemory, EmitError, Event, MemoryVerdict, Outcome,
    ProbeFinding, RecalledCall, Recollection, RestoredResult, Status,
};

impl RunningCall {
    /// Asks the memory what becomes of the call, and waits while another run is at it. Breaks if there is nothing to start.
    pub(super) async fn ask_memory(&mut self, turn: &TurnLink<'_>) -> ControlFlow<Outcome> {
        let Some(memory) = &turn.engine.settings.memory else {
            return Continue(());
        };
        if !self.job.is_remembered {
            return Continue(());
        }
        let mut recollection = self.recall(memory, turn).await?;
        while matches!(recollection.verdict, MemoryVerdict::RunsElsewhere) {
            self.permit = None;
            let limit = self.job.accepted.tool.timeout.after;
            recollection = tokio::select! {
                biased;
                recalled = self.wait_for_other_run(memory, turn) => recalled?,
                () = turn.engine.control.sleep(limit) => return Break(Outcome::IsRunning),
            };
            if !matches!(recollection.verdict, MemoryVerdict::Known(_)) {
                // It runs after all, so it needs a permit again, and what was true before it had one may not be.
                self.permit = turn.engine.limit_for(&self.job).acquire_owned().await.ok();
                recollection = self.recall(memory, turn).await?;
            }
        }
        // An approval on record is one of this attempt.
        let is_yes = |approval: Approval| approval.decision == ApprovalDecision::Yes;
        let may_run = !self.job.accepted.needs_approval
            || self.is_approved
            || recollection.approval.is_some_and(is_yes);
        match recollection.verdict {
            MemoryVerdict::Run(claim) => {
                self.idempotency_key = claim.idempotency_key.as_str().into();
                self.claim = Some(claim);
                if !may_run {
                    return Break(Outcome::NeedsApproval);
                }
            }
            MemoryVerdict::Probe(claim, doubt) => self.probed = Some((claim, doubt)),
            MemoryVerdict::Known(outcome) => return Break(*outcome),
            MemoryVerdict::Forgettable | MemoryVerdict::RunsElsewhere => {}
        }
        Continue(())
    }

    async fn recall(
        &self,
        memory: &Arc<dyn CallMemory>,
        turn: &TurnLink<'_>,
    ) -> ControlFlow<Outcome, Recollection> {
        let (job, origin) = (Arc::clone(&self.job), turn.engine.turn_origin.clone());
        let ask = move |memory: &dyn CallMemory| {
            memory.history().recall(&RecalledCall {
                call: &job.call,
                accepted: Some(&job.accepted),
                origin: &origin,
            })
        };
        let recalled = if memory.history().is_at_hand() {
            ask(&**memory)
        } else {
            let memory = Arc::clone(memory);
            let asked = spawn_blocking(move || ask(&*memory)).await;
            asked.unwrap_or_else(|_| Err(memory_panicked()))
        };
        unless_refused(recalled)
    }

    /// Waits until another run has the result of the call, or no longer is at it.
    async fn wait_for_other_run(
        &self,
        memory: &Arc<dyn CallMemory>,
        turn: &TurnLink<'_>,
    ) -> ControlFlow<Outcome, Recollection> {
        let mut interval = MIN_LOOK_AGAIN_INTERVAL;
        loop {
            turn.engine.control.sleep(interval).await;
            interval = (interval * 2).min(MAX_LOOK_AGAIN_INTERVAL);
            let recollection = self.recall(memory, turn).await?;
            if !matches!(recollection.verdict, MemoryVerdict::RunsElsewhere) {
                return Continue(recollection);
            }
        }
    }

    /// Runs the probe of the call's tool, which checks whether an earlier run did its work, and records what it has found. The
    /// memory says what follows from that. Breaks if nothing was found: the call is in doubt.
    pub(super) async fn probe(
        &mut self,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> ControlFlow<Outcome> {
        let attempted = self.attempt(turn, stop).await;
        let Some((claim, doubt)) = self.probed.take() else {
            return Continue(());
        };
        let AttemptResult::Finished { outcome, .. } = attempted else {
            return Break(*doubt);
        };
        let finding = match outcome.ending() {
            Some(CallEnding::ExitCode(0)) => ProbeFinding::Done,
            Some(CallEnding::ExitCode(1)) => ProbeFinding::NotDone,
            _ => ProbeFinding::Unknown,
        };
        let _ = turn.sink.emit(&[Event::Probed {
            call: &self.call,
            finding,
            outcome: &outcome,
            duration: turn.engine.control.now().saturating_sub(self.started_at),
        }]);
        let result = match finding {
            ProbeFinding::Done => Some(self.probed_result(&outcome, turn)),
            ProbeFinding::NotDone => None,
            ProbeFinding::Unknown => return Break(*doubt),
        };
        let Some(memory) = &turn.engine.settings.memory else {
            return Continue(());
        };
        let (memory, call) = (Arc::clone(memory), Arc::clone(&self.call));
        let settled = spawn_blocking(move || memory.settle(&call, &claim, result.as_ref())).await;
        unless_refused(settled.unwrap_or_else(|_| Err(memory_panicked())))
    }

    /// Returns what a probe says that the result of its call was: its output.
    fn probed_result(&self, outcome: &Outcome, turn: &TurnLink<'_>) -> RestoredResult {
        let tool = &self.job.accepted.tool;
        let wording = AnswerWording {
            messages: &tool.messages,
            mask: &turn.engine.settings.mask,
            output_reader: None,
        };
        let answer = build_answer(&self.job.call, Some(tool), outcome, wording);
        RestoredResult {
            status: Status::Resolved,
            is_error: answer.is_error,
            content: answer.content,
            cut_output: None,
            agent_usage: None,
            source: None,
        }
    }
}

fn unless_refused<T>(answer: Result<T, EmitError>) -> ControlFlow<Outcome, T> {
    match answer {
        Ok(answer) => Continue(answer),
        Err(EmitError(why)) => Break(Outcome::LogRefused(why)),
    }
}

fn memory_panicked() -> EmitError {
    EmitError("the memory couldn't be asked: a panic in toolq itself".to_owned())
}
