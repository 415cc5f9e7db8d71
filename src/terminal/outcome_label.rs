//! Short texts about how calls end.

use std::time::Duration;

use toolq_core::schedule::StartWait;
use toolq_core::text::format_duration;
use toolq_core::types::{CallEnding, Event, Outcome};

/// The status of a tool while its `describe` program runs.
pub(crate) const DESCRIBING_LABEL: &str = "getting its schema";
/// The status of a server while it lists its tools.
pub(crate) const LISTING_LABEL: &str = "asking for its tools";
/// The status of a call while its input arrives, unless its tool declares a status.
pub(crate) const ARRIVING_LABEL: &str = "receiving its input";
/// The status of a call while its tool's `probe` runs.
pub(crate) const PROBING_LABEL: &str = "checking whether it was done";

/// Says what a call waits for: `waits for its turn: rate of save`.
pub(crate) fn throttle_label(wait: &StartWait) -> String {
    let (limit, subject) = (wait.limit_name(), &wait.subject);
    format!("waits for its turn: {limit} of {subject}")
}

/// Describes how a call ended: `ok`, `exit 2`, `HTTP 503`, `timeout after 30s`, `unknown tool`.
fn outcome_label(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { ending, .. } => ending_label(*ending),
        Outcome::TimedOut { limit, .. } => format!("timeout after {}", format_duration(*limit)),
        _ => outcome.status().label(),
    }
}

/// Describes how a call ended and how long it took: `ok, 1.5s`.
pub(crate) fn timed_outcome_label(outcome: &Outcome, duration: Duration) -> String {
    join_label(outcome_label(outcome), outcome, duration)
}

/// Describes how a call ended that didn't succeed, after the word for its kind, and how long it took: `exit 2, 1.5s`. That is nothing
/// if the kind says it all.
pub(crate) fn failure_label(outcome: &Outcome, duration: Duration) -> String {
    let label = outcome_label(outcome);
    let says_more = label != outcome.kind().label();
    join_label(
        if says_more { label } else { String::new() },
        outcome,
        duration,
    )
}

/// Adds that a result is from the memory, and a duration unless it is zero or part of the label.
fn join_label(label: String, outcome: &Outcome, duration: Duration) -> String {
    let took = format_duration(duration);
    let has_duration = duration.is_zero() || label.ends_with(&format!(" {took}"));
    let parts = [
        Some(label).filter(|label| !label.is_empty()),
        outcome.is_restored().then(|| "from memory".to_owned()),
        (!has_duration).then_some(took),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn ending_label(ending: CallEnding) -> String {
    match ending {
        CallEnding::ExitCode(code) => format!("exit {code}"),
        CallEnding::Signal(signal) => format!("signal {signal}"),
        CallEnding::LimitExceeded(limit) => format!("over limits.{}", limit.name()),
        CallEnding::HttpStatus(status) => format!("HTTP {status}"),
        CallEnding::ServerError => "reported an error".to_owned(),
        CallEnding::Answered => "answered".to_owned(),
        CallEnding::Unfinished => "turn limit reached".to_owned(),
    }
}

/// Describes a retry: `HTTP 503, attempt 2 in 1.2s`. Returns `None` for other events.
pub(crate) fn retry_label(event: &Event<'_>) -> Option<String> {
    let Event::Retrying {
        attempt,
        outcome,
        wait,
        ..
    } = event
    else {
        return None;
    };
    let (ended, next, wait) = (outcome_label(outcome), attempt + 1, format_duration(*wait));
    Some(format!("{ended}, attempt {next} in {wait}"))
}
