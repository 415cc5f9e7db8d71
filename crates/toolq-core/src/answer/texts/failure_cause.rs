//! Why a call failed, in one line for people and programs. The model may read something else, with `messages`.

use std::io;

use crate::answer::texts::read_output;
use crate::types::{
    AgentFailure, CallEnding, Outcome, ProblemDetail, Rejection, RejectionReason, ToolDrift,
};

/// Returns the cause of a failure, if more is known than its status: the last line of a program's standard error, the
/// first of what a server answered, the error of a request, or the problems of an input. Secrets aren't masked yet.
pub fn failure_cause(outcome: &Outcome) -> Option<String> {
    let cause = match outcome {
        // A server begins with what went wrong, and a program ends with it.
        Outcome::Failed {
            output,
            ending: CallEnding::ServerError,
        } => first_line(&output.text),
        Outcome::Failed { output, .. } => {
            last_line(&output.stderr).or_else(|| last_line(&output.text))
        }
        Outcome::TimedOut { output, .. }
        | Outcome::Canceled { output, .. }
        | Outcome::Interrupted { output, .. } => last_line(&output.stderr),
        Outcome::BadOutput { problem, .. } => Some(problem.as_str()),
        Outcome::NotStarted(error) => {
            let system = io::Error::from_raw_os_error(error.errno);
            return Some(match error.directory.as_deref() {
                None => format!("{}: {system}", error.program),
                Some("") => format!("can't enter the root: {system}"),
                Some(directory) => format!("can't enter {directory}: {system}"),
            });
        }
        Outcome::TransportFailed(error) => {
            return Some(format!("{}: {}", error.origin, error.detail));
        }
        Outcome::AgentFailed { failure, .. } => return Some(agent_failure_cause(failure)),
        Outcome::ToolDrifted(drift) => return Some(describe_drift(drift)),
        Outcome::MissingVariable(name) => return Some(format!("{name} isn't set")),
        Outcome::LogRefused(why) | Outcome::InternalError(why) => Some(why.as_str()),
        Outcome::Denied { reason } => reason.as_deref(),
        Outcome::OutputUnavailable(why) => return Some(read_output::describe(why)),
        Outcome::Rejected(rejection) => return Some(rejection_cause(rejection)),
        _ => None,
    };
    cause.map(str::to_owned)
}

/// Says how a tool differs from what was locked, without the server's own words: no model should read them.
pub(crate) fn describe_drift(drift: &ToolDrift) -> String {
    match drift {
        ToolDrift::Gone => "its server has dropped it".to_owned(),
        ToolDrift::Changed(parts) => {
            let parts: Vec<&str> = parts.iter().map(|part| part.name()).collect();
            let what = match parts.split_last() {
                Some((last, [])) => (*last).to_owned(),
                Some((last, others)) => format!("{} and {last}", others.join(", ")),
                None => "definition".to_owned(),
            };
            format!("its server has changed its {what}")
        }
    }
}

fn agent_failure_cause(failure: &AgentFailure) -> String {
    match failure {
        AgentFailure::ApiError { message, .. } => message.clone(),
        AgentFailure::Unreachable(error) => format!("{}: {}", error.origin, error.detail),
        AgentFailure::InvalidEndpoint { declared, .. } => {
            format!("its `endpoint` ({declared}) isn't an http or https URL")
        }
        AgentFailure::UnreadableResponse(why) | AgentFailure::LogRefused(why) => why.clone(),
        AgentFailure::OverBudget {
            agent,
            budget,
            unknown_usage_reason,
        } => match unknown_usage_reason {
            Some(reason) => {
                format!("what is left of {agent}'s budget of {budget} is unknown: {reason}")
            }
            None => format!("{agent}'s budget of {budget} is used up"),
        },
        AgentFailure::Refused => "its model declined to answer".to_owned(),
        AgentFailure::MaxTokens => "its model reached its token limit".to_owned(),
        AgentFailure::ContextFull => "its model's context window is full".to_owned(),
    }
}

/// Joins the problems of a call. The names of all tools, which the model reads, are left out.
fn rejection_cause(rejection: &Rejection) -> String {
    let is_shown = |detail: &&ProblemDetail| {
        rejection.reason != RejectionReason::UnknownTool || !detail.message.starts_with("known: ")
    };
    let problems = rejection.details.iter().filter(is_shown);
    let problems = problems.map(|detail| match detail.path.as_str() {
        "" => detail.message.clone(),
        path => format!("{path}: {}", detail.message),
    });
    problems.collect::<Vec<_>>().join("; ")
}

/// Returns the first line that isn't blank.
fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Returns the last line that isn't blank.
fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}
