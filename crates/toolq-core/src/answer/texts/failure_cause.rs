//! Why a call failed, in one line for people and programs. The model may read something else, with `messages`.

use std::io;
use std::time::Duration;

use crate::answer::texts::rejected::{self, describe_drift};
use crate::answer::texts::{ErrorText, http, truncation};
use crate::text::format_duration;
use crate::types::{
    AgentFailure, CallEnding, DoubtCause, MessageKey, Outcome, ProblemDetail, Rejection,
    RejectionReason, Template,
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
        Outcome::OutputUnavailable(why) => return Some(truncation::describe(why)),
        Outcome::Rejected(rejection) => return Some(rejection_cause(rejection)),
        _ => None,
    };
    cause.map(str::to_owned)
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

// The texts under `messages` in tools.yaml: which one applies to an outcome, and what is filled in.

/// Returns the key of `messages` for an outcome.
pub(crate) fn message_key(outcome: &Outcome) -> MessageKey {
    match outcome {
        Outcome::TimedOut { .. } => MessageKey::Timeout,
        Outcome::Failed {
            ending: CallEnding::HttpStatus(status) | CallEnding::RedirectedStatus(status),
            ..
        } => http::message_key(*status),
        Outcome::Succeeded { .. }
        | Outcome::Restored(_)
        | Outcome::Failed { .. }
        | Outcome::BadOutput { .. }
        | Outcome::OutputUnavailable(_)
        | Outcome::InternalError(_) => MessageKey::Failed,
        Outcome::AgentFailed { .. } => MessageKey::AgentFailed,
        Outcome::NotStarted(_)
        | Outcome::TransportFailed(_)
        | Outcome::MissingVariable(_)
        | Outcome::ToolDrifted(_)
        | Outcome::NoBacking => MessageKey::Unavailable,
        Outcome::LogRefused(_)
        | Outcome::NotExecuted(_)
        | Outcome::Conflict(_)
        | Outcome::IsRunning => MessageKey::NotExecuted,
        Outcome::Canceled { .. } | Outcome::Interrupted { .. } => MessageKey::Interrupted,
        Outcome::InDoubt { .. } => MessageKey::InDoubt,
        Outcome::Paused { .. } => MessageKey::Paused,
        Outcome::NeedsApproval => MessageKey::NeedsApproval,
        Outcome::Denied { .. } => MessageKey::Denied,
        Outcome::Rejected(rejection) => rejected::message_key(rejection.reason),
    }
}

/// Returns the time limit that ended the call, if one did.
pub(crate) fn exceeded_limit(outcome: &Outcome) -> Option<Duration> {
    match outcome {
        Outcome::TimedOut { limit, .. }
        | Outcome::InDoubt {
            cause: DoubtCause::TimedOut(limit),
            ..
        } => Some(*limit),
        _ => None,
    }
}

/// Fills in a text from `messages`. Inserted values are never expanded again.
pub(crate) fn fill_message(
    template: &Template,
    name: &str,
    limit: Option<Duration>,
    error_text: &ErrorText,
) -> String {
    let value = |path: &[String]| match path.join(".").as_str() {
        "tool" => name.to_owned(),
        // Without its period, so that it can be used inside a sentence.
        "error" => error_text.error.trim_end_matches('.').to_owned(),
        "details" => error_text.details.clone(),
        "timeout" => limit.map(format_duration).unwrap_or_default(),
        _ => String::new(),
    };
    template.fill(value)
}
