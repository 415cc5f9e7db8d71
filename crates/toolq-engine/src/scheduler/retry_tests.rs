//! The rules for retries as tables, and the waits between attempts.

use super::*;

use toolq_core::types::{CallOutput, Effect, SpawnError, TransportCause, TransportError};
use toolq_testing::{sample_tool, success_outcome};

fn failed(ending: CallEnding) -> Outcome {
    Outcome::Failed {
        output: CallOutput::default(),
        ending,
    }
}

fn not_started(errno: Errno) -> Outcome {
    Outcome::NotStarted(SpawnError {
        program: "t".to_owned(),
        directory: None,
        confinement: None,
        interpreter: None,
        errno: errno.raw_os_error(),
    })
}

fn transport_failed(phase: TransportPhase) -> Outcome {
    Outcome::TransportFailed(TransportError {
        phase,
        origin: String::new(),
        cause: TransportCause::default(),
        detail: String::new(),
    })
}

fn timed_out() -> Outcome {
    Outcome::TimedOut {
        limit: Duration::from_secs(1),
        no_calls_started: false,
        output: CallOutput::default(),
    }
}

fn retrying_tool(effect: Effect, conditions: &[RetryCondition]) -> Tool {
    Tool {
        effect,
        retry: RetryPolicy {
            max_retries: 3,
            conditions: conditions.to_vec(),
            ..policy(100, 1_000_000)
        },
        ..sample_tool("t")
    }
}

/// Which conditions retry an outcome, and whether a tool that writes repeats it at all, written out by hand.
#[test]
fn each_outcome_is_retried_under_its_conditions_only() {
    use RetryCondition::{Exit, Http, RateLimited, Timeout, Unavailable};
    let status = |status| failed(CallEnding::HttpStatus(status));
    let exit = |code| failed(CallEnding::ExitCode(code));
    let conditions = [RateLimited, Unavailable, Timeout, Exit(7), Http(500)];
    for (outcome, retried_under, had_no_effect) in [
        (status(429), &[RateLimited] as &[_], true),
        (status(500), &[Http(500)], false),
        (status(501), &[], false),
        (status(502), &[Unavailable], false),
        (status(504), &[Unavailable], false),
        (status(505), &[], false),
        (status(529), &[Unavailable], false),
        (exit(7), &[Exit(7)], false),
        (exit(500), &[], false),
        (failed(CallEnding::Signal(7)), &[], false),
        (not_started(Errno::AGAIN), &[RateLimited, Unavailable], true),
        (not_started(Errno::NOENT), &[Unavailable], true),
        (transport_failed(TransportPhase::Build), &[], false),
        (
            transport_failed(TransportPhase::Connect),
            &[Unavailable],
            true,
        ),
        (
            transport_failed(TransportPhase::Response),
            &[Unavailable],
            false,
        ),
        (
            transport_failed(TransportPhase::Body),
            &[Unavailable],
            false,
        ),
        (transport_failed(TransportPhase::TooLarge), &[], false),
        (timed_out(), &[Timeout], false),
        (success_outcome("7"), &[], false),
    ] {
        for (condition, effect) in conditions.into_iter().flat_map(|on| {
            [Effect::Read, Effect::Idempotent, Effect::Write].map(|effect| (on, effect))
        }) {
            let tool = retrying_tool(effect, &[condition]);
            let wait = next_wait(&tool, 1, &outcome, None, None, 7);
            let may_repeat = effect != Effect::Write || had_no_effect;
            assert_eq!(
                wait.is_some(),
                may_repeat && retried_under.contains(&condition),
                "{outcome:?} {condition:?} {effect:?}"
            );
        }
        assert_eq!(
            next_wait(
                &retrying_tool(Effect::Read, &[]),
                1,
                &outcome,
                None,
                None,
                7
            ),
            None
        );
    }
}

/// Every attempt waits longer than the one before, and no attempt follows the last or begins without time left.
#[test]
fn attempts_end_with_the_retries_or_the_time() {
    let tool = retrying_tool(
        Effect::Read,
        &[RetryCondition::Exit(7), RetryCondition::Timeout],
    );
    let outcome = failed(CallEnding::ExitCode(7));
    let minute = Duration::from_mins(1);
    let millis = |wait: Option<Duration>| wait.map(|wait| wait.as_millis());
    for (attempt, waits) in [(1, 50..=100), (2, 100..=200), (3, 200..=400)] {
        let of_tool = next_wait(&tool, attempt, &outcome, None, Some(minute), 7);
        let of_request = next_request_wait(
            &tool.retry,
            attempt,
            RetryCondition::Timeout,
            None,
            minute,
            7,
        );
        assert_eq!(of_tool, of_request);
        assert!(
            millis(of_tool).is_some_and(|wait| waits.contains(&wait)),
            "{of_tool:?}"
        );
    }
    assert_eq!(next_wait(&tool, 4, &outcome, None, Some(minute), 7), None);
    assert_eq!(
        next_wait(&tool, 1, &outcome, None, Some(Duration::ZERO), 7),
        None
    );
}

/// A model request is repeated only for a condition of the agent, and never earlier than the API asks for.
#[test]
fn a_model_request_waits_as_long_as_the_api_asks_or_is_not_repeated() {
    let second = Duration::from_secs(1);
    let conditions = vec![RetryCondition::RateLimited, RetryCondition::Timeout];
    let policy = RetryPolicy {
        max_retries: 1,
        conditions,
        ..policy(100, 500)
    };
    let wait = |attempt, reason, retry_after, remaining| {
        next_request_wait(&policy, attempt, reason, retry_after, remaining, 7)
    };
    let limited = RetryCondition::RateLimited;
    assert_eq!(
        wait(1, limited, Some(5 * second), 6 * second),
        Some(5 * second)
    );
    assert_eq!(wait(1, limited, Some(5 * second), 5 * second), None);
    assert_eq!(wait(1, limited, None, Duration::ZERO), None);
    assert_eq!(wait(2, limited, None, 6 * second), None);
    assert_eq!(wait(1, RetryCondition::Unavailable, None, 6 * second), None);
    let backoff = wait(1, limited, None, 6 * second);
    assert!(backoff.is_some_and(|wait| wait < second), "{backoff:?}");
}

fn policy(backoff_ms: u64, max_ms: u64) -> RetryPolicy {
    RetryPolicy {
        max_retries: 9,
        conditions: Vec::new(),
        initial_backoff: Duration::from_millis(backoff_ms),
        max_backoff: Duration::from_millis(max_ms),
    }
}

/// A server that answers 429 or 503 is asked again ever later.
#[test]
fn waits_double_up_to_max_backoff() {
    for seed in 0..50 {
        let waits: Vec<u128> = BackoffSequence::new(&policy(100, 500), seed)
            .map(|wait| wait.as_millis())
            .take(5)
            .collect();
        for (wait, max) in waits.iter().zip([100, 200, 400, 500, 500]) {
            assert!((max / 2..=max).contains(wait), "{waits:?}");
        }
    }
    let first = |seed| BackoffSequence::new(&policy(1_000_000, 1_000_000), seed).next();
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
}

#[test]
fn retry_after_is_a_minimum_within_the_remaining_time() {
    let second = Duration::from_secs(1);
    let retry_after = Some(10 * second);
    for (retry_after, remaining, expected) in [
        (retry_after, Some(100 * second), 10 * second),
        (retry_after, Some(5 * second), second.mul_f64(4.5)),
        (retry_after, None, second / 2),
        (Some(Duration::MAX), Some(second), second.mul_f64(0.9)),
    ] {
        assert_eq!(
            clamp_wait(second / 10, retry_after, remaining, second / 2),
            expected
        );
    }
    assert!(clamp_wait(second, None, None, 2 * second) == second);
}

/// A later run waits as long as the one before would have.
#[test]
fn jitter_follows_from_the_idempotency_key() {
    for (key, seed) in [
        ("00000000000000ffabcdef", 255),
        ("0000000000000100abcdef", 256),
        ("short", 0),
    ] {
        assert_eq!(jitter_seed(key), seed, "{key}");
    }
}
