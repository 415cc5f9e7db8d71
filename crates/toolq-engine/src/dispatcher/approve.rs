//! Asks for approvals. The call that is next in order waits for its approval at the gate, so it holds its place; calls
//! before it go on running.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::debug;

use crate::approval::{ApprovalReply, Approver, program_reply, question_job};
use crate::attempt::Attempt;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{AttemptTimeout, CallJob};
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, EmitError, Event, HaltCause,
    Outcome,
};

/// The approval of the call that is next in order.
#[derive(Debug)]
pub(crate) struct PendingApproval {
    /// The number of the call.
    number: usize,
    state: ApprovalState,
}

#[derive(Debug)]
enum ApprovalState {
    /// Somebody was asked. Sending withdraws the question.
    Asked(oneshot::Sender<()>),
    /// The call may start.
    Granted,
}

impl Dispatcher<'_> {
    /// Asks about the call that is next in order, if it needs an approval and hasn't been asked about.
    pub(crate) fn request_approval(&mut self) {
        let next = self.gate.next_waiting();
        let is_stale = |pending: &mut PendingApproval| Some(pending.number) != next;
        if let Some(PendingApproval {
            state: ApprovalState::Asked(withdraw),
            ..
        }) = self.approval.take_if(is_stale)
        {
            let _ = withdraw.send(());
        }
        let Some(number) = next.filter(|_| self.approval.is_none()) else {
            return;
        };
        let Some(job) = self.queue.waiting_job(number) else {
            return;
        };
        if !job.accepted.needs_approval || self.check_blocked(number, &job.accepted.tool).is_some()
        {
            return;
        }
        match self.engine.settings.approver.clone() {
            None => {}
            Some(Approver::All { user }) => {
                let approval = Approval {
                    decision: ApprovalDecision::Yes,
                    means: ApprovalMeans::All,
                    reason: None,
                    user,
                };
                self.apply_approval(number, &approval);
            }
            Some(approver) => self.ask(number, &job, &approver),
        }
    }

    /// Returns whether the call with this number may start as far as approvals go.
    pub(crate) fn is_approved(&self, number: usize, job: &CallJob) -> bool {
        let is_granted = |pending: &PendingApproval| {
            pending.number == number && matches!(pending.state, ApprovalState::Granted)
        };
        !job.accepted.needs_approval || self.approval.as_ref().is_some_and(is_granted)
    }

    /// Ends a call whose approval nobody gave. Calls with effects don't run before it, so that their order is kept when
    /// a later run has the approval.
    pub(crate) fn finish_unapproved(&mut self, number: usize) {
        let tool = self
            .queue
            .get(number)
            .map(|entry| entry.call.tool_name.clone());
        self.unapproved_tool = self.unapproved_tool.take().or(tool);
        self.gate.remove(number);
        self.finish_call(number, Outcome::NeedsApproval);
    }

    fn ask(&mut self, number: usize, job: &Arc<CallJob>, approver: &Approver) {
        let Some(entry) = self.queue.get(number) else {
            return;
        };
        let request = ApprovalRequest {
            call: entry.call.clone(),
            accepted: job.accepted.clone(),
        };
        debug!(id = job.call.id, "waits for an approval");
        self.emit(&Event::ApprovalRequested {
            call: &request.call,
            accepted: &request.accepted,
        });
        let (withdraw, withdrawn) = oneshot::channel();
        match approver {
            Approver::All { .. } => {}
            Approver::Program(program) => {
                let job = match question_job(program, job, &request, self.engine) {
                    Ok(job) => job,
                    Err(why) => return self.stop_for_approver(number, &why),
                };
                let attempt = self.question_attempt(number, job, withdrawn);
                let runner = Arc::clone(&self.engine.runner);
                let program = program.clone();
                self.attempt_tasks.spawn_question(number, async move {
                    program_reply(&program, runner.run(attempt).await)
                });
            }
            Approver::Person(prompt) => {
                let prompt = Arc::clone(prompt);
                self.attempt_tasks.spawn_question(number, async move {
                    tokio::select! {
                        reply = prompt.ask(&request) => reply,
                        _ = withdrawn => ApprovalReply::withdrawn(),
                    }
                });
            }
        }
        self.approval = Some(PendingApproval {
            number,
            state: ApprovalState::Asked(withdraw),
        });
    }

    fn question_attempt(
        &self,
        number: usize,
        job: CallJob,
        cancel: oneshot::Receiver<()>,
    ) -> Attempt {
        let after = job.accepted.tool.timeout.after;
        Attempt {
            job: Arc::new(job),
            is_probe: false,
            number: 1,
            idempotency_key: "".into(),
            timeout: AttemptTimeout {
                duration: after,
                configured: after,
            },
            cancel,
            progress: self.attempt_tasks.progress_sender(number),
            dispatcher: None,
            parent_scope: None,
            output_counter: self.engine.run_budget.time_only().output_counter(),
            control: self.engine.control.clone(),
        }
    }

    /// Handles the reply about a call. One about a call that no longer waits is ignored.
    pub(crate) fn handle_reply(&mut self, number: usize, reply: ApprovalReply) {
        let is_pending = |pending: &PendingApproval| pending.number == number;
        if !self.approval.as_ref().is_some_and(is_pending) {
            return;
        }
        match reply {
            ApprovalReply::Decided(approval) => self.apply_approval(number, &approval),
            ApprovalReply::Stopped(why) => self.stop_for_approver(number, &why),
        }
    }

    /// Stops the run, since nobody decides about a call.
    fn stop_for_approver(&mut self, number: usize, why: &str) {
        self.approval = None;
        if let Some(entry) = self.queue.get(number) {
            let call = entry.call.clone();
            self.emit(&Event::ApproverStopped { call: &call, why });
        }
        self.engine.control.halt(HaltCause::ApproverStopped);
        self.finish_unapproved(number);
    }

    /// Records what was said, and lets the call start or ends it.
    fn apply_approval(&mut self, number: usize, approval: &Approval) {
        let Some(entry) = self.queue.get(number) else {
            return;
        };
        let call = entry.call.clone();
        let event = Event::ApprovalDecided {
            call: &call,
            approval,
        };
        let outcome = match (self.sink.emit(&[event]), approval.decision) {
            (Ok(()), ApprovalDecision::Yes) => {
                self.approval = Some(PendingApproval {
                    number,
                    state: ApprovalState::Granted,
                });
                return;
            }
            (Ok(()), ApprovalDecision::No) => Outcome::Denied {
                reason: approval.reason.clone(),
            },
            (Err(EmitError(why)), _) => Outcome::LogRefused(why),
        };
        self.approval = None;
        self.gate.remove(number);
        self.finish_call(number, outcome);
    }
}
