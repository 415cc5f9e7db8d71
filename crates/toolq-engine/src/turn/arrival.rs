//! Handles arriving calls: each waits at the gate, or is answered at once because it can't run or already did. While a
//! model response is streaming, partial inputs and revocations of calls arrive, too.

use std::sync::Arc;

use crate::attempt::CallJob;
use crate::recall::may_write;
use crate::turn::RunningTurn;
use crate::turn::call::CallStats;
use crate::turn::ending::{CallEffects, push_on_failure};
use crate::turn::queue::CallState;
use toolq_core::schedule::CallAccess;
use toolq_core::types::{
    AcceptedCall, Approval, Call, CallRef, CallRequest, CheckedCall, Event, Invocation,
    NotExecutedCause, OnFailure, Outcome, Rejection, TurnArrival, Verdict,
};

impl RunningTurn<'_> {
    /// Handles one arrival.
    pub(super) fn handle_arrival(&mut self, arrival: TurnArrival) {
        match arrival {
            TurnArrival::Call(checked) => {
                self.queue.keep_answers();
                self.enqueue_call(*checked);
            }
            TurnArrival::PartialInput {
                call,
                input_so_far: text,
            } => {
                let tool = self.engine.settings.tools.get(&call.tool_name);
                self.emit(&Event::PartialInput {
                    call: &call,
                    tool: tool.map(|tool| &**tool),
                    input_so_far: &text,
                });
            }
            TurnArrival::Revoked {
                position,
                rejection,
            } => self.revoke_call(position, rejection),
            TurnArrival::RestSkipped(cause) => self.end_arrivals(&cause),
        }
    }

    /// Appends a call to the queue.
    pub(super) fn enqueue_call(&mut self, checked: CheckedCall) {
        if let Some(position) = checked.repeats {
            let call_ref = Arc::new(CallRef::new(&checked.call, None));
            self.queue.push(call_ref, CallState::Repeats(position));
            // The call that it repeats may have been answered before.
            self.deliver_answers();
            return;
        }
        let is_known = checked.known.is_some();
        let is_completion = checked.verdict.is_completion();
        let batch = match (&checked.verdict, self.closed.cause(is_completion)) {
            // A call that an earlier run answered still gets a batch, so that the batches are those of the plan.
            (Verdict::Accepted(accepted), cause) if is_known || cause.is_none() => Some(
                self.batches
                    .partition
                    .assign_batch(&CallAccess::of(accepted)),
            ),
            _ => None,
        };
        self.stats.calls += 1;
        if checked.call.parent.is_some() {
            self.stats.tool_names.push(checked.call.name.to_string());
        }
        self.stats.rejected += u64::from(matches!(checked.verdict, Verdict::Rejected(_)));
        self.emit(&Event::Queued {
            checked: &checked,
            batch,
        });
        let call_ref = Arc::new(CallRef::new(&checked.call, batch));
        let CheckedCall {
            call,
            verdict,
            known,
            approval,
            unsettled,
            ..
        } = checked;
        let request = |accepted| CallRequest {
            call: &call,
            accepted,
        };
        match (known, verdict) {
            (Some(outcome), verdict) => {
                let completed = !outcome.is_error() && verdict.is_completion();
                self.note_known_failure(&call_ref, &outcome);
                self.answer_on_arrival(&call_ref, request(verdict.accepted()), &outcome);
                if completed {
                    let tool = call.name.to_string();
                    // The calls after it haven't arrived yet.
                    self.closed
                        .call
                        .get_or_insert(NotExecutedCause::SessionCompleted { tool });
                }
            }
            (None, Verdict::Accepted(accepted)) => {
                self.enqueue_accepted(call_ref, call, *accepted, (approval, unsettled));
            }
            (None, Verdict::Rejected(rejection)) => {
                let outcome = Outcome::Rejected(*rejection);
                self.answer_on_arrival(&call_ref, request(None), &outcome);
            }
        }
    }

    fn enqueue_accepted(
        &mut self,
        call_ref: Arc<CallRef>,
        call: Call,
        accepted: AcceptedCall,
        (approval, unsettled): (Option<Box<Approval>>, Option<Box<Outcome>>),
    ) {
        let ticket = self.engine.circuit_breakers.take_ticket(&accepted.tool);
        let access = CallAccess::of(&accepted);
        let needs_approval = accepted.needs_approval;
        let is_completion = matches!(accepted.invocation, Some(Invocation::Completion(_)));
        let is_remembered = may_write(&accepted.tool, &self.engine.settings.tools);
        let job = Arc::new(CallJob {
            call,
            accepted,
            ticket,
            is_remembered,
            approval,
            unsettled,
        });
        let number = self.queue.push(call_ref, CallState::Waiting(job));
        match self.closed.cause(is_completion) {
            // With a single job nothing runs in parallel, not even agents, which need no permit.
            None => {
                let access = if self.engine.settings.jobs.get() > 1 {
                    access
                } else {
                    CallAccess::ALONE
                };
                self.gate.push(number, access);
                if needs_approval {
                    self.approvals.unapproved.insert(number);
                }
            }
            Some(cause) => self.finish_call(number, Outcome::NotExecuted(cause)),
        }
    }

    /// Rejects a waiting call after all. A call that has started continues.
    fn revoke_call(&mut self, position: usize, rejection: Rejection) {
        let number = self.queue.number_at_position(position);
        if let Some(number) = number
            && (self.gate.remove(number)
                || !self.withdraw_throttled(|other| other == number).is_empty())
        {
            self.stats.rejected += 1;
            self.finish_call(number, Outcome::Rejected(rejection));
        }
    }

    /// Skips the calls that are waiting, and those that still arrive.
    fn end_arrivals(&mut self, cause: &NotExecutedCause) {
        self.closed.input.get_or_insert_with(|| cause.clone());
        let skipped = self.withdraw_waiting(cause, |_| true);
        self.apply_effects(skipped);
    }

    /// Lets the failure of a call that ended in an earlier run affect its siblings as it did then. Some of them haven't arrived yet.
    fn note_known_failure(&mut self, call: &CallRef, outcome: &Outcome) {
        let failed = outcome.is_error() && !outcome.is_stopped_externally();
        if let (true, Some(batch), Some(tool)) = (
            failed,
            call.batch,
            self.engine.settings.tools.get(&call.tool_name),
        ) && tool.on_failure == OnFailure::CancelSiblings
        {
            self.batches.canceled.insert(batch, tool.name.clone());
        }
    }

    /// Answers a call that was rejected, or whose outcome the memory knows. If it names a known tool, its outcome counts
    /// for the policies of that tool.
    pub(super) fn answer_on_arrival(
        &mut self,
        call_ref: &Arc<CallRef>,
        request: CallRequest<'_>,
        outcome: &Outcome,
    ) {
        let tool = self.engine.settings.tools.get(&request.call.name);
        let number = self.queue.push(Arc::clone(call_ref), CallState::Finishing);
        let agent = match outcome {
            Outcome::Restored(restored) => restored.agent_usage.clone(),
            _ => None,
        };
        let stats = CallStats {
            agent_usage: agent,
            ..CallStats::default()
        };
        self.answer_call(
            number,
            call_ref,
            request,
            tool.map(|tool| &**tool),
            outcome,
            stats,
        );
        let mut effects = CallEffects::new();
        if let Some(tool) = tool {
            let ticket = self.engine.circuit_breakers.take_ticket(tool);
            self.engine
                .circuit_breakers
                .record_outcome(tool, ticket, outcome);
            push_on_failure(number, tool, outcome, &mut effects);
        }
        self.apply_effects(effects);
    }
}
