//! The life of a call that has its place in the order and its permit.

#[cfg(test)]
pub(crate) mod tests;

use std::convert::Infallible;
use std::future::{Future, pending};
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::attempt::{AttemptResult, AttemptTimeout, CallJob};
use crate::reach::{Reach, StopCause};
use crate::result_cache::CacheTicket;
use crate::scheduler::{self, Permit, StartSlot};
use crate::turn::lines::RetryInLine;
use crate::turn::starts::{CallMessage, StartRequest, TurnLink};
use toolq_core::types::{
    AgentUsage, CallClaim, CallEnding, CallOutput, CallRef, CallTimeouts, Effect, EmitError, Event,
    Outcome,
};

/// A call that has its place in the order and its permit.
#[derive(Debug)]
pub(super) struct RunningCall {
    pub(super) number: usize,
    pub(super) call: Arc<CallRef>,
    pub(super) job: Arc<CallJob>,
    pub(super) idempotency_key: Arc<str>,
    /// When it got its place, in the engine's time.
    pub(super) started_at: Duration,
    /// The current attempt, counted from 1.
    pub(super) attempt: u32,
    /// Whether an attempt has begun.
    pub(super) has_started: bool,
    /// What stands for it in the memory.
    pub(super) claim: Option<CallClaim>,
    /// The attempt of another run about which its tool's probe is asked, and the outcome if that says nothing. This run hasn't
    /// started the call itself.
    pub(super) probed: Option<(CallClaim, Box<Outcome>)>,
    /// Somebody has approved it in this run.
    pub(super) is_approved: bool,
    /// What its agent has used. `None` if it isn't a call of an agent.
    pub(super) agent_usage: Option<Box<AgentUsage>>,
    /// It has started although it isn't `read`, or its agent has started such a call.
    pub(super) has_effect: bool,
    /// With which its result is kept for later calls.
    pub(super) cache_ticket: Option<Arc<CacheTicket>>,
    /// How long limits delayed the current attempt. `None` if they didn't.
    pub(super) waited: Option<Duration>,
    /// Its place in the limits of its tool, server or host.
    pub(super) slot: Option<StartSlot>,
    /// `None` while it waits for another run.
    pub(super) permit: Option<Permit>,
}

/// A call that has its outcome, and what its answer says about it.
#[derive(Debug)]
pub(super) struct EndedCall {
    pub(super) number: usize,
    pub(super) job: Arc<CallJob>,
    pub(super) outcome: Outcome,
    pub(super) stats: CallStats,
    pub(super) has_effect: bool,
    pub(super) cache_ticket: Option<Arc<CacheTicket>>,
}

/// How long a call took, its number of attempts, and what its agent used.
#[derive(Debug, Clone, Default)]
pub(super) struct CallStats {
    pub(super) duration: Duration,
    pub(super) attempts: u32,
    pub(super) agent_usage: Option<Box<AgentUsage>>,
    pub(super) claim: Option<CallClaim>,
}

impl RunningCall {
    pub(super) fn new(
        (number, call): (usize, Arc<CallRef>),
        job: Arc<CallJob>,
        idempotency_key: String,
        now: Duration,
        permit: Permit,
    ) -> Self {
        let agent_name = job.is_agent().then(|| job.accepted.tool.name.as_str());
        Self {
            number,
            call,
            agent_usage: agent_name.map(AgentUsage::new).map(Box::new),
            permit: Some(permit),
            idempotency_key: idempotency_key.into(),
            started_at: now,
            attempt: 1,
            has_started: false,
            claim: None,
            probed: None,
            is_approved: false,
            job,
            waited: None,
            has_effect: false,
            cache_ticket: None,
            slot: None,
        }
    }

    /// Runs the call to its end.
    pub(super) async fn run(mut self, turn: TurnLink<'_>, mut stop: StopSignal) -> EndedCall {
        let Break(outcome) = self.live(&turn, &mut stop).await;
        self.end(outcome, turn.engine.control.now())
    }

    /// The life of a call. Breaks with its outcome.
    async fn live(
        &mut self,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> ControlFlow<Outcome, Infallible> {
        // An earlier or another run may know its outcome, or be at it. Nothing happens before its start is on record and, if
        // it may write, its claim is durable. What is over soon is boxed, so that a call that runs needs little memory.
        loop {
            stop.before_start(Box::pin(self.ask_memory(turn))).await?;
            let is_ours = stop.before_start(self.record_start(turn)).await?;
            if !is_ours {
                self.claim = None;
            } else if self.is_probing() {
                Box::pin(self.probe(turn, stop)).await?;
            } else {
                break;
            }
        }
        loop {
            let result = self.attempt(turn, stop).await;
            let (last, wait) = self.judge(result, turn, stop)?;
            Box::pin(self.wait_for_retry(&last, wait, turn, stop)).await?;
            self.record_retry(last, turn)?;
        }
    }

    /// Has its start emitted, together with those of others. Returns whether it may start now: not if another run has claimed it
    /// first.
    async fn record_start(&self, turn: &TurnLink<'_>) -> ControlFlow<Outcome, bool> {
        let (reply, replied) = oneshot::channel();
        let start = self.start();
        turn.send(CallMessage::Start(StartRequest { start, reply }));
        match replied.await {
            Ok(Ok(is_ours)) => Continue(is_ours),
            Ok(Err(EmitError(why))) => Break(Outcome::LogRefused(why)),
            Err(_) => Break(Outcome::LogRefused("the log gave no answer".to_owned())),
        }
    }

    /// Decides what follows from an attempt: another one after this wait, or the end.
    fn judge(
        &self,
        result: AttemptResult,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> ControlFlow<Outcome, (Outcome, Duration)> {
        let (outcome, retry_after) = match result {
            AttemptResult::Finished {
                outcome,
                retry_after,
            } => (outcome, retry_after),
            AttemptResult::Canceled {
                partial_output,
                reach,
            } => return Break(self.canceled_outcome(partial_output, reach, turn, stop)),
        };
        // An agent would make its calls once more.
        if self.agent_usage.is_some() || stop.poll().is_some() {
            return Break(outcome);
        }
        let wait = scheduler::next_wait(
            &self.job.accepted.tool,
            self.attempt,
            &outcome,
            retry_after,
            self.remaining_time(turn.engine.control.now()),
            scheduler::jitter_seed(&self.idempotency_key),
        );
        match wait {
            Some(wait) => Continue((outcome, wait)),
            None => Break(outcome),
        }
    }

    /// Waits before the next attempt, first for its backoff and then for its limits.
    async fn wait_for_retry(
        &mut self,
        last: &Outcome,
        wait: Duration,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> ControlFlow<Outcome> {
        let _ = turn.sink.emit(&[Event::Retrying {
            call: &self.call,
            attempt: self.attempt,
            outcome: last,
            wait,
        }]);
        let control = &turn.engine.control;
        let due = async {
            control.sleep(wait).await;
            let limits = turn.engine.limits_of(&self.job);
            if limits.is_empty() {
                return Continue(None);
            }
            let (reply, replied) = oneshot::channel();
            turn.send(CallMessage::Retry(RetryInLine {
                number: self.number,
                limits,
                reply,
            }));
            let late = async {
                match self.remaining_time(control.now()) {
                    Some(remaining) => control.sleep(remaining).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                // It can't start within `timeout.total`.
                () = late => Break(last.clone()),
                Ok(waited) = replied => Continue(waited),
            }
        };
        self.waited = tokio::select! {
            biased;
            cause = stop.received() => {
                // A tool that writes is retried only if the last attempt surely did nothing.
                let reach = if self.writes() { Reach::NotSent } else { Reach::Harmless };
                return Break(reach.outcome_of_stop(cause, CallOutput::default()));
            }
            waited = due => waited?,
        };
        Continue(())
    }

    /// Emits the start of the next attempt. If a sink refuses it, the call ends with the outcome of the last one.
    fn record_retry(&mut self, last: Outcome, turn: &TurnLink<'_>) -> ControlFlow<Outcome> {
        self.attempt += 1;
        if turn.sink.emit(&[self.start().event()]).is_err() {
            self.attempt -= 1;
            return Break(last);
        }
        Continue(())
    }

    /// Returns the outcome of a call whose attempt was canceled, because another call failed or because the run was halted.
    fn canceled_outcome(
        &self,
        output: CallOutput,
        reach: Reach,
        turn: &TurnLink<'_>,
        stop: &mut StopSignal,
    ) -> Outcome {
        let cause = stop.cause(turn);
        reach
            .of_stopped_call(self.writes(), &cause)
            .outcome_of_stop(cause, output)
    }

    /// Returns the outcome as the turn sees it, with what there is to say about the call.
    fn end(self, outcome: Outcome, now: Duration) -> EndedCall {
        let outcome = match self.claim {
            // A claim of its own shows that the earlier start is settled.
            Some(_) => outcome,
            None => self.job.unclaimed_outcome(outcome),
        };
        EndedCall {
            number: self.number,
            stats: self.stats(&outcome, now),
            has_effect: self.has_effect,
            job: self.job,
            cache_ticket: self.cache_ticket,
            outcome,
        }
    }

    fn stats(&self, outcome: &Outcome, now: Duration) -> CallStats {
        // A call that was canceled before it did anything was started all the same, and its record must show that.
        let was_canceled = matches!(outcome, Outcome::NotExecuted(_));
        if outcome.is_skipped() && !was_canceled || outcome.is_restored() {
            return CallStats::default();
        }
        let mut agent_usage = self.agent_usage.clone();
        if let Some(usage) = &mut agent_usage {
            usage.ran_out_of_turns = outcome.ending() == Some(CallEnding::Unfinished);
        }
        CallStats {
            duration: now.saturating_sub(self.started_at),
            attempts: if self.has_started { self.attempt } else { 0 },
            agent_usage,
            claim: self.claim.clone(),
        }
    }

    /// Whether its tool's probe runs, and not the call itself.
    pub(super) fn is_probing(&self) -> bool {
        self.probed.is_some()
    }

    /// Returns whether a canceled attempt may have changed something.
    fn writes(&self) -> bool {
        if self.job.is_agent() {
            self.has_effect
        } else {
            self.job.accepted.tool.effect == Effect::Write
        }
    }

    /// Returns what is left of `timeout.total`. `None` if the tool has no such limit.
    fn remaining_time(&self, now: Duration) -> Option<Duration> {
        let total = self.timeout().total?;
        Some(total.saturating_sub(now.saturating_sub(self.started_at)))
    }

    /// Returns how long the next attempt may take, and which limit that comes from.
    pub(super) fn attempt_timeout(&self, now: Duration) -> AttemptTimeout {
        let CallTimeouts { after, total, .. } = *self.timeout();
        match (self.remaining_time(now), total) {
            (Some(remaining), Some(total)) if remaining < after => AttemptTimeout {
                duration: remaining,
                configured: total,
            },
            _ => AttemptTimeout {
                duration: after,
                configured: after,
            },
        }
    }

    fn timeout(&self) -> &CallTimeouts {
        &self.job.accepted.tool.timeout
    }

    fn start(&self) -> Start {
        Start {
            number: self.number,
            call: Arc::clone(&self.call),
            job: Arc::clone(&self.job),
            is_probe: self.is_probing(),
            attempt: self.attempt,
            idempotency_key: Arc::clone(&self.idempotency_key),
            claim: self.claim.clone(),
            waited: self.waited,
        }
    }
}

/// A start of a call, of another attempt of it, or of its probe.
pub(super) struct Start {
    pub(super) number: usize,
    pub(super) call: Arc<CallRef>,
    pub(super) job: Arc<CallJob>,
    pub(super) is_probe: bool,
    pub(super) claim: Option<CallClaim>,
    attempt: u32,
    idempotency_key: Arc<str>,
    waited: Option<Duration>,
}

impl Start {
    pub(super) fn event(&self) -> Event<'_> {
        if self.is_probe {
            return Event::Probing { call: &self.call };
        }
        Event::Started {
            call: &self.call,
            accepted: &self.job.accepted,
            attempt: self.attempt,
            idempotency_key: &self.idempotency_key,
            claim: self.claim.as_ref(),
            waited: self.waited,
        }
    }
}

/// Tells the life of a call that the turn stops it.
#[derive(Debug)]
pub(super) struct StopSignal {
    sent: oneshot::Receiver<StopCause>,
    cause: Option<StopCause>,
}

impl StopSignal {
    pub(super) fn new(sent: oneshot::Receiver<StopCause>) -> Self {
        Self { sent, cause: None }
    }

    /// Waits until the call is stopped, and returns why.
    pub(super) async fn received(&mut self) -> StopCause {
        if let Some(cause) = &self.cause {
            return cause.clone();
        }
        let Ok(cause) = (&mut self.sent).await else {
            return pending().await;
        };
        self.cause.insert(cause).clone()
    }

    /// Returns why the call is stopped, if it is.
    fn poll(&mut self) -> Option<&StopCause> {
        if self.cause.is_none() {
            self.cause = self.sent.try_recv().ok();
        }
        self.cause.as_ref()
    }

    /// Does what comes before the start of a call, unless it is stopped. Then it has done nothing.
    async fn before_start<T>(
        &mut self,
        work: impl Future<Output = ControlFlow<Outcome, T>>,
    ) -> ControlFlow<Outcome, T> {
        tokio::select! {
            biased;
            cause = self.received() => {
                Break(Reach::NotSent.outcome_of_stop(cause, CallOutput::default()))
            }
            flow = work => flow,
        }
    }

    /// Returns why a call was canceled. An attempt that is killed may end before the turn has stopped its call.
    fn cause(&mut self, turn: &TurnLink<'_>) -> StopCause {
        match (self.poll(), turn.engine.control.halt_cause()) {
            (Some(cause), _) => cause.clone(),
            (None, Some(by)) => StopCause::Halted(by),
            (None, None) => StopCause::SiblingFailed(String::new()),
        }
    }
}
