//! Asks for approvals. The call that is next in order waits for its approval at the gate, so it keeps its place, while
//! the calls before it continue to run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};

use crate::attempt::{Attempt, AttemptResult, AttemptTimeout, CallJob, ProgressSender};
use crate::command::program_tool;
use crate::settings::{ApprovalReply, Approver};
use crate::state::EngineState;
use crate::turn::RunningTurn;
use crate::turn::attempts::failure_text;
use toolq_core::answer::failure_cause;
use toolq_core::json::Input;
use toolq_core::plan::render_approval_question;
use toolq_core::types::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallEnding,
    CallTimeouts, CommandBacking, CommandInvocation, CommandLimits, EmitError, Event, HaltCause,
    Invocation, Leftovers, NotExecutedCause, Outcome, RecalledCall, ResultContent, SafetySource,
    StderrUse, StdinContent, StdinSource, Tool,
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

    /// Notes in the memory that a call waits for an approval, so that somebody can give it later. Without `once`, an agent that runs
    /// again asks with another id.
    fn note_question(&self, job: &CallJob) {
        let asks_again = job.call.parent.is_none() || job.accepted.tool.once.is_some();
        if let Some(memory) = self.engine.settings.memory.as_ref().filter(|_| asks_again) {
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
        let task = match approver {
            Approver::All { .. } | Approver::Planned { .. } => return,
            Approver::Program(program) => {
                let job = match question_job(program, job, &request, self.engine) {
                    Ok(job) => job,
                    Err(why) => return self.stop_for_approver(number, &why),
                };
                let attempt = self.question_attempt(job, withdrawn);
                let runner = Arc::clone(&self.engine.runner);
                let program = program.clone();
                let asking = async move { program_reply(&program, runner.run(attempt).await) };
                self.approvals.tasks.spawn(asking)
            }
            Approver::Person(prompt) => {
                let prompt = Arc::clone(prompt);
                self.approvals.tasks.spawn(async move {
                    tokio::select! {
                        reply = prompt.ask(&request) => reply,
                        _ = withdrawn => ApprovalReply::withdrawn(),
                    }
                })
            }
        };
        self.approvals.question = Some(PendingQuestion {
            number,
            task: task.id(),
            withdraw,
        });
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

// Asks an approval program: what it is run with, and what its end says.

/// How long an approval program may think. It may wait for a person, so this only ends one that was forgotten.
const PROGRAM_TIMEOUT: Duration = Duration::from_hours(24);
/// The largest reason that a program can give, in bytes.
const MAX_REASON_BYTES: u64 = 8 << 10;

/// Returns the job of a call that asks `program` about the call of `job`.
///
/// # Errors
/// Why the question can't be asked.
fn question_job(
    program: &Path,
    job: &CallJob,
    request: &ApprovalRequest,
    engine: &EngineState,
) -> Result<CallJob, String> {
    let question = render_approval_question(request, &engine.settings.mask)
        .map_err(|error| format!("the question can't be written: {error}"))?;
    Ok(CallJob {
        call: job.call.clone(),
        accepted: AcceptedCall {
            tool: Arc::new(approval_tool(program, &job.accepted.tool, engine)),
            // The question isn't an input: the limits of inputs don't apply to it.
            input: Input::empty(),
            before_coercion: None,
            is_coerced: false,
            safe: true,
            safety_source: SafetySource::Default,
            locks: None,
            needs_approval: false,
            invocation: Some(Invocation::Command(CommandInvocation {
                argv: [program.to_string_lossy()].into_iter().collect(),
                stdin: StdinContent::Text(question.into()),
                env: Box::default(),
                sandbox: None,
            })),
            probe: None,
        },
        ticket: None,
        is_remembered: false,
        approval: None,
        unsettled: None,
    })
}

/// Returns a tool whose only function is to run the approval program. The program belongs to the user, so it has the
/// user's whole environment.
fn approval_tool(program: &Path, tool: &Tool, engine: &EngineState) -> Tool {
    let variables = engine.settings.environment.iter();
    let names = variables.filter_map(|(name, _)| name.to_str());
    let command = CommandBacking {
        program: program.to_string_lossy().into_owned(),
        arguments: Vec::new(),
        dashes: Vec::new(),
        stdin: StdinSource::Input,
        env: Vec::new(),
        pass_env: names.map(str::to_owned).collect(),
        cwd: engine.settings.tools.root.clone(),
        success_exit: vec![0],
        stderr: StderrUse::default(),
        leftovers: Leftovers::Kill,
        limits: CommandLimits::default(),
        sandbox: None,
        wrapper: None,
    };
    Tool {
        timeout: CallTimeouts {
            after: PROGRAM_TIMEOUT,
            slow_after: None,
            total: None,
            ..tool.timeout
        },
        ..program_tool(tool, command, MAX_REASON_BYTES)
    }
}

/// Reads what an approval program said.
fn program_reply(program: &Path, result: AttemptResult) -> ApprovalReply {
    let outcome = match result {
        AttemptResult::Finished { outcome, .. } => outcome,
        AttemptResult::Canceled { .. } => return ApprovalReply::withdrawn(),
    };
    let decided = |decision, text: &str| {
        let text = text.trim();
        ApprovalReply::Decided(Approval {
            decision,
            means: ApprovalMeans::Program,
            reason: (!text.is_empty()).then(|| text.to_owned()),
            user: None,
        })
    };
    match &outcome {
        Outcome::Succeeded {
            content: ResultContent::Text(text),
            ..
        } => decided(ApprovalDecision::Yes, text),
        Outcome::Failed {
            ending: CallEnding::ExitCode(1),
            output,
        } => decided(ApprovalDecision::No, &output.text),
        _ => {
            let program = program.display();
            let cause = failure_cause(&outcome);
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let end = match outcome.ending() {
                Some(CallEnding::ExitCode(code)) => format!("ended with exit code {code}"),
                Some(CallEnding::Signal(signal)) => format!("was killed by signal {signal}"),
                _ => format!("failed ({})", outcome.status().label()),
            };
            ApprovalReply::Stopped(format!("{program} {end}{cause}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use toolq_core::os::Environment;
    use toolq_core::types::CallOutput;
    use toolq_testing::{sample_tool, sample_tools, success_outcome};

    use super::*;

    use crate::engine::Engine;
    use crate::settings::EngineSettings;

    fn reply_to(outcome: Outcome) -> ApprovalReply {
        program_reply(Path::new("/bin/ask"), outcome.into())
    }

    fn ended(ending: CallEnding, text: &str) -> ApprovalReply {
        let output = CallOutput {
            text: text.to_owned(),
            ..CallOutput::default()
        };
        reply_to(Outcome::Failed { output, ending })
    }

    /// People may take their time, however little of it the tool has.
    #[test]
    fn an_approval_program_has_its_own_time() {
        let tool = Tool {
            timeout: CallTimeouts {
                after: Duration::from_secs(1),
                kill_grace: Duration::from_secs(3),
                slow_after: Some(Duration::from_secs(1)),
                total: Some(Duration::from_secs(2)),
            },
            ..sample_tool("pay")
        };
        let tools = Arc::new(sample_tools(vec![tool.clone()]));
        let environment = Environment::from_iter([("HOME".into(), "/home/ada".into())]);
        let settings = EngineSettings::new(tools, &environment, Arc::default());
        let engine = Engine::new(settings);
        let asking = approval_tool(Path::new("/bin/ask"), &tool, &engine.state);
        let CallTimeouts {
            after,
            kill_grace,
            slow_after,
            total,
        } = asking.timeout;
        assert_eq!((after, slow_after, total), (PROGRAM_TIMEOUT, None, None));
        assert_eq!(kill_grace, Duration::from_secs(3));
    }

    fn decided(decision: ApprovalDecision, reason: Option<&str>) -> ApprovalReply {
        ApprovalReply::Decided(Approval {
            decision,
            means: ApprovalMeans::Program,
            reason: reason.map(str::to_owned),
            user: None,
        })
    }

    #[test]
    fn a_program_says_yes_and_no_with_its_exit_code_and_why_on_stdout() {
        let (yes, no) = (ApprovalDecision::Yes, ApprovalDecision::No);
        assert_eq!(reply_to(success_outcome("")), decided(yes, None));
        assert_eq!(
            reply_to(success_outcome(" fine\n")),
            decided(yes, Some("fine"))
        );
        let one = CallEnding::ExitCode(1);
        assert_eq!(ended(one, "\n"), decided(no, None));
        assert_eq!(
            ended(one, "not on a Friday\n"),
            decided(no, Some("not on a Friday"))
        );
    }

    #[test]
    fn any_other_end_of_a_program_stops_the_run_and_says_which() {
        let nothing = CallOutput::default();
        for (reply, expected) in [
            (
                ended(CallEnding::ExitCode(2), "yes"),
                "ended with exit code 2",
            ),
            (
                ended(CallEnding::Signal(9), "yes"),
                "was killed by signal 9",
            ),
            (reply_to(Outcome::NoBacking), "failed ("),
        ] {
            let ApprovalReply::Stopped(why) = reply else {
                panic!("{reply:?}");
            };
            assert!(why.starts_with(&format!("/bin/ask {expected}")), "{why}");
        }
        let canceled = AttemptResult::Canceled {
            partial_output: nothing,
            reach: crate::reach::Reach::NotSent,
        };
        let reply = program_reply(Path::new("/bin/ask"), canceled);
        assert_eq!(reply, ApprovalReply::withdrawn());
    }
}
