//! Ends calls: a call that is over gets its answer, and answers are delivered in call order.

use std::sync::Arc;
use std::time::Duration;

use tracing::debug;

use crate::dispatcher::effects::CallEffect;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::recall::may_write;
use crate::scheduler::{CallState, Durability, RunningCall};
use crate::settings::EngineSettings;
use toolq_core::answer;
use toolq_core::answer::AnswerWording;
use toolq_core::types::{
    AgentUsage, CallClaim, CallEnding, CallRef, CallRequest, DoubtCause, Event, Invocation,
    NotExecutedCause, Outcome, Tool,
};

/// How long a call took, its number of attempts, and what its agent used.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallStats {
    duration: Duration,
    attempts: u32,
    agent_usage: Option<Box<AgentUsage>>,
    claim: Option<CallClaim>,
}

impl CallStats {
    /// Adds what its agent used.
    pub(crate) fn with_agent_usage(self, agent: Option<Box<AgentUsage>>) -> Self {
        Self {
            agent_usage: agent,
            ..self
        }
    }

    fn from_running(run: &RunningCall, outcome: &Outcome, now: Duration) -> Self {
        // A call that was canceled before it did anything was started all the same, and its record must show that.
        let was_canceled = matches!(outcome, Outcome::NotExecuted(_));
        if outcome.is_skipped() && !was_canceled || outcome.is_restored() {
            return Self::default();
        }
        let mut agent_usage = run.agent_usage.clone();
        if let Some(usage) = &mut agent_usage {
            usage.ran_out_of_turns = outcome.ending() == Some(CallEnding::Unfinished);
        }
        Self {
            duration: now.saturating_sub(run.started_at),
            attempts: if run.has_started() { run.attempt } else { 0 },
            agent_usage,
            claim: run.claim.clone().or_else(|| run.probed.clone()),
        }
    }
}

impl Dispatcher<'_> {
    /// Gives a waiting or running call its answer, and adds what follows from that to the work list. One that an earlier run
    /// has started, and that is left alone now, isn't just skipped.
    pub(crate) fn end_call(&mut self, number: usize, outcome: &Outcome) {
        let Some((call_ref, state)) = self.queue.take_state(number) else {
            return;
        };
        self.unapproved.remove(&number);
        let is_left_alone = outcome.is_skipped() || matches!(outcome, Outcome::Denied { .. });
        let unsettled = state.unsettled().filter(|_| is_left_alone).cloned();
        let outcome = unsettled.as_ref().unwrap_or(outcome);
        let (job, stats) = match state {
            CallState::Waiting(job) => (job, CallStats::default()),
            CallState::Running(run) => {
                let stats = self.leave_gate(number, &run, &call_ref, outcome);
                (Arc::clone(&run.job), stats)
            }
            CallState::Finishing | CallState::Answered(..) | CallState::Repeats(_) => return,
        };
        debug!(
            id = call_ref.tool_use_id,
            tool = &*call_ref.tool_name,
            status = outcome.status().as_str(),
            duration = ?stats.duration,
            attempts = stats.attempts,
            "ended"
        );
        let tool = &job.accepted.tool;
        if let Some(usage) = &stats.agent_usage {
            self.emit(&Event::AgentCompleted {
                call: &call_ref,
                agent: &usage.agent_name,
                duration: stats.duration,
            });
        }
        let request = CallRequest {
            call: &job.call,
            accepted: Some(&job.accepted),
        };
        self.answer_call(number, &call_ref, request, Some(tool), outcome, stats);
        self.engine
            .circuit_breakers
            .record_outcome(tool, job.ticket, outcome);
        self.push_on_failure(number, tool, outcome);
        if let (Some(Invocation::Completion(_)), false) =
            (&job.accepted.invocation, outcome.is_error())
        {
            let tool = tool.name.clone();
            let cause = NotExecutedCause::SessionCompleted { tool };
            self.effects.push_back(CallEffect::SkipLater(number, cause));
        }
    }

    /// Lets later calls pass the gate, and updates what the results that are kept depend on. Returns the stats of the call.
    fn leave_gate(
        &mut self,
        number: usize,
        run: &RunningCall,
        call_ref: &CallRef,
        outcome: &Outcome,
    ) -> CallStats {
        self.gate.leave(number);
        let cache = &self.engine.result_cache;
        let root = &self.engine.settings.tools.root;
        cache.note_change(&run.job.accepted, root);
        if let Some(ticket) = &run.cache_ticket {
            cache.keep(ticket, call_ref, outcome);
        }
        CallStats::from_running(run, outcome, self.engine.control.now())
    }

    /// Builds the answer of a call, emits it, and keeps it until all earlier answers have been delivered.
    pub(crate) fn answer_call(
        &mut self,
        number: usize,
        call_ref: &CallRef,
        request: CallRequest<'_>,
        tool: Option<&Tool>,
        outcome: &Outcome,
        CallStats {
            duration,
            attempts,
            agent_usage,
            claim,
        }: CallStats,
    ) {
        self.record_doubt(call_ref, outcome);
        let is_kept = self.note_output(call_ref, tool, outcome);
        let EngineSettings { tools, mask, .. } = &self.engine.settings;
        let wording = AnswerWording {
            messages: tool.map_or(&tools.messages, |tool| &tool.messages),
            mask,
            output_reader: is_kept.then(|| tools.output_reader()).flatten(),
        };
        let mut answer = answer::build_answer(request.call, tool, outcome, wording);
        (answer.report.duration, answer.report.attempts) = (duration, attempts);
        let hit = outcome
            .captured()
            .and_then(|captured| captured.cached.as_ref());
        answer.report.cached_age = hit.map(|hit| hit.age);
        self.emit(&Event::Finished {
            call: call_ref,
            request,
            outcome,
            answer: &answer,
            duration,
            attempts,
            agent_usage: agent_usage.as_deref(),
            claim: claim.as_ref(),
        });
        let may_have_happened = attempts > 0 || outcome.is_restored();
        let is_remembered = tool.is_none_or(|tool| may_write(tool, &self.engine.settings.tools));
        let waits = may_have_happened && is_remembered && self.engine.settings.memory.is_some();
        let durability = if waits {
            Durability::Unrequested
        } else {
            Durability::Unneeded
        };
        self.queue.set_answer(number, answer, durability);
    }

    /// Remembers what is left of the output of a call for later calls of the same conversation. Returns whether they can read
    /// more than its result has.
    fn note_output(&self, call: &CallRef, tool: Option<&Tool>, outcome: &Outcome) -> bool {
        let output_dir = self.engine.settings.output_dir.as_deref();
        let outputs = self.engine.outputs.as_ref();
        outputs.is_some_and(|outputs| outputs.note_end(call, tool, outcome, output_dir))
    }

    /// Remembers the first call in doubt, for the agent whose turn this is. If that call is in doubt only because of a
    /// nested call, the nested call is remembered instead, since it is the one that can be resolved.
    fn record_doubt(&mut self, call: &CallRef, outcome: &Outcome) {
        let first = self
            .stats
            .first_doubt
            .as_ref()
            .map(|(position, _)| *position);
        if !outcome.is_in_doubt() || first.is_some_and(|first| first < call.position) {
            return;
        }
        let doubt = match outcome {
            Outcome::InDoubt {
                cause: doubt @ DoubtCause::NestedCall { .. },
                ..
            } => doubt.clone(),
            _ => DoubtCause::NestedCall {
                tool: call.tool_name.to_string(),
                id: call.tool_use_id.clone(),
            },
        };
        self.stats.first_doubt = Some((call.position, doubt));
    }

    /// Delivers the answers, in call order, up to the first one that is missing.
    pub(crate) fn deliver_answers(&mut self) {
        while let Some((call, answer)) = self.queue.pop_answered() {
            self.delivery.deliver(&call, answer, &mut self.sink);
        }
    }
}
