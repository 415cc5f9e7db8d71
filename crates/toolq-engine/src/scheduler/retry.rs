//! Decides whether a failed attempt is retried, and after how long. Pure: times and random seeds are passed in.

#[cfg(test)]
mod tests;

use std::time::Duration;

use rustix::io::Errno;

use crate::reach::Reach;
use toolq_core::types::{CallEnding, Outcome, RetryCondition, RetryPolicy, Tool, TransportPhase};

/// The share of the remaining `timeout.total` that a wait may take, so that the next attempt has some time left.
const MAX_WAIT_SHARE: f64 = 0.9;

/// Spawn errors that mean "not now" rather than "never".
const TEMPORARY_SPAWN_ERRNOS: [Errno; 5] = [
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::TXTBSY,
];

/// Returns the wait before the attempt that follows `attempt` (counted from 1). `None` if there is no retry.
///
/// `retry_after` is the server's minimum, `remaining` is what is left of `timeout.total`, and `seed` determines the
/// jitter.
pub(crate) fn next_wait(
    tool: &Tool,
    attempt: u32,
    outcome: &Outcome,
    retry_after: Option<Duration>,
    remaining: Option<Duration>,
    seed: u64,
) -> Option<Duration> {
    if attempt > tool.retry.max_retries
        || !may_repeat(tool, outcome)
        || remaining.is_some_and(|remaining| remaining.is_zero())
    {
        return None;
    }
    let backoff = BackoffSequence::new(&tool.retry, seed).nth(attempt as usize - 1)?;
    Some(clamp_wait(
        backoff,
        retry_after,
        remaining,
        tool.retry.max_backoff,
    ))
}

/// Returns the wait before an agent repeats a model request that failed for `reason`. `None` if it doesn't.
///
/// Such a request has no effect but its response, so it may always be repeated. A `retry_after` that exceeds the
/// remaining time isn't clipped: the API would only refuse an earlier request.
pub(crate) fn next_request_wait(
    policy: &RetryPolicy,
    attempt: u32,
    reason: RetryCondition,
    retry_after: Option<Duration>,
    remaining: Duration,
    seed: u64,
) -> Option<Duration> {
    let min_wait = retry_after.unwrap_or_default();
    if attempt > policy.max_retries || !policy.conditions.contains(&reason) || min_wait >= remaining
    {
        return None;
    }
    let backoff = BackoffSequence::new(policy, seed).nth(attempt as usize - 1)?;
    Some(clamp_wait(backoff, None, Some(remaining), policy.max_backoff).max(min_wait))
}

/// Combines the policy's backoff with the server's minimum, within the remaining time. If the tool has no
/// `timeout.total`, no wait is longer than `max_wait`.
fn clamp_wait(
    backoff: Duration,
    retry_after: Option<Duration>,
    remaining: Option<Duration>,
    max_wait: Duration,
) -> Duration {
    let limit = remaining.map_or(max_wait, |remaining| remaining.mul_f64(MAX_WAIT_SHARE));
    backoff.max(retry_after.unwrap_or_default()).min(limit)
}

/// Returns whether the policy of `tool` retries this outcome. A tool that writes never repeats an attempt that may have
/// had an effect.
fn may_repeat(tool: &Tool, outcome: &Outcome) -> bool {
    Reach::of_outcome(tool.effect, outcome) != Reach::MaybeDone
        && tool
            .retry
            .conditions
            .iter()
            .any(|on| matches_condition(*on, outcome))
}

fn matches_condition(on: RetryCondition, outcome: &Outcome) -> bool {
    let ending = match outcome {
        Outcome::Failed { ending, .. } => Some(*ending),
        _ => None,
    };
    let status = ending.and_then(CallEnding::http_status);
    match on {
        RetryCondition::RateLimited => status == Some(429) || is_temporary_spawn_error(outcome),
        RetryCondition::Unavailable => {
            matches!(status, Some(502..=504 | 529)) || is_unreachable(outcome)
        }
        RetryCondition::Timeout => matches!(outcome, Outcome::TimedOut { .. }),
        RetryCondition::Exit(code) => ending == Some(CallEnding::ExitCode(code)),
        RetryCondition::Http(wanted) => status == Some(wanted),
    }
}

fn is_temporary_spawn_error(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotStarted(fault)
        if TEMPORARY_SPAWN_ERRNOS.iter().any(|errno| errno.raw_os_error() == fault.errno))
}

fn is_unreachable(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotStarted(_) => true,
        Outcome::TransportFailed(transport) => matches!(
            transport.phase,
            TransportPhase::Connect | TransportPhase::Response | TransportPhase::Body
        ),
        _ => false,
    }
}

/// The waits of a policy. They double from `backoff` up to `max_backoff`, and jitter reduces each to between half and
/// all of that, so that calls that failed together aren't retried together.
#[derive(Debug)]
struct BackoffSequence {
    next_wait: Duration,
    max_wait: Duration,
    rng: fastrand::Rng,
}

impl BackoffSequence {
    fn new(policy: &RetryPolicy, seed: u64) -> Self {
        Self {
            next_wait: policy.initial_backoff.min(policy.max_backoff),
            max_wait: policy.max_backoff,
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

impl Iterator for BackoffSequence {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.next_wait;
        self.next_wait = wait.saturating_mul(2).min(self.max_wait);
        Some(wait.mul_f64(0.5 + self.rng.f64() / 2.0))
    }
}
