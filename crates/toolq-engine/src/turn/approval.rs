//! Asks for approvals. The call that is next in order waits for its approval at the gate, so it keeps its place, while
//! the calls before it continue to run.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::approval::{ApprovalReply, Approver, program_reply, question_job};
use crate::attempt::{Attempt, AttemptTimeout, CallJob, ProgressSender};
use crate::turn::RunningTurn;
use crate::turn::attempts::failure_text;
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, EmitError, Event, HaltCause,
    NotExecutedCause, Outcome, RecalledCall,
};

/// What was asked about the calls of a turn, and what wasn't answered.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    /// The pending question about the call that is next in order.
    question: Option<PendingQuestion>,
    /// What asks, also about calls that no longer wait.
    tasks: JoinSet<ApprovalReply>,
    /// The waiting calls that need an approval, and don't have it.
    pub(super) unapproved: BTreeSet<usize>,
    /// The calls that somebody has approved in this run.
    pub(super) approved: BTreeSet<usize>,
    /// The first call that ended without the approval that it needs, and its tool.
    pub(super) never_approved: Option<(usize, String)>,
}

/// A pending question about the call that is next in order.
#[derive(Debug)]
struct PendingQuestion {
    /// The number of the call.
    number: usize,
    task: Id,
    /// Sending withdraws the question.
    withdraw: oneshot::Sender<()>,
}

/// The end of a task that has asked.
pub(super) type QuestionEnd = Result<(Id, ApprovalReply), JoinError>;

impl Approvals {
    /// Returns the next reply; `None` while nothing is asked.
    pub(super) async fn next_reply(&mut self) -> Option<QuestionEnd> {
        self.tasks.join_next_with_id().await
    }

    /// Forgets a call that has ended.
    pub(super) fn forget(&mut self, number: usize) {
        self.unapproved.remove(&number);
    }

    fn ask(
        &mut self,
        number: usize,
        withdraw: oneshot::Sender<()>,
        question: impl Future<Output = ApprovalReply> + Send + 'static,
    ) {
        let task = self.tasks.spawn(question).id();
        self.question = Some(PendingQuestion {
            number,
            task,
            withdraw,
        });
    }
}

impl RunningTurn<'_> {
    /// Asks for approval of the next call in order, if it needs one. Returns that call if nobody can decide about it.
    pub(super) fn request_approval(&mut self) -> Option<usize> {
        let next = self.gate.next_waiting();
        let is_stale = |pending: &mut PendingQuestion| Some(pending.number) != next;
        if let Some(PendingQuestion { withdraw, .. }) = self.approvals.question.take_if(is_stale) {
            let _ = withdraw.send(());
        }
        let number = next.filter(|next| self.approvals.unapproved.contains(next))?;
        // Calls before it that are throttled haven't started.
        if self.approvals.question.is_some() || self.lines.has_unstarted() {
            return None;
        }
        let job = self.queue.waiting_job(number)?;
        if self.check_blocked(number, &job.accepted.tool).is_some() {
            return None;
        }
        let mut approver = self.engine.settings.approver.as_ref();
        if self.decide_at_once(number, &job, approver) {
            return None;
        }
        while let Some(Approver::Planned { otherwise, .. }) = approver {
            approver = otherwise.as_deref();
        }
        let Some(approver) = approver else {
            return Some(number);
        };
        self.ask(number, &job, approver);
        None
    }

    /// Applies what was decided about a call in advance. Returns whether anything was.
    fn decide_at_once(
        &mut self,
        number: usize,
        job: &Arc<CallJob>,
        approver: Option<&Approver>,
    ) -> bool {
        let decided = self.decision_in_advance(number, job, approver);
        if let Some(approval) = &decided {
            self.apply_approval(number, approval);
        }
        decided.is_some()
    }

    fn decision_in_advance(
        &self,
        number: usize,
        job: &Arc<CallJob>,
        approver: Option<&Approver>,
    ) -> Option<Approval> {
        match approver {
            Some(Approver::All { user }) => Some(Approval {
                decision: ApprovalDecision::Yes,
                means: ApprovalMeans::All,
                reason: None,
                user: user.clone(),
            }),
            // Who decides now may have another opinion than who has said no before.
            _ if let Some(approval) = &job.approval
                && (approver.is_none() || approval.decision == ApprovalDecision::Yes) =>
            {
                Some(Approval::clone(approval))
            }
            Some(Approver::Planned {
                approvals,
                otherwise,
            }) => {
                let request = self.approval_request(number, job);
                let planned = request.and_then(|request| approvals.approval_of(&request));
                planned.or_else(|| self.decision_in_advance(number, job, otherwise.as_deref()))
            }
            None | Some(Approver::Program(_) | Approver::Person(_)) => None,
        }
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
    pub(super) fn is_approved(&mut self, number: usize, job: &Arc<CallJob>) -> bool {
        let approver = self.engine.settings.approver.as_ref();
        let are_all_approved = matches!(approver, Some(Approver::All { .. }));
        let is_decided = |first: &usize| *first > number || are_all_approved && *first < number;
        let unapproved = &self.approvals.unapproved;
        if unapproved.contains(&number)
            && self.check_blocked(number, &job.accepted.tool).is_none()
            && (are_all_approved || unapproved.first() == Some(&number))
        {
            self.decide_at_once(number, job, approver);
        }
        let unapproved = &self.approvals.unapproved;
        !unapproved.contains(&number) && unapproved.first().is_none_or(is_decided)
    }

    /// Ends a call that wasn't approved.
    pub(super) fn finish_unapproved(&mut self, number: usize) {
        self.gate.remove(number);
        if let Some(job) = self.queue.waiting_job(number) {
            self.note_unapproved(number, &job);
        }
        self.finish_call(number, Outcome::NeedsApproval);
    }

    /// Notes that a call wasn't approved. Later calls with effects don't run either, so that their order is kept once a later
    /// run has the approval.
    pub(super) fn note_unapproved(&mut self, number: usize, job: &CallJob) {
        let is_first = |first: &mut (usize, String)| first.0 < number;
        let never_approved = &mut self.approvals.never_approved;
        let earlier = never_approved.take_if(is_first);
        *never_approved = earlier.or_else(|| Some((number, job.accepted.tool.name.clone())));
        self.note_question(job);
    }

    /// Ends a call that may not run. Behind one that wasn't approved, it may lack an approval of its own: a person who looks
    /// later decides about all of them together, and not about one in each run.
    pub(super) fn finish_blocked(&mut self, number: usize, job: &Arc<CallJob>, outcome: Outcome) {
        let approver = self.engine.settings.approver.as_ref();
        if matches!(
            outcome,
            Outcome::NotExecuted(NotExecutedCause::PrecedingNeedsApproval { .. })
        ) && self.approvals.unapproved.contains(&number)
            && self.decision_in_advance(number, job, approver).is_none()
        {
            self.note_question(job);
            return self.finish_call(number, Outcome::NeedsApproval);
        }
        self.finish_call(number, outcome);
    }

    /// Notes in the memory that a call waits for an approval, so that somebody can give it later.
    fn note_question(&self, job: &CallJob) {
        if let Some(memory) = &self.engine.settings.memory {
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
                let attempt = self.question_attempt(job, withdrawn);
                let runner = Arc::clone(&self.engine.runner);
                let program = program.clone();
                self.approvals.ask(number, withdraw, async move {
                    program_reply(&program, runner.run(attempt).await)
                });
            }
            Approver::Person(prompt) => {
                let prompt = Arc::clone(prompt);
                self.approvals.ask(number, withdraw, async move {
                    tokio::select! {
                        reply = prompt.ask(&request) => reply,
                        _ = withdrawn => ApprovalReply::withdrawn(),
                    }
                });
            }
        }
    }

    fn question_attempt(&self, job: CallJob, cancel: oneshot::Receiver<()>) -> Box<Attempt> {
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
            // Nobody sees it.
            progress: ProgressSender {
                updates: mpsc::channel(1).0,
                is_shown: false,
            },
            turn: None,
            outputs: None,
            parent_scope: None,
            output_counter: self.engine.run_budget.time_only().output_counter(),
            control: self.engine.control.clone(),
        })
    }

    /// Handles the reply about a call. One about a call that no longer waits is ignored.
    pub(super) fn handle_reply(&mut self, end: QuestionEnd) {
        let task = end.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let is_pending = |pending: &mut PendingQuestion| pending.task == task;
        let Some(PendingQuestion { number, .. }) = self.approvals.question.take_if(is_pending)
        else {
            return;
        };
        let reply = end.map_or_else(
            |error| ApprovalReply::Stopped(failure_text(error)),
            |(_, reply)| reply,
        );
        match reply {
            ApprovalReply::Decided(approval) => self.apply_approval(number, &approval),
            ApprovalReply::Unavailable => {
                let job = self.queue.waiting_job(number);
                match job.and_then(|job| job.approval.clone()) {
                    Some(denied) => self.apply_approval(number, &denied),
                    None => self.go_on_unapproved(number),
                }
            }
            ApprovalReply::Stopped(why) => self.stop_for_approver(number, &why),
        }
    }

    /// Ends a call that nobody decides about. To find out what an earlier start of it did takes no approval.
    pub(super) fn go_on_unapproved(&mut self, number: usize) {
        let job = self.queue.waiting_job(number);
        if job.is_some_and(|job| job.unsettled.is_some()) {
            self.approvals.unapproved.remove(&number);
        } else {
            self.finish_unapproved(number);
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
                self.approvals.unapproved.remove(&number);
                if approval.means != ApprovalMeans::Later {
                    self.approvals.approved.insert(number);
                }
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
