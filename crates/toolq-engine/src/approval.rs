//! Who decides whether a call may start.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{AttemptResult, CallJob};
use crate::command::program_tool;
use crate::state::EngineState;
use toolq_core::answer::failure_cause;
use toolq_core::json::Input;
use toolq_core::plan::render_approval_question;
use toolq_core::types::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallEnding,
    CallTimeouts, CommandBacking, CommandInvocation, CommandLimits, Invocation, Leftovers, Outcome,
    ResultContent, SafetySource, StderrUse, StdinContent, StdinSource, Tool,
};

/// Who says whether a call that needs an approval may start.
#[derive(Debug, Clone)]
pub enum Approver {
    /// This user approved all calls in advance.
    All {
        /// The name of the user, if it is known.
        user: Option<String>,
    },
    /// This program decides. It reads the call as JSON on stdin; exit code 0 is a yes, and 1 is a no with the reason on
    /// stdout. Anything else stops the run.
    Program(PathBuf),
    /// A person decides.
    Person(Arc<dyn ApprovalPrompt>),
    /// Some calls were approved before the run. Another approver decides about the others.
    Planned {
        /// The calls that were approved.
        approvals: Arc<dyn PriorApprovals>,
        /// Who decides about the others, if there is another approver.
        otherwise: Option<Box<Approver>>,
    },
}

/// Calls that were approved before the run began.
pub trait PriorApprovals: fmt::Debug + Send + Sync {
    /// Returns the approval of exactly this call, if it has one.
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval>;
}

/// Asks a person.
pub trait ApprovalPrompt: fmt::Debug + Send + Sync {
    /// Asks about one call. Dropping the future withdraws the question.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a>;
}

/// The reply to come.
pub type ApprovalFuture<'a> = Pin<Box<dyn Future<Output = ApprovalReply> + Send + 'a>>;

/// The result of a question about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalReply {
    /// The call was approved or denied.
    Decided(Approval),
    /// No approver can decide about this call, so it doesn't run.
    Unavailable,
    /// The run stops, for this reason: the question couldn't be asked, or the approver stopped the run.
    Stopped(String),
}

impl ApprovalReply {
    /// The reply to a question whose answer is no longer needed.
    pub(crate) fn withdrawn() -> Self {
        Self::Stopped("the question was withdrawn".to_owned())
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
pub(crate) fn question_job(
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
pub(crate) fn program_reply(program: &Path, result: AttemptResult) -> ApprovalReply {
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
