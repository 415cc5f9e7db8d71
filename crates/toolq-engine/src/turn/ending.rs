//! Ends calls: a call that is over gets its answer, answers are delivered in call order, and what the end of a call does to
//! others is a list of work. Handling an effect may add more, so calls end one after another, and the consequences of one in
//! the order in which they arose.

use std::collections::VecDeque;

use futures_util::{FutureExt as _, StreamExt as _};

use crate::attempt::CallJob;
use crate::reach::StopCause;
use crate::recall::may_write;
use crate::settings::EngineSettings;
use crate::turn::RunningTurn;
use crate::turn::call::{CallStats, EndedCall};
use crate::turn::queue::Durability;
use toolq_core::answer::{self, AnswerWording};
use toolq_core::types::{
    CallRef, CallRequest, DoubtCause, Event, HaltCause, Invocation, NotExecutedCause, OnDoubt,
    OnFailure, Outcome, Tool,
};

/// What remains to be done because calls have ended, in this order.
pub(super) type CallEffects = VecDeque<CallEffect>;

/// Something that remains to be done because a call has ended.
#[derive(Debug)]
pub(super) enum CallEffect {
    /// Answer the call with this number, which waits and won't run.
    Skip(usize, Outcome),
    /// Answer this call, which has had its place.
    End(Box<EndedCall>),
    /// Skip all calls after the one with this number.
    SkipLater(usize, NotExecutedCause),
    /// Cancel the other calls of the batch of the call with this number, whose tool is named.
    CancelSiblings(usize, String),
}

impl RunningTurn<'_> {
    /// Ends a waiting call that doesn't run, with everything that follows from that.
    pub(super) fn finish_call(&mut self, number: usize, outcome: Outcome) {
        self.apply_effects([CallEffect::Skip(number, outcome)].into());
    }

    /// Ends a call that has come to its end, with everything that follows from that.
    pub(super) fn finish_ended(&mut self, ended: EndedCall) {
        self.apply_effects([CallEffect::End(Box::new(ended))].into());
    }

    /// Handles effects until there are none.
    pub(super) fn apply_effects(&mut self, mut effects: CallEffects) {
        while let Some(effect) = effects.pop_front() {
            match effect {
                CallEffect::Skip(number, outcome) => self.skip_call(number, outcome, &mut effects),
                CallEffect::End(ended) => self.end_call(*ended, &mut effects),
                CallEffect::SkipLater(last, cause) => effects.extend(self.skip_later(last, &cause)),
                CallEffect::CancelSiblings(number, tool) => {
                    effects.extend(self.cancel_siblings(number, &tool));
                }
            }
        }
    }

    /// Delivers the answers, in call order, up to the first one that is missing.
    pub(super) fn deliver_answers(&mut self) {
        let mut next = self.queue.pop_answered();
        if next.is_some() {
            // What happened is on record before anybody reads a result.
            self.write_events();
        }
        while let Some((call, answer)) = next {
            self.delivery.deliver(&call, answer, &mut self.sink);
            next = self.queue.pop_answered();
        }
    }

    fn skip_call(&mut self, number: usize, outcome: Outcome, effects: &mut CallEffects) {
        if let Some(job) = self.queue.waiting_job(number) {
            let outcome = job.unclaimed_outcome(outcome);
            self.conclude((number, &job), &outcome, CallStats::default(), effects);
        }
    }

    /// Lets later calls pass the gate, and updates what the results that are kept depend on.
    fn end_call(&mut self, ended: EndedCall, effects: &mut CallEffects) {
        let EndedCall {
            number,
            job,
            outcome,
            stats,
            ..
        } = ended;
        self.gate.leave(number);
        self.lines.withdraw_retry(number, self.engine);
        self.stats.has_effect |= ended.has_effect;
        let cache = &self.engine.result_cache;
        cache.note_change(&job.accepted, &self.engine.settings.tools.root);
        if let (Some(ticket), Some(entry)) = (&ended.cache_ticket, self.queue.get(number)) {
            cache.keep(ticket, &entry.call, &outcome);
        }
        if matches!(outcome, Outcome::NeedsApproval) {
            self.note_unapproved(number, &job);
        }
        self.conclude((number, &job), &outcome, stats, effects);
    }

    /// Gives a call its answer, and adds what follows from that to the list of work.
    fn conclude(
        &mut self,
        (number, job): (usize, &CallJob),
        outcome: &Outcome,
        stats: CallStats,
        effects: &mut CallEffects,
    ) {
        let Some(call_ref) = self.queue.begin_answer(number) else {
            return;
        };
        self.approvals.unapproved.remove(&number);
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
        push_on_failure(number, tool, outcome, effects);
        if let (Some(Invocation::Completion(_)), false) =
            (&job.accepted.invocation, outcome.is_error())
        {
            let tool = tool.name.clone();
            let cause = NotExecutedCause::SessionCompleted { tool };
            effects.push_back(CallEffect::SkipLater(number, cause));
        }
    }

    /// Builds the answer of a call, emits it, and keeps it until all earlier answers have been delivered.
    pub(super) fn answer_call(
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
        let EngineSettings { tools, mask, .. } = &*self.engine.settings;
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
        let _ = self.sink.emit_later(&Event::Finished {
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

    /// Skips all later calls, unless an earlier call already did.
    fn skip_later(&mut self, last: usize, cause: &NotExecutedCause) -> CallEffects {
        if self.closed.call.is_some() {
            return CallEffects::new();
        }
        self.closed.call = Some(cause.clone());
        self.withdraw_waiting(cause, |number| number > last)
    }

    /// Cancels the other calls of the batch, both running and waiting.
    fn cancel_siblings(&mut self, number: usize, tool: &str) -> CallEffects {
        let entry = self.queue.get(number);
        let Some(failed_batch) = entry.and_then(|entry| entry.call.batch) else {
            return CallEffects::new();
        };
        let cause = StopCause::SiblingFailed(tool.to_owned());
        let mut effects = self.stop_running(&cause, |batch| batch == Some(failed_batch));
        let in_batch = self.queue.batch_range(number);
        let tool = tool.to_owned();
        let cause = NotExecutedCause::SiblingFailed { tool };
        effects.extend(self.withdraw_waiting(&cause, |number| in_batch.contains(&number)));
        effects
    }

    /// Stops the running calls of such batches. Returns those that have ended at once.
    fn stop_running(
        &mut self,
        cause: &StopCause,
        matches: impl Fn(Option<usize>) -> bool,
    ) -> CallEffects {
        for (batch, stop) in self.queue.running_calls() {
            if matches(batch) {
                stop.send(cause);
            }
        }
        let mut ended = CallEffects::new();
        while let Some(Some(call)) = self.calls.lives.next().now_or_never() {
            ended.push_back(CallEffect::End(Box::new(call)));
        }
        ended
    }

    /// Takes waiting calls away from the gate, also those that are throttled. They are to be skipped in call order.
    pub(super) fn withdraw_waiting(
        &mut self,
        cause: &NotExecutedCause,
        matches: impl Fn(usize) -> bool,
    ) -> CallEffects {
        let mut numbers = self.withdraw_throttled(&matches);
        numbers.extend(self.gate.withdraw(&matches));
        numbers.sort_unstable();
        let skip = |number| CallEffect::Skip(number, Outcome::NotExecuted(cause.clone()));
        numbers.into_iter().map(skip).collect()
    }

    /// Halts this turn if the run must stop, even if that was decided before the turn started: nothing new starts, running calls
    /// are canceled, and every call is answered.
    pub(super) fn check_halt(&mut self) {
        let control = &self.engine.control;
        if let Some(budget) = self.engine.run_budget.exhausted_budget(control.now()) {
            control.halt(HaltCause::OverBudget(budget));
        }
        if let Some(cause) = control.halt_cause()
            && self.closed.halt.is_none()
        {
            self.closed.halt = Some(cause);
            let mut effects = self.stop_running(&StopCause::Halted(cause), |_| true);
            effects.extend(self.withdraw_waiting(&NotExecutedCause::Halted(cause), |_| true));
            self.apply_effects(effects);
        }
    }
}

/// Adds what the tool's `on_doubt` and `on_failure` do to the other calls of the turn. A call that was skipped or stopped from
/// outside cancels no siblings, but stops later calls just like one that failed: they build on its result.
pub(super) fn push_on_failure(
    number: usize,
    tool: &Tool,
    outcome: &Outcome,
    effects: &mut CallEffects,
) {
    if !outcome.is_error() {
        return;
    }
    let tool_name = tool.name.clone();
    if outcome.is_in_doubt() && tool.on_doubt == OnDoubt::Stop {
        let tool = tool.name.clone();
        let cause = NotExecutedCause::PrecedingInDoubt { tool };
        effects.push_back(CallEffect::SkipLater(number, cause));
    }
    match tool.on_failure {
        OnFailure::CancelSiblings if outcome.cancels_siblings() => {
            effects.push_back(CallEffect::CancelSiblings(number, tool_name));
        }
        OnFailure::Continue | OnFailure::CancelSiblings => {}
        OnFailure::Stop => {
            let cause = NotExecutedCause::PrecedingFailed { tool: tool_name };
            effects.push_back(CallEffect::SkipLater(number, cause));
        }
    }
}
