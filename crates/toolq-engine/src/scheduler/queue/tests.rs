//! A queue by itself: the numbers, states and batches of its calls.

use super::*;

use crate::scheduler::running_call::tests::job;
use toolq_core::testing::{sample_answer, sample_call};

fn call_ref(position: usize, batch: Option<usize>) -> CallRef {
    CallRef::new(&sample_call(position, "t", "{}"), batch)
}

fn answered(position: usize) -> CallState {
    CallState::Answered(sample_answer(&call_ref(position, None), "done", false))
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
