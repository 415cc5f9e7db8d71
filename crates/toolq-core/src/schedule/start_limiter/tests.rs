use std::num::{NonZeroU32, NonZeroUsize};

use super::*;
use crate::types::{RatePeriod, StartRate};

const NOW: Duration = Duration::from_secs(5);

fn at_once(calls: usize) -> StartLimits {
    StartLimits {
        max_parallel: NonZeroUsize::new(calls),
        rate: None,
    }
}

fn per_second(starts: u32) -> StartLimits {
    let rate = StartRate {
        starts: NonZeroU32::new(starts).unwrap(),
        period: RatePeriod::Second,
    };
    StartLimits {
        max_parallel: None,
        rate: Some(rate),
    }
}

fn subject(name: &str) -> LimitedSubject {
    LimitedSubject::Server(name.to_owned())
}

fn applied(limits: &[(&str, StartLimits)]) -> AppliedLimits {
    let limits = limits.iter();
    limits
        .map(|(name, limits)| (subject(name), *limits))
        .collect()
}

/// The wait of a call whose start time isn't known yet.
fn waits_for(name: &str) -> Result<(), StartWait> {
    Err(StartWait {
        subject: subject(name),
        is_rate: false,
        until: None,
    })
}

#[test]
fn calls_start_in_their_order_and_no_more_run_at_once_than_the_limit() {
    let (mut limiter, limits) = (StartLimiter::default(), applied(&[("s", at_once(2))]));
    let calls = [(); 4].map(|()| limiter.enqueue(&limits, false));
    assert!(calls.is_sorted_by(|one, next| one.position() < next.position()));
    assert!(calls.iter().all(|call| call.line() == calls[0].line()));
    assert_eq!(
        limiter.check(&calls[1], NOW),
        waits_for("s"),
        "another call is first"
    );
    for call in &calls[..2] {
        assert_eq!(limiter.check(call, NOW), Ok(()));
        limiter.start(call, NOW, false);
    }
    assert_eq!(limiter.check(&calls[2], NOW), waits_for("s"));
    limiter.finish(&calls[0]);
    limiter.withdraw(&calls[2]);
    assert_eq!(limiter.check(&calls[3], NOW), Ok(()));
}

#[test]
fn a_rate_says_when_the_next_call_may_start() {
    let (mut limiter, limits) = (StartLimiter::default(), applied(&[("s", per_second(10))]));
    let calls = [(); 3].map(|()| limiter.enqueue(&limits, false));
    let due_at = |limiter: &StartLimiter, call| {
        let wait: StartWait = limiter.check(call, NOW).unwrap_err();
        assert_eq!((wait.limit_name(), wait.is_rate), ("rate", true));
        wait.until
    };
    assert_eq!(due_at(&limiter, &calls[1]), None, "another call is first");
    limiter.start(&calls[0], NOW, false);
    let due = NOW + Duration::from_millis(100);
    assert_eq!(due_at(&limiter, &calls[1]), Some(due));
    assert_eq!(limiter.check(&calls[1], due), Ok(()));
    // Its start was recorded late, so the next one is late, too, except for what timers may be off.
    limiter.note_started(&calls[0], due);
    let due = due + Duration::from_millis(98);
    assert_eq!(due_at(&limiter, &calls[1]), Some(due));
    let full = waits_for("s").unwrap_err();
    assert_eq!(full.limit_name(), "max_parallel");
}

/// Of several rates, the one counts that takes longest.
#[test]
fn a_call_waits_for_the_last_of_its_rates() {
    let mut limiter = StartLimiter::default();
    let limits = applied(&[("fast", per_second(100)), ("slow", per_second(2))]);
    let calls = [(); 2].map(|()| limiter.enqueue(&limits, false));
    limiter.start(&calls[0], NOW, false);
    let wait = limiter.check(&calls[1], NOW).unwrap_err();
    assert_eq!(wait.subject, subject("slow"));
    assert_eq!(wait.until, Some(NOW + Duration::from_millis(500)));
}

/// A retry holds what others may wait for, and is counted already.
#[test]
fn a_retry_comes_first_and_needs_no_room() {
    let (mut limiter, limits) = (StartLimiter::default(), applied(&[("s", at_once(1))]));
    let (first, next) = (
        limiter.enqueue(&limits, false),
        limiter.enqueue(&limits, false),
    );
    limiter.start(&first, NOW, false);
    let retry = limiter.enqueue(&limits, true);
    assert!(retry.position() < next.position());
    assert_eq!(limiter.check(&retry, NOW), Ok(()));
    limiter.start(&retry, NOW, false);
    limiter.finish(&first);
    assert_eq!(limiter.check(&next, NOW), Ok(()));
}

/// Calls of one line can't take what a call needs that came before them, unless that couldn't use it.
#[test]
fn lines_share_a_limit_in_the_order_in_which_their_calls_came() {
    let mut limiter = StartLimiter::default();
    let both = |tool| applied(&[(tool, at_once(1)), ("shared", at_once(1))]);
    let first = limiter.enqueue(&both("a"), false);
    let second = limiter.enqueue(&both("b"), false);
    let other = limiter.enqueue(&applied(&[("c", at_once(1))]), false);
    assert_eq!(limiter.check(&first, NOW), Ok(()));
    assert_eq!(limiter.check(&second, NOW), waits_for("b"));
    assert_eq!(limiter.check(&other, NOW), Ok(()));
    let holder = limiter.enqueue(&applied(&[("a", at_once(1))]), false);
    limiter.start(&holder, NOW, false);
    assert_eq!(limiter.check(&first, NOW), waits_for("a"));
    assert_eq!(limiter.check(&second, NOW), Ok(()));
}
