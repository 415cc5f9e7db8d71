//! A call that may run, and one that runs.

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::result_cache::CacheTicket;
use crate::scheduler::circuit_breaker::Ticket;
use crate::scheduler::permits::Permit;
use crate::scheduler::start_limits::StartSlot;
use crate::scheduler::timeout::AttemptTimeout;
use toolq_core::types::{
    AcceptedCall, AgentUsage, Approval, Call, CallClaim, CallTimeouts, Invocation, Outcome,
};

/// A call that may run, shared with the task that runs it.
#[derive(Debug)]
pub(crate) struct CallJob {
    pub(crate) call: Call,
    pub(crate) accepted: AcceptedCall,
    pub(crate) ticket: Option<Ticket>,
    /// Whether the memory keeps it: it may change something.
    pub(crate) is_remembered: bool,
    /// What was said about it when an earlier run asked whether it may start.
    pub(crate) approval: Option<Approval>,
    /// Its outcome if it is left alone, because of an earlier start that nothing is known of yet.
    pub(crate) unsettled: Option<Box<Outcome>>,
}

/// How far a call has come between getting its place and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearance {
    /// The memory hasn't been asked.
    Unasked,
    /// The memory is being asked.
    Asked,
    /// Another run is at it.
    Waiting,
    /// It may start, once that is on record.
    Cleared,
    /// Its start is on record, and becomes durable.
    Committing,
    /// It has started, or its probe has.
    Started,
}

impl CallJob {
    /// Returns whether it is a call of an agent.
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.accepted.invocation, Some(Invocation::Agent(_)))
    }
}

/// A call that has been started.
#[derive(Debug)]
pub(crate) struct RunningCall {
    pub(crate) job: Arc<CallJob>,
    pub(crate) idempotency_key: Arc<str>,
    /// When it started, in the engine's time.
    pub(crate) started_at: Duration,
    /// The current attempt, counted from 1.
    pub(crate) attempt: u32,
    /// How far it has come before its start.
    pub(crate) clearance: Clearance,
    /// What stands for it in the memory.
    pub(crate) claim: Option<CallClaim>,
    /// The attempt of another run about which its tool's probe is asked. This run hasn't started the call itself.
    pub(crate) probed: Option<CallClaim>,
    /// Cancels the attempt, or the backoff before the next one.
    pub(crate) cancel: Option<oneshot::Sender<()>>,
    /// The tool whose failure canceled it.
    pub(crate) canceled_by: Option<String>,
    /// The outcome of the last attempt, during the backoff before the next one.
    pub(crate) last_outcome: Option<Box<Outcome>>,
    /// What its agent has used. `None` if it isn't a call of an agent.
    pub(crate) agent_usage: Option<Box<AgentUsage>>,
    /// Its agent has started a call that isn't `read`.
    pub(crate) has_inner_effect: bool,
    /// With which its result is kept for later calls.
    pub(crate) cache_ticket: Option<Arc<CacheTicket>>,
    /// How long limits delayed the current attempt. `None` if they didn't.
    pub(crate) waited: Option<Duration>,
    /// Its place in the limits of its tool, server or host.
    pub(crate) slot: Option<StartSlot>,
    /// `None` while it waits for another run.
    pub(crate) permit: Option<Permit>,
}

impl RunningCall {
    /// Returns a call that is about to start for the first time in this run.
    pub(crate) fn new(
        job: Arc<CallJob>,
        idempotency_key: String,
        now: Duration,
        permit: Permit,
    ) -> Self {
        let agent_name = job.is_agent().then(|| job.accepted.tool.name.as_str());
        Self {
            agent_usage: agent_name.map(AgentUsage::new).map(Box::new),
            permit: Some(permit),
            idempotency_key: idempotency_key.into(),
            started_at: now,
            attempt: 1,
            clearance: Clearance::Unasked,
            claim: None,
            probed: None,
            job,
            cancel: None,
            canceled_by: None,
            last_outcome: None,
            waited: None,
            has_inner_effect: false,
            cache_ticket: None,
            slot: None,
        }
    }

    /// Whether its tool's probe runs, and not the call itself.
    pub(crate) fn is_probing(&self) -> bool {
        self.probed.is_some()
    }

    /// Whether it has started.
    pub(crate) fn has_started(&self) -> bool {
        self.clearance == Clearance::Started && self.probed.is_none()
    }

    /// Returns what is left of `timeout.total`. `None` if the tool has no such limit.
    pub(crate) fn remaining_time(&self, now: Duration) -> Option<Duration> {
        let total = self.timeout().total?;
        Some(total.saturating_sub(now.saturating_sub(self.started_at)))
    }

    /// Returns how long the next attempt may take, and which limit that comes from.
    pub(crate) fn attempt_timeout(&self, now: Duration) -> AttemptTimeout {
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

    /// Cancels the attempt, or the backoff before the next one. An attempt that has already ended keeps its own
    /// outcome.
    pub(crate) fn cancel_attempt(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            let _ = cancel.send(());
        }
    }

    /// Returns the seed of the call's backoff jitter, which is the same on every run.
    pub(crate) fn jitter_seed(&self) -> u64 {
        let digits = self.idempotency_key.get(..16).unwrap_or_default();
        u64::from_str_radix(digits, 16).unwrap_or_default()
    }

    fn timeout(&self) -> &CallTimeouts {
        &self.job.accepted.tool.timeout
    }
}
