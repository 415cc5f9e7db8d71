//! A queue by itself: the numbers and batches of its calls, and what a running call derives from its tool and its key.

use std::num::NonZeroUsize;

use super::*;

use crate::scheduler::permits::ConcurrencyLimit;
use toolq_core::testing::{accepted_call, sample_answer, sample_call, sample_tool};
use toolq_core::types::{Tool, Verdict};

fn job(total: Option<Duration>) -> Arc<CallJob> {
    let timeout = CallTimeouts {
        after: Duration::from_secs(4),
        total,
        ..sample_tool("t").timeout
    };
    let tool = Tool {
        timeout,
        ..sample_tool("t")
    };
    let checked = accepted_call(0, tool, false, "{}");
    let Verdict::Accepted(accepted) = checked.verdict else {
        unreachable!()
    };
    Arc::new(CallJob {
        call: checked.call,
        accepted: *accepted,
        ticket: None,
        prior_attempts: None,
        needs_probe: false,
    })
}

/// Returns a call that starts 100 seconds after the engine.
fn running_call(total: Option<u64>, key: &str) -> RunningCall {
    let permit = ConcurrencyLimit::new(NonZeroUsize::MIN).try_acquire();
    let job = job(total.map(Duration::from_secs));
    RunningCall::new(
        job,
        key.to_owned(),
        Duration::from_secs(100),
        permit.unwrap(),
    )
}

fn call_ref(position: usize, batch: Option<usize>) -> CallRef {
    CallRef::new(&sample_call(position, "t", "{}"), batch)
}

fn answered(position: usize) -> CallState {
    CallState::Answered(sample_answer(&call_ref(position, None), "done", false))
}

/// A message about a timeout names the limit that was reached.
#[test]
fn an_attempt_ends_at_whichever_limit_comes_first() {
    for (total, now, remaining, duration, configured) in [
        (None, 100, None, 4, 4),
        (None, 900, None, 4, 4),
        (Some(10), 100, Some(10), 4, 4),
        (Some(10), 106, Some(4), 4, 4),
        (Some(10), 107, Some(3), 3, 10),
        (Some(10), 200, Some(0), 0, 10),
    ] {
        let run = running_call(total, "key");
        let now = Duration::from_secs(now);
        assert_eq!(run.remaining_time(now), remaining.map(Duration::from_secs));
        let timeout = run.attempt_timeout(now);
        let seconds = (timeout.duration.as_secs(), timeout.configured.as_secs());
        assert_eq!(seconds, (duration, configured), "{total:?} {now:?}");
    }
}

/// A resumed run waits as long as the one before would have.
#[test]
fn jitter_follows_from_the_idempotency_key() {
    for (key, seed) in [
        ("00000000000000ffabcdef", 255),
        ("0000000000000100abcdef", 256),
        ("short", 0),
    ] {
        assert_eq!(running_call(None, key).jitter_seed(), seed, "{key}");
    }
}

#[test]
fn a_call_keeps_its_number_when_earlier_ones_are_delivered() {
    let mut queue = CallQueue::default();
    for (number, position) in [3, 5, 7].into_iter().enumerate() {
        let state = CallState::Waiting(job(None));
        assert_eq!(queue.push(call_ref(position, Some(0)), state), number);
    }
    assert!(queue.pop_answered().is_none());
    for number in [1, 0] {
        queue.take_state(number);
        queue.set_answer(number, sample_answer(&call_ref(0, None), "done", false));
    }
    let delivered = std::iter::from_fn(|| queue.pop_answered());
    let delivered: Vec<usize> = delivered.map(|(call, _)| call.position).collect();
    assert_eq!(delivered, [3, 5]);
    let numbers = [3, 5, 7].map(|position| queue.number_at_position(position));
    assert_eq!(numbers, [None, None, Some(2)]);
    let waiting = [1, 2, 3].map(|number| queue.waiting_job(number).is_some());
    assert_eq!(waiting, [false, true, false]);
}

/// Calls that were rejected have no batch, and those with an answer already don't start.
#[test]
fn a_batch_starts_with_its_unfinished_calls() {
    let mut queue = CallQueue::default();
    let waiting = || CallState::Waiting(job(None));
    for (position, (batch, state)) in [
        (Some(0), answered(0)),
        (Some(1), waiting()),
        (Some(1), answered(2)),
        (None, answered(3)),
        (Some(1), waiting()),
        (Some(2), waiting()),
    ]
    .into_iter()
    .enumerate()
    {
        queue.push(call_ref(position, batch), state);
    }
    let batch_from = |queue: &CallQueue, number| -> Vec<usize> {
        let calls = queue.batch_calls_from(number).into_iter();
        calls.map(|call| call.position).collect()
    };
    assert_eq!(batch_from(&queue, 1), [1, 4]);
    assert!(queue.pop_answered().is_some());
    assert_eq!(batch_from(&queue, 1), [1, 4]);
    assert_eq!(batch_from(&queue, 3), [0; 0]);
    assert_eq!(batch_from(&queue, 5), [5]);
}
