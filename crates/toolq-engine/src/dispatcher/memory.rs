//! Asks the memory about calls that are about to start, and waits for what has to be durable before they do.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tracing::debug;

use crate::dispatcher::attempt_tasks::TaskEvent;
use crate::dispatcher::start::start_event;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{CallState, Clearance, RunningCall};
use crate::timing::{MAX_LOOK_AGAIN_INTERVAL, MIN_LOOK_AGAIN_INTERVAL};
use toolq_core::types::{
    Approval, ApprovalDecision, CallMemory, Commit, EmitError, Event, MemoryVerdict,
    NotExecutedCause, Outcome, RecalledCall, Recollection, RestoredResult,
};

impl Dispatcher<'_> {
    /// Takes the calls that may start to where they can: some may at once, others only once the memory has been asked and what it
    /// needs is durable. Returns those whose starts are to be emitted now.
    pub(crate) fn clear_starts(&mut self, admitted: Vec<usize>) -> Vec<usize> {
        let mut cleared = Vec::new();
        for number in admitted {
            let Some((_, run)) = self.queue.running_call(number) else {
                continue;
            };
            match run.clearance {
                Clearance::Unasked if run.job.is_remembered => self.ask_memory(number),
                Clearance::Unasked | Clearance::Cleared => cleared.push(number),
                Clearance::Asked
                | Clearance::Waiting
                | Clearance::Committing
                | Clearance::Started => {}
            }
        }
        cleared.append(&mut self.cleared);
        cleared
    }

    /// Asks the memory what becomes of a call.
    pub(crate) fn ask_memory(&mut self, number: usize) {
        let Some(memory) = self.engine.settings.memory.clone() else {
            return self.clear(number);
        };
        let Some((_, run)) = self.queue.running_call(number) else {
            return;
        };
        run.clearance = Clearance::Asked;
        let (job, origin) = (Arc::clone(&run.job), self.engine.turn_origin.clone());
        let ask = move |memory: &dyn CallMemory| {
            memory.recall(&RecalledCall {
                call: &job.call,
                accepted: Some(&job.accepted),
                origin: &origin,
            })
        };
        if memory.is_at_hand() {
            let recalled = ask(&*memory);
            return self.handle_recalled(number, recalled);
        }
        self.attempt_tasks.spawn_memory_task(number, async move {
            let recalled = spawn_blocking(move || ask(&*memory)).await;
            TaskEvent::Recalled(number, recalled.unwrap_or_else(|_| Err(memory_panicked())))
        });
    }

    /// Acts on what the memory says about a call that has its place.
    pub(crate) fn handle_recalled(
        &mut self,
        number: usize,
        recalled: Result<Recollection, EmitError>,
    ) {
        if let Some(cause) = self.stop_cause(number) {
            return self.finish_call(number, Outcome::NotExecuted(cause));
        }
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        let recollection = match recalled {
            Ok(recollection) => recollection,
            Err(EmitError(why)) => return self.finish_call(number, Outcome::LogRefused(why)),
        };
        debug!(id = call.tool_use_id, verdict = ?recollection.verdict, "the memory was asked");
        let is_yes = |approval: &Approval| approval.decision == ApprovalDecision::Yes;
        let was_approved_before = run.job.approval.as_ref().is_some_and(is_yes);
        let is_approved = recollection.approval.as_ref().is_some_and(is_yes);
        match recollection.verdict {
            MemoryVerdict::Run(_) if was_approved_before && !is_approved => {
                self.finish_call(number, Outcome::NeedsApproval);
            }
            MemoryVerdict::Run(claim) => {
                run.idempotency_key = claim.idempotency_key.as_str().into();
                run.claim = Some(claim);
                self.clear(number);
            }
            MemoryVerdict::Forgettable => self.clear(number),
            MemoryVerdict::Known(outcome) => self.finish_call(number, *outcome),
            MemoryVerdict::Probe(claim) => {
                run.probed = Some(claim);
                self.clear(number);
            }
            MemoryVerdict::RunsElsewhere => self.wait_for_other_run(number),
        }
    }

    fn clear(&mut self, number: usize) {
        if let Some((_, run)) = self.queue.running_call(number) {
            run.clearance = Clearance::Cleared;
            self.cleared.push(number);
        }
    }

    /// Waits until another run has the result of a call, as long as the call itself might take. Its permit is free meanwhile.
    fn wait_for_other_run(&mut self, number: usize) {
        let (Some(memory), control) = (
            self.engine.settings.memory.clone(),
            self.engine.control.clone(),
        ) else {
            return;
        };
        let origin = self.engine.turn_origin.clone();
        let Some((_, run)) = self.queue.running_call(number) else {
            return;
        };
        run.clearance = Clearance::Waiting;
        run.permit = None;
        let job = Arc::clone(&run.job);
        let waiting = async move {
            let mut interval = MIN_LOOK_AGAIN_INTERVAL;
            loop {
                control.sleep(interval).await;
                interval = (interval * 2).min(MAX_LOOK_AGAIN_INTERVAL);
                let (memory, job, origin) = (Arc::clone(&memory), Arc::clone(&job), origin.clone());
                let look = spawn_blocking(move || {
                    memory.recall(&RecalledCall {
                        call: &job.call,
                        accepted: Some(&job.accepted),
                        origin: &origin,
                    })
                });
                match look.await {
                    Ok(Ok(Recollection {
                        verdict: MemoryVerdict::RunsElsewhere,
                        ..
                    })) => {}
                    Ok(recalled) => return recalled,
                    Err(_) => return Err(memory_panicked()),
                }
            }
        };
        let limit = run.job.accepted.tool.timeout.after;
        let control = self.engine.control.clone();
        self.attempt_tasks.spawn_memory_task(number, async move {
            tokio::select! {
                biased;
                recalled = waiting => TaskEvent::OtherRunEnded(number, Some(recalled)),
                () = control.sleep(limit) => TaskEvent::OtherRunEnded(number, None),
            }
        });
    }

    /// Acts on what has become of a call that another run was at.
    pub(crate) fn handle_other_run(
        &mut self,
        number: usize,
        recalled: Option<Result<Recollection, EmitError>>,
    ) {
        match recalled {
            None => self.finish_call(number, Outcome::IsRunning),
            Some(Ok(recollection)) if !matches!(recollection.verdict, MemoryVerdict::Known(_)) => {
                // It runs after all, so it needs a permit again, and the memory is asked once it has one.
                if let Some((_, run)) = self.queue.running_call(number) {
                    run.clearance = Clearance::Unasked;
                    self.unpermitted.push(number);
                }
            }
            Some(recalled) => self.handle_recalled(number, recalled),
        }
    }

    /// Returns the calls that have got a permit again.
    pub(crate) fn permit_again(&mut self) -> Vec<usize> {
        let mut permitted = Vec::new();
        for number in std::mem::take(&mut self.unpermitted) {
            let Some((_, run)) = self.queue.running_call(number) else {
                continue;
            };
            let job = Arc::clone(&run.job);
            let limit = self.engine.limit_for(&job);
            match self.permits.take(&limit) {
                Some(permit) => {
                    if let Some((_, run)) = self.queue.running_call(number) {
                        run.permit = Some(permit);
                    }
                    permitted.push(number);
                }
                None => self.unpermitted.push(number),
            }
        }
        permitted
    }

    /// Starts calls whose starts were emitted: at once, or once what they need is durable.
    pub(crate) fn commit_starts(&mut self, numbers: &[usize]) {
        let memory = self.engine.settings.memory.clone();
        let (mut claims, mut claimed, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for number in numbers.iter().copied() {
            let Some((call, run)) = self.queue.running_call(number) else {
                continue;
            };
            if memory.is_none() || !run.job.is_remembered || run.probed.is_some() {
                self.start_attempt(number);
                continue;
            }
            run.clearance = Clearance::Committing;
            match &run.claim {
                Some(claim) => {
                    claims.push((call.key(), claim.clone()));
                    claimed.push(number);
                }
                None => recorded.push(number),
            }
        }
        let Some(memory) = memory else { return };
        if !claimed.is_empty() {
            let done = self.attempt_tasks.commit_sender(claimed);
            memory.commit(
                Commit {
                    claims,
                    syncs_log: false,
                },
                done,
            );
        }
        if !recorded.is_empty() {
            let done = self.attempt_tasks.commit_sender(recorded);
            memory.commit(
                Commit {
                    claims: Vec::new(),
                    syncs_log: true,
                },
                done,
            );
        }
    }

    /// Starts calls that are claimed now. One that another run has claimed first is looked up again.
    pub(crate) fn handle_committed(
        &mut self,
        numbers: Vec<usize>,
        committed: &Result<Vec<bool>, EmitError>,
    ) {
        for (index, number) in numbers.into_iter().enumerate() {
            let is_committing = |run: &RunningCall| run.clearance == Clearance::Committing;
            let Some((_, run)) = self
                .queue
                .running_call(number)
                .filter(|(_, run)| is_committing(run))
            else {
                continue;
            };
            match committed {
                Err(EmitError(why)) => self.finish_call(number, Outcome::LogRefused(why.clone())),
                Ok(are_ours) if are_ours.get(index).is_some_and(|is_ours| !is_ours) => {
                    run.claim = None;
                    self.ask_memory(number);
                }
                Ok(_) => match self.stop_cause(number) {
                    Some(cause) => self.finish_call(number, Outcome::NotExecuted(cause)),
                    None => self.start_attempt(number),
                },
            }
        }
    }

    /// Returns why a call that hasn't started must not start any more.
    fn stop_cause(&mut self, number: usize) -> Option<NotExecutedCause> {
        let halted = self.halted_by;
        let (_, run) = self.queue.running_call(number)?;
        let canceled = run.canceled_by.take();
        canceled
            .map(|tool| NotExecutedCause::SiblingFailed { tool })
            .or(halted.map(NotExecutedCause::Halted))
    }

    /// Returns the calls that have their place, but haven't started and must not any more, with their outcomes.
    pub(crate) fn withdraw_uncleared(&mut self) -> Vec<(usize, Outcome)> {
        let uncleared = self.queue.numbers_of(|state| match state {
            CallState::Running(run) => run.clearance != Clearance::Started,
            _ => false,
        });
        let ended = uncleared.into_iter().filter_map(|number| {
            let cause = self.stop_cause(number)?;
            Some((number, Outcome::NotExecuted(cause)))
        });
        ended.collect()
    }

    /// Records what a probe has found, and asks the memory again once that is durable.
    pub(crate) fn settle(&mut self, number: usize, done: Option<RestoredResult>) {
        let Some(memory) = self.engine.settings.memory.clone() else {
            return;
        };
        let Some((call, run)) = self.queue.running_call(number) else {
            return;
        };
        let Some(claim) = run.probed.take() else {
            return;
        };
        run.clearance = Clearance::Asked;
        let call = Arc::clone(call);
        self.attempt_tasks.spawn_memory_task(number, async move {
            let settled = spawn_blocking(move || memory.settle(&call, &claim, done.as_ref())).await;
            TaskEvent::Settled(number, settled.unwrap_or_else(|_| Err(memory_panicked())))
        });
    }

    /// Asks the memory again about a call that a probe has settled.
    pub(crate) fn handle_settled(&mut self, number: usize, settled: Result<(), EmitError>) {
        match settled {
            Ok(()) => self.ask_memory(number),
            Err(EmitError(why)) => self.finish_call(number, Outcome::LogRefused(why)),
        }
    }

    /// Requests that the results which somebody waits for become durable. This isn't done as soon as a call ends, so that one sync
    /// also covers the start that usually follows.
    pub(crate) fn sync_results(&mut self) {
        if !self.queue.has_unrequested() {
            return;
        }
        let Some(memory) = self.engine.settings.memory.clone() else {
            return;
        };
        let request = self.queue.request_sync();
        let done = self.attempt_tasks.sync_sender(request);
        memory.commit(
            Commit {
                claims: Vec::new(),
                syncs_log: true,
            },
            done,
        );
    }

    /// Emits the starts of these calls, and starts them once they may.
    pub(crate) fn emit_and_start(&mut self, cleared: &[usize]) -> Result<(), EmitError> {
        self.emit_starts(cleared)?;
        self.commit_starts(cleared);
        Ok(())
    }

    /// Emits the event for the start of one attempt, or of its probe.
    pub(crate) fn emit_start(&mut self, number: usize) -> Result<(), EmitError> {
        let event: Option<Event<'_>> = self.queue.get(number).and_then(start_event);
        self.sink.emit(event.as_slice())
    }
}

fn memory_panicked() -> EmitError {
    EmitError("the memory couldn't be asked: a panic in toolq itself".to_owned())
}
