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
    /// Nobody decides about this call.
    Missing,
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
        // Calls before it that wait for their turn haven't started.
        let may_ask = self.approval.is_none() && !self.throttled.has_unstarted();
        let Some(number) = next.filter(|_| may_ask) else {
            return;
        };
        let Some(job) = self.queue.waiting_job(number) else {
            return;
        };
        if !job.accepted.needs_approval || self.check_blocked(number, &job.accepted.tool).is_some()
        {
            return;
        }
        let approver = self.engine.settings.approver.clone();
        self.decide(number, &job, approver.as_ref());
    }

    /// Lets the approver decide about a call.
    fn decide(&mut self, number: usize, job: &Arc<CallJob>, approver: Option<&Approver>) {
        match approver {
            None => {
                let state = ApprovalState::Missing;
                self.approval = Some(PendingApproval { number, state });
            }
            Some(Approver::All { user }) => {
                let approval = Approval {
                    decision: ApprovalDecision::Yes,
                    means: ApprovalMeans::All,
                    reason: None,
                    user: user.clone(),
                };
                self.apply_approval(number, &approval);
            }
            Some(Approver::Planned {
                approvals,
                otherwise,
            }) => {
                let request = self.approval_request(number, job);
                match request.and_then(|request| approvals.approval_of(&request)) {
                    Some(approval) => self.apply_approval(number, &approval),
                    None => self.decide(number, job, otherwise.as_deref()),
                }
            }
            Some(approver @ (Approver::Program(_) | Approver::Person(_))) => {
                self.ask(number, job, approver);
            }
        }
    }

    fn approval_request(&self, number: usize, job: &CallJob) -> Option<ApprovalRequest> {
        let entry = self.queue.get(number)?;
        Some(ApprovalRequest {
            call: entry.call.clone(),
            accepted: job.accepted.clone(),
        })
    }

    /// Returns whether the call with this number may start as far as approvals go.
    pub(crate) fn is_approved(&self, number: usize, job: &CallJob) -> bool {
        let is_granted = |pending: &PendingApproval| {
            pending.number == number && matches!(pending.state, ApprovalState::Granted)
        };
        !job.accepted.needs_approval || self.approval.as_ref().is_some_and(is_granted)
    }

    /// Returns whether nobody decides about the call with this number.
    pub(crate) fn lacks_approver(&self, number: usize) -> bool {
        self.approval.as_ref().is_some_and(|pending| {
            pending.number == number && matches!(pending.state, ApprovalState::Missing)
        })
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
        let Some(request) = self.approval_request(number, job) else {
            return;
        };
        debug!(id = job.call.id, "waits for an approval");
        self.emit(&Event::ApprovalRequested {
            call: &request.call,
            accepted: &request.accepted,
        });
        let (withdraw, withdrawn) = oneshot::channel();
        match approver {
            Approver::All { .. } | Approver::Planned { .. } => {}
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
            ApprovalReply::Unavailable => {
                self.approval = None;
                self.finish_unapproved(number);
            }
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
