//! Asks for approvals. The call that is next in order waits for its approval at the gate, so it keeps its place, while
//! the calls before it continue to run.

use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::debug;

use crate::approval::{ApprovalReply, Approver, program_reply, question_job};
use crate::attempt::Attempt;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::{AttemptTimeout, CallJob};
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, EmitError, Event, HaltCause,
    Outcome, RecalledCall,
};

/// A pending question about the call that is next in order.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    /// The number of the call.
    number: usize,
    /// Sending withdraws the question.
    withdraw: oneshot::Sender<()>,
}

impl Dispatcher<'_> {
    /// Asks for approval of the next call in order, if it needs one.
    pub(crate) fn request_approval(&mut self) {
        let next = self.gate.next_waiting();
        let is_stale = |pending: &mut PendingQuestion| Some(pending.number) != next;
        if let Some(PendingQuestion { withdraw, .. }) = self.question.take_if(is_stale) {
            let _ = withdraw.send(());
        }
        // Calls before it that are throttled haven't started.
        let may_ask = self.question.is_none() && !self.throttled.has_unstarted();
        let next = next.filter(|next| may_ask && self.unapproved.contains(next));
        let Some(number) = next else {
            return;
        };
        let Some(job) = self.queue.waiting_job(number) else {
            return;
        };
        if self.check_blocked(number, &job.accepted.tool).is_some() {
            return;
        }
        let mut approver = self.engine.settings.approver.clone();
        if self.decide_at_once(number, &job, approver.as_ref()) {
            return;
        }
        while let Some(Approver::Planned { otherwise, .. }) = approver {
            approver = otherwise.map(|otherwise| (*otherwise).clone());
        }
        match approver {
            Some(approver) => self.ask(number, &job, &approver),
            None => self.undecidable = Some(number),
        }
    }

    /// Applies what was decided about a call in advance. Returns whether anything was.
    fn decide_at_once(
        &mut self,
        number: usize,
        job: &Arc<CallJob>,
        approver: Option<&Approver>,
    ) -> bool {
        let approval = match approver {
            // Who decides now may have another opinion than who has said no before.
            _ if let Some(approval) = &job.approval
                && (approver.is_none() || approval.decision == ApprovalDecision::Yes) =>
            {
                approval.clone()
            }
            Some(Approver::All { user }) => Approval {
                decision: ApprovalDecision::Yes,
                means: ApprovalMeans::All,
                reason: None,
                user: user.clone(),
            },
            Some(Approver::Planned {
                approvals,
                otherwise,
            }) => {
                let request = self.approval_request(number, job);
                match request.and_then(|request| approvals.approval_of(&request)) {
                    Some(approval) => approval,
                    None => return self.decide_at_once(number, job, otherwise.as_deref()),
                }
            }
            None | Some(Approver::Program(_) | Approver::Person(_)) => return false,
        };
        self.apply_approval(number, &approval);
        true
    }

    fn approval_request(&self, number: usize, job: &CallJob) -> Option<ApprovalRequest> {
        let entry = self.queue.get(number)?;
        Some(ApprovalRequest {
            call: (*entry.call).clone(),
            accepted: job.accepted.clone(),
        })
    }

    /// Returns whether approvals allow the call with this number to start. No call starts while an earlier one is
    /// undecided, unless all are approved in advance.
    pub(crate) fn is_approved(&mut self, number: usize, job: &Arc<CallJob>) -> bool {
        let approver = self.engine.settings.approver.clone();
        let are_all_approved = matches!(approver, Some(Approver::All { .. }));
        let is_decided = |first: &usize| *first > number || are_all_approved && *first < number;
        if self.unapproved.contains(&number)
            && self.check_blocked(number, &job.accepted.tool).is_none()
            && (are_all_approved || self.unapproved.first() == Some(&number))
        {
            self.decide_at_once(number, job, approver.as_ref());
        }
        !self.unapproved.contains(&number) && self.unapproved.first().is_none_or(is_decided)
    }

    /// Returns whether the call with this number has no approver.
    pub(crate) fn lacks_approver(&self, number: usize) -> bool {
        self.undecidable == Some(number)
    }

    /// Ends a call that wasn't approved. Later calls with effects don't run either, so that their order is kept once a
    /// later run has the approval.
    pub(crate) fn finish_unapproved(&mut self, number: usize) {
        let tool = self
            .queue
            .get(number)
            .map(|entry| entry.call.tool_name.to_string());
        let is_first = |first: &mut (usize, String)| first.0 < number;
        let earlier = self.never_approved.take_if(is_first);
        self.never_approved = earlier.or(tool.map(|tool| (number, tool)));
        self.gate.remove(number);
        self.note_question(number);
        self.finish_call(number, Outcome::NeedsApproval);
    }

    /// Notes in the memory that a call waits for an approval, so that somebody can give it later.
    fn note_question(&mut self, number: usize) {
        if let (Some(memory), Some(job)) =
            (&self.engine.settings.memory, self.queue.waiting_job(number))
        {
            // If it can't be noted, the next run asks again.
            let _ = memory.ask(&RecalledCall {
                call: &job.call,
                accepted: Some(&job.accepted),
                origin: &self.engine.turn_origin,
            });
        }
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
        self.question = Some(PendingQuestion { number, withdraw });
    }

    fn question_attempt(
        &self,
        number: usize,
        job: CallJob,
        cancel: oneshot::Receiver<()>,
    ) -> Box<Attempt> {
        let after = job.accepted.tool.timeout.after;
        Box::new(Attempt {
            job: Arc::new(job),
            is_probe: false,
            number: 1,
            idempotency_key: "".into(),
            trace: None,
            timeout: AttemptTimeout {
                duration: after,
                configured: after,
            },
            cancel,
            progress: self.attempt_tasks.progress_sender(number, false),
            dispatcher: None,
            outputs: None,
            parent_scope: None,
            output_counter: self.engine.run_budget.time_only().output_counter(),
            control: self.engine.control.clone(),
        })
    }

    /// Handles the reply about a call. One about a call that no longer waits is ignored.
    pub(crate) fn handle_reply(&mut self, number: usize, reply: ApprovalReply) {
        let is_pending = |pending: &mut PendingQuestion| pending.number == number;
        if self.question.take_if(is_pending).is_none() {
            return;
        }
        match reply {
            ApprovalReply::Decided(approval) => self.apply_approval(number, &approval),
            ApprovalReply::Unavailable => {
                self.finish_unapproved(number);
            }
            ApprovalReply::Stopped(why) => self.stop_for_approver(number, &why),
        }
    }

    /// Stops the run, because no decision about a call can be expected.
    fn stop_for_approver(&mut self, number: usize, why: &str) {
        if let Some(entry) = self.queue.get(number) {
            let call = Arc::clone(&entry.call);
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
        let call = Arc::clone(&entry.call);
        let event = Event::ApprovalDecided {
            call: &call,
            approval,
        };
        let outcome = match (self.sink.emit(&[event]), approval.decision) {
            (Ok(()), ApprovalDecision::Yes) => {
                self.unapproved.remove(&number);
                return;
            }
            (Ok(()), ApprovalDecision::No) => Outcome::Denied {
                reason: approval.reason.clone(),
            },
            (Err(EmitError(why)), _) => Outcome::LogRefused(why),
        };
        self.gate.remove(number);
        self.finish_call(number, outcome);
    }
}
