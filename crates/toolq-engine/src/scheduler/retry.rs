//! When a failed attempt is followed by another, and after how long. Pure: time and chance are given.

use std::time::Duration;

use rustix::io::Errno;

use toolq_core::types::{Effect, Ending, Outcome, Retry, RetryOn, Tool, TransportPhase};

/// The part of what is left of `timeout.total` that a wait may take, so that the attempt behind it has some time.
const WAIT_SHARE: f64 = 0.9;

/// Start errors that mean "not now" rather than "never".
const NOT_NOW: [Errno; 5] = [
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::MFILE,
    Errno::NFILE,
    Errno::TXTBSY,
];

/// The wait before the attempt that follows `attempt` (counted from 1); none where none follows.
///
/// `retry_after` is the server's wish, a minimum. `left` is what is left of `timeout.total`. `seed` decides the jitter.
pub(crate) fn wait(
    tool: &Tool,
    attempt: u32,
    outcome: &Outcome,
    retry_after: Option<Duration>,
    left: Option<Duration>,
    seed: u64,
) -> Option<Duration> {
    if attempt > tool.retry.times
        || !repeats(tool, outcome)
        || left.is_some_and(|left| left.is_zero())
    {
        return None;
    }
    let backoff = Backoff::new(&tool.retry, seed).nth(attempt as usize - 1)?;
    Some(bounded(backoff, retry_after, left, tool.retry.max_backoff))
}

/// The same for a request of an agent, which failed for this reason and has no effect but its answer. A wish that is beyond
/// what is left is not clipped: asked too early, the API would only refuse again.
pub(crate) fn wait_to_ask(
    policy: &Retry,
    attempt: u32,
    why: RetryOn,
    retry_after: Option<Duration>,
    left: Duration,
    seed: u64,
) -> Option<Duration> {
    let wish = retry_after.unwrap_or_default();
    if attempt > policy.times || !policy.on.contains(&why) || wish >= left {
        return None;
    }
    let backoff = Backoff::new(policy, seed).nth(attempt as usize - 1)?;
    Some(bounded(backoff, None, Some(left), policy.max_backoff).max(wish))
}

/// The wait of a policy and the wish of a server, within what time there is. Where the tool has no `timeout.total`, no
/// wait is longer than `longest`.
fn bounded(
    backoff: Duration,
    retry_after: Option<Duration>,
    left: Option<Duration>,
    longest: Duration,
) -> Duration {
    let most = left.map_or(longest, |left| left.mul_f64(WAIT_SHARE));
    backoff.max(retry_after.unwrap_or_default()).min(most)
}

/// Whether the policy of `tool` repeats what ended so. What may have changed the world is never repeated by a tool
/// that writes.
fn repeats(tool: &Tool, outcome: &Outcome) -> bool {
    let harmless = tool.effect != Effect::Write || surely_did_not_run(outcome);
    harmless && tool.retry.on.iter().any(|on| matches(*on, outcome))
}

/// Nothing happened: the program never started, the request was never sent or was turned away at the door.
fn surely_did_not_run(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotStarted(_) => true,
        Outcome::Transport(transport) => transport.phase == TransportPhase::Connect,
        _ => outcome.ending() == Some(Ending::Http(429)),
    }
}

fn matches(on: RetryOn, outcome: &Outcome) -> bool {
    let ending = match outcome {
        Outcome::Failed { ending, .. } => Some(*ending),
        _ => None,
    };
    match on {
        RetryOn::RateLimited => ending == Some(Ending::Http(429)) || not_now(outcome),
        RetryOn::Unavailable => {
            matches!(ending, Some(Ending::Http(502..=504 | 529))) || out_of_reach(outcome)
        }
        RetryOn::Timeout => matches!(outcome, Outcome::TimedOut { .. }),
        RetryOn::Exit(code) => ending == Some(Ending::Exit(code)),
        RetryOn::Http(status) => ending == Some(Ending::Http(status)),
    }
}

fn not_now(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotStarted(fault)
        if NOT_NOW.iter().any(|errno| errno.raw_os_error() == fault.errno))
}

fn out_of_reach(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NotStarted(_) => true,
        Outcome::Transport(transport) => matches!(
            transport.phase,
            TransportPhase::Connect | TransportPhase::Response | TransportPhase::Body
        ),
        _ => false,
    }
}

/// The waits of a policy: doubling from `backoff` up to `max_backoff`, each between half and all of that by chance, so
/// that calls which failed together do not come back together.
#[derive(Debug)]
struct Backoff {
    next: Duration,
    longest: Duration,
    chance: fastrand::Rng,
}

impl Backoff {
    fn new(policy: &Retry, seed: u64) -> Self {
        Self {
            next: policy.backoff.min(policy.max_backoff),
            longest: policy.max_backoff,
            chance: fastrand::Rng::with_seed(seed),
        }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        Some(wait.mul_f64(0.5 + self.chance.f64() / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(backoff_ms: u64, max_ms: u64) -> Retry {
        Retry {
            times: 9,
            on: Vec::new(),
            backoff: Duration::from_millis(backoff_ms),
            max_backoff: Duration::from_millis(max_ms),
        }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        for seed in 0..50 {
            let waits: Vec<u128> = Backoff::new(&policy(100, 500), seed)
                .map(|wait| wait.as_millis())
                .take(5)
                .collect();
            for (wait, most) in waits.iter().zip([100, 200, 400, 500, 500]) {
                assert!((most / 2..=most).contains(wait), "{waits:?}");
            }
        }
        let first = |seed| Backoff::new(&policy(1_000_000, 1_000_000), seed).next();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    /// FAULTS 99: a server's wish is a minimum, and is clipped to what is left.
    #[test]
    fn the_wish_of_a_server_is_a_minimum() {
        let second = Duration::from_secs(1);
        let wish = Some(10 * second);
        for (wish, left, expected) in [
            (wish, Some(100 * second), 10 * second),
            (wish, Some(5 * second), second.mul_f64(4.5)),
            (wish, None, second / 2),
            (Some(Duration::MAX), Some(second), second.mul_f64(0.9)),
        ] {
            assert_eq!(bounded(second / 10, wish, left, second / 2), expected);
        }
        assert!(bounded(second, None, None, 2 * second) == second);
    }
}
