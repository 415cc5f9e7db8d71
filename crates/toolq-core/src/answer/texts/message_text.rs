//! The texts under `messages` in tools.yaml: which one applies to an outcome, and what is filled in.

use std::time::Duration;

use crate::answer::texts::error_text::ErrorText;
use crate::answer::texts::http;
use crate::answer::texts::rejected;
use crate::text::format_duration;
use crate::types::{CallEnding, DoubtCause, MessageKey, Outcome, Template};

/// Returns the key of `messages` for an outcome.
pub(crate) fn message_key(outcome: &Outcome) -> MessageKey {
    match outcome {
        Outcome::TimedOut { .. } => MessageKey::Timeout,
        Outcome::Failed {
            ending: CallEnding::HttpStatus(status),
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
