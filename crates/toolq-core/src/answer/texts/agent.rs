//! Explains agents that failed.

use std::time::Duration;

use crate::answer::texts::{ErrorText, http};
use crate::text::truncate;
use crate::types::{AgentFailure, TransportError};

/// Maximum length of a message from an API, in characters.
const MAX_API_MESSAGE_CHARS: usize = 1_000;

/// Explains why an agent failed. `output` is the last text of its model.
pub(crate) fn explain_agent_failure(name: &str, fault: &AgentFailure, output: &str) -> ErrorText {
    let (error, hint) = match fault {
        AgentFailure::ApiError {
            status,
            message,
            retry_after,
        } => (
            describe_api_error(name, *status, message, *retry_after),
            status_hint(*status),
        ),
        AgentFailure::Unreachable(transport) => {
            return explain_unreachable(name, transport, output);
        }
        AgentFailure::InvalidEndpoint {
            declared,
            resolved: value,
        } => (
            format!(
                "{name} can't reach its model: {}",
                endpoint_problem(declared, value)
            ),
            "a different input won't change that. Tell the user.",
        ),
        AgentFailure::UnreadableResponse(why) => (
            format!(
                "{name} failed: its model's API returned an unreadable response ({})",
                truncate(why, MAX_API_MESSAGE_CHARS)
            ),
            "the task may be fine. Try again later, or continue without it.",
        ),
        AgentFailure::Refused => (
            format!("{name} failed: its model declined to answer"),
            "ask for something else, or continue without it.",
        ),
        AgentFailure::MaxTokens => (
            format!("{name} failed: its model's response was cut off at its token limit"),
            "ask for less at a time, in several smaller tasks.",
        ),
        AgentFailure::ContextFull => (
            format!("{name} failed: its conversation outgrew its model's context window"),
            "ask for less at a time, in several smaller tasks.",
        ),
        AgentFailure::OverBudget {
            agent,
            budget,
            unknown_usage_reason: unknown,
        } => (
            describe_used_budget(name, agent, budget, unknown.as_deref()),
            "the user set this limit. Continue with what you have, or tell the user what is missing.",
        ),
        AgentFailure::LogRefused(why) => (
            format!(
                "{name} was stopped: what it does can no longer be logged ({})",
                truncate(why, MAX_API_MESSAGE_CHARS)
            ),
            "a different input won't change that. Tell the user.",
        ),
    };
    ErrorText::new(format!("{}.", error.trim_end_matches('.')), hint)
        .with_details(last_text_details(output))
}

fn describe_api_error(
    name: &str,
    status: Option<u16>,
    message: &str,
    retry_after: Option<Duration>,
) -> String {
    let message = truncate(message, MAX_API_MESSAGE_CHARS);
    let status = status.map_or(" an error".to_owned(), |status| format!(" HTTP {status}"));
    let wait = retry_after.map_or(String::new(), |wait| {
        format!("; the API asks to wait {}s (Retry-After)", wait.as_secs())
    });
    format!("{name} failed: its model's API returned{status}: {message}{wait}")
}

fn describe_used_budget(name: &str, agent: &str, budget: &str, unknown: Option<&str>) -> String {
    match unknown {
        None => format!("{name} was stopped: {agent}'s budget of {budget} is used up"),
        Some(why) => format!(
            "{name} was stopped: how much of {agent}'s budget of {budget} is left is unknown, because {why}"
        ),
    }
}

fn explain_unreachable(name: &str, transport: &TransportError, output: &str) -> ErrorText {
    let cause = http::explain_transport_error(None, transport);
    ErrorText {
        error: format!("{name} failed: its model gave no response. {}", cause.error),
        details: last_text_details(output),
        ..cause
    }
}

fn last_text_details(output: &str) -> String {
    match output {
        "" => String::new(),
        text => format!("Its last text:\n{text}"),
    }
}

/// Describes what is wrong with an endpoint, leaving out credentials in the URL, and what to write instead.
fn endpoint_problem(declared: &str, value: &str) -> String {
    let shown = value.rsplit('@').next().unwrap_or_default();
    let shown = truncate(
        shown.split(['?', '#']).next().unwrap_or_default(),
        MAX_API_MESSAGE_CHARS,
    );
    let declared_as = if declared == value {
        String::new()
    } else {
        format!(" ({declared})")
    };
    let suggestion = if shown.is_empty() || shown.contains("://") {
        "https://HOST".to_owned()
    } else {
        format!("http://{shown}")
    };
    format!(
        "its `endpoint`{declared_as} is `{shown}`, which isn't an http or https URL; write `{suggestion}`"
    )
}

fn status_hint(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => {
            "its credentials don't allow this, and calling again won't change that. Tell the user."
        }
        Some(413) => "send less at a time.",
        Some(400..=499) if status != Some(429) => {
            "another task won't change that, unless this one is too long. Tell the user."
        }
        _ => "the task may be fine. Try again later, or continue without it.",
    }
}
