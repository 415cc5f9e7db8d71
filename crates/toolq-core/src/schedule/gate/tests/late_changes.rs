//! Calls that arrive, or get other locks, while others run.

use super::*;

fn writing(name: &'static str) -> CallAccess {
    to_access(&TestAccess {
        safe: true,
        locks: Some(vec![(true, name)]),
    })
}

/// A gate with a call for each of these locks, the first `admitted` of which were let in.
fn gate_of(names: &[&'static str], admitted: usize) -> Gate {
    let mut gate = Gate::default();
    for (call, name) in names.iter().enumerate() {
        gate.push(call, writing(name));
    }
    for call in 0..admitted {
        assert_eq!(gate.enter(), Some(call));
    }
    gate
}

fn change(gate: &mut Gate, call: usize, name: &'static str) -> bool {
    gate.change_locks(call, writing(name).locks.unwrap())
}

#[test]
fn the_gate_says_what_it_would_admit() {
    let mut gate = gate_of(&["/a", "/a", "/ab"], 0);
    assert!(!gate.has_admitted());
    assert_eq!((gate.peek(), gate.next_waiting()), (Some(0), Some(0)));
    assert_eq!(
        [0, 1, 2, 3].map(|call| gate.is_ready(call)),
        [true, false, true, false]
    );
    assert_eq!(gate.enter(), Some(0));
    assert!(gate.has_admitted());
    assert_eq!((gate.peek(), gate.next_waiting()), (Some(2), Some(1)));
    assert_eq!(gate.enter(), Some(2));
    assert_eq!((gate.peek(), gate.next_waiting()), (None, Some(1)));
    gate.leave(0);
    gate.leave(2);
    assert!(!gate.has_admitted());
    assert_eq!((gate.peek(), gate.is_ready(1)), (Some(1), true));
}

#[test]
fn a_call_that_arrives_later_waits_for_none_that_has_finished() {
    for safe in [true, false] {
        let mut gate = Gate::default();
        for round in 0..3 {
            for call in [2 * round, 2 * round + 1] {
                gate.push(call, CallAccess { safe, locks: None });
                assert_eq!(gate.enter(), Some(call));
                if !safe {
                    gate.leave(call);
                }
            }
            (0..2 * round + 2).for_each(|call| gate.leave(call));
        }
        gate.push(9, CallAccess::ALONE);
        assert_eq!(gate.enter(), Some(9));
    }
}

#[test]
fn other_locks_that_meet_no_call_hold_up_none() {
    let mut gate = gate_of(&["/a", "/ab", "text"], 2);
    assert!(change(&mut gate, 1, "/b"));
    assert!(gate.is_ready(2));
    assert_eq!(gate.enter(), Some(2));
}

#[test]
fn later_calls_wait_for_the_other_locks_of_one_before_them() {
    let mut gate = gate_of(&["/a", "/ab"], 1);
    assert!(change(&mut gate, 0, "/ab"));
    assert_eq!((gate.peek(), gate.is_ready(1)), (None, false));
    gate.leave(0);
    assert_eq!(gate.enter(), Some(1));
}

#[test]
fn a_call_with_other_locks_waits_for_one_behind_it_that_runs() {
    let mut gate = gate_of(&["/a", "/ab"], 2);
    assert!(!change(&mut gate, 0, "/ab"));
    assert_eq!((gate.peek(), gate.next_waiting()), (None, Some(0)));
    // Neither waits for the other forever.
    assert!(change(&mut gate, 1, "/"));
    gate.leave(1);
    assert_eq!(gate.enter(), Some(0));
}

#[test]
fn a_call_with_other_locks_keeps_its_place_in_the_order() {
    let mut gate = gate_of(&["/a", "/a", "/ab"], 1);
    assert_eq!(gate.enter(), Some(2));
    assert!(!change(&mut gate, 2, "/a"));
    gate.leave(0);
    assert_eq!((gate.enter(), gate.enter()), (Some(1), None));
    gate.leave(1);
    assert_eq!(gate.enter(), Some(2));
}
