use std::time::Duration;

use toolq_core::text::format_duration;
use toolq_core::types::{Ending, Event, Outcome};

/// What a tool does while its `describe` runs.
pub(crate) const DESCRIBING: &str = "asking what it takes";
/// What a call does while its tool's probe is asked.
pub(crate) const PROBING: &str = "asking whether it was done";

/// How a call ended, in a few words for people: `ok`, `exit 2`, `HTTP 503`, `timeout after 30s`, `unknown tool`.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { ending, .. } => ending_words(*ending),
        Outcome::Recalled(recalled) => {
            format!("{}, from the log", recalled.status.replace('_', " "))
        }
        Outcome::TimedOut { limit, .. } => format!("timeout after {}", format_duration(*limit)),
        _ => outcome.status().replace('_', " "),
    }
}

/// The same and how long it took, where it took any time and the words don't say it: `ok, 1.5s`.
pub(crate) fn timed_words(outcome: &Outcome, duration: Duration) -> String {
    let (words, took) = (words(outcome), format_duration(duration));
    if duration.is_zero() || words.ends_with(&format!(" {took}")) {
        words
    } else {
        format!("{words}, {took}")
    }
}

fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::Exit(code) => format!("exit {code}"),
        Ending::Signal(signal) => format!("signal {signal}"),
        Ending::Limit(limit) => format!("over limits.{}", limit.name()),
        Ending::Http(status) => format!("HTTP {status}"),
        Ending::Answered => "answered".to_owned(),
        Ending::Unfinished => "not done within its turns".to_owned(),
    }
}

/// `HTTP 503, attempt 2 in 1.2s`; none for an event of another kind.
pub(crate) fn retry_words(event: &Event<'_>) -> Option<String> {
    let Event::Retrying {
        attempt,
        outcome,
        wait,
        ..
    } = event
    else {
        return None;
    };
    let (ended, next, wait) = (words(outcome), attempt + 1, format_duration(*wait));
    Some(format!("{ended}, attempt {next} in {wait}"))
}
