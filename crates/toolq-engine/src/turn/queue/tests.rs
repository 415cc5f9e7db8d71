//! A queue by itself: the numbers, states and batches of its calls.

use super::*;

use crate::turn::call::tests::job;
use toolq_core::types::HaltCause;
use toolq_testing::{sample_answer, sample_call};

fn call_ref(position: usize, batch: Option<usize>) -> CallRef {
    CallRef::new(&sample_call(position, "t", "{}"), batch)
}

fn answered(position: usize) -> CallState {
    let answer = sample_answer(&call_ref(position, None), "done", false);
    CallState::Answered(Box::new(answer), Durability::Unneeded)
}

#[test]
fn a_call_keeps_its_number_when_earlier_ones_are_delivered() {
    let mut queue = CallQueue::default();
    for (number, position) in [3, 5, 7].into_iter().enumerate() {
        let state = CallState::Waiting(job(None));
        assert_eq!(
            queue.push(call_ref(position, Some(0)).into(), state),
            number
        );
    }
    let numbers = |queue: &CallQueue| [3, 5, 7].map(|position| queue.number_at_position(position));
    assert_eq!(numbers(&queue), [Some(0), Some(1), Some(2)]);
    assert!(queue.pop_answered().is_none());
    for number in [1, 0] {
        queue.begin_answer(number);
        let answer = sample_answer(&call_ref(0, None), "done", false);
        queue.set_answer(number, answer, Durability::Unneeded);
    }
    let delivered = std::iter::from_fn(|| queue.pop_answered());
    let delivered: Vec<usize> = delivered.map(|(call, _)| call.position).collect();
    assert_eq!(delivered, [3, 5]);
    assert_eq!(numbers(&queue), [None, None, Some(2)]);
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
        queue.push(call_ref(position, batch).into(), state);
    }
    let batch_from = |queue: &CallQueue, number| -> Vec<usize> {
        let calls = queue.batch_calls(number).into_iter();
        calls.map(|call| call.position).collect()
    };
    assert_eq!(batch_from(&queue, 1), [1, 4]);
    assert!(queue.pop_answered().is_some());
    assert_eq!(batch_from(&queue, 1), [1, 4]);
    assert_eq!(batch_from(&queue, 3), [0; 0]);
    assert_eq!(batch_from(&queue, 5), [5]);
}

/// A call that writes has its result only once that is durable, and one request serves all that came before it.
#[test]
fn an_answer_is_delivered_once_it_is_durable() {
    let mut queue = CallQueue::default();
    for position in 0..3 {
        queue.push(
            call_ref(position, None).into(),
            CallState::Waiting(job(None)),
        );
        let answer = sample_answer(&call_ref(position, None), "done", false);
        queue.set_answer(position, answer, Durability::Unrequested);
        assert!(queue.has_unrequested);
        if position == 1 {
            assert_eq!(queue.request_sync(), 1);
            assert!(!queue.has_unrequested);
        }
    }
    assert!(queue.pop_answered().is_none());
    queue.note_synced(1);
    assert!(queue.pop_answered().is_some() && queue.pop_answered().is_some());
    assert!(queue.pop_answered().is_none());
    let request = queue.request_sync();
    queue.note_synced(request);
    assert!(queue.pop_answered().is_some());
}

#[test]
fn only_running_calls_are_running() {
    let mut queue = CallQueue::default();
    for (position, batch) in [None, Some(0), Some(0), Some(1)].into_iter().enumerate() {
        queue.push(
            call_ref(position, batch).into(),
            CallState::Waiting(job(None)),
        );
    }
    let answer = sample_answer(&call_ref(0, None), "done", false);
    queue.set_answer(0, answer, Durability::Unneeded);
    for number in [1, 2] {
        assert!(!queue.is_running(number));
        queue.set_running(number, CallStop::new(oneshot::channel().0));
        assert!(queue.is_running(number));
    }
    let batches = |queue: &mut CallQueue| -> Vec<Option<usize>> {
        queue.running_calls().map(|(batch, _)| batch).collect()
    };
    assert_eq!(batches(&mut queue), [Some(0), Some(0)]);
    assert_eq!(queue.begin_answer(1).unwrap().position, 1);
    assert!(queue.begin_answer(1).is_none());
    assert_eq!(batches(&mut queue), [Some(0)]);
    for (_, stop) in queue.running_calls() {
        stop.send(&StopCause::Halted(HaltCause::OutputLost));
    }
    assert!(!queue.is_running(2));
    assert!(!queue.is_empty());
    assert!(CallQueue::default().is_empty());
}
