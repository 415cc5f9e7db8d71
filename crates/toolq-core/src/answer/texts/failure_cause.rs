//! Why a call failed, in one line for people and programs. The model may read something else, with `messages`.

use std::io;

use crate::types::{AgentFailure, Outcome, ProblemDetail};

/// Returns the cause of a failure, if more is known than its status: the last line of a program's standard error, the
/// error of a request, or the problems of an input. Secrets aren't masked yet.
pub fn failure_cause(outcome: &Outcome) -> Option<String> {
    let cause = match outcome {
        Outcome::Failed { output, stderr, .. } => last_line(stderr).or_else(|| last_line(output)),
        Outcome::TimedOut { stderr, .. }
        | Outcome::Cancelled { stderr, .. }
        | Outcome::Interrupted { stderr, .. } => last_line(stderr),
        Outcome::BadOutput { problem, .. } => Some(problem.as_str()),
        Outcome::NotStarted(error) => {
            let system = io::Error::from_raw_os_error(error.errno);
            return Some(format!("{}: {system}", error.program));
        }
        Outcome::TransportFailed(error) => {
            return Some(format!("{}: {}", error.origin, error.detail));
        }
        Outcome::AgentFailed {
            failure: AgentFailure::ApiError { message, .. },
            ..
        } => Some(message.as_str()),
        Outcome::MissingVariable(name) => return Some(format!("{name} isn't set")),
        Outcome::LogRefused(why) | Outcome::InternalError(why) => Some(why.as_str()),
        Outcome::Rejected(rejection) => return Some(join_problems(&rejection.details)),
        _ => None,
    };
    cause.map(str::to_owned)
}

fn join_problems(details: &[ProblemDetail]) -> String {
    let problems = details.iter().map(|detail| match detail.path.as_str() {
        "" => detail.message.clone(),
        path => format!("{path}: {}", detail.message),
    });
    problems.collect::<Vec<_>>().join("; ")
}

/// Returns the last line that isn't blank.
fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}
