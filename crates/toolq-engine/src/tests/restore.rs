//! Calls that an earlier run started or finished.

use crate::run_budget::BudgetLimits;
use crate::tests::scripted_runner::{EventRecorder, calls, run_and_record, run_script, tool};
use toolq_core::types::{
    CallOutput, CheckedCall, DoubtCause, OnDoubt, OnFailure, Outcome, RestoredResult,
    ResultContent, Status, Tool,
};

fn mark_answered(checked: &mut CheckedCall, status: &'static str) {
    checked.known = Some(Box::new(Outcome::Restored(RestoredResult {
        status: Status::from(status),
        is_error: status != "ok",
        content: ResultContent::Text("from the log".to_owned()),
        cut_output: None,
        agent_usage: None,
        source: None,
    })));
}

fn mark_in_doubt(checked: &mut CheckedCall) {
    checked.known = Some(Box::new(Outcome::InDoubt {
        cause: DoubtCause::EndNotLogged(None),
        output: CallOutput::default(),
    }));
}

/// Restored calls are answered as they arrive, need no permit, and don't delay other calls. Batches keep their numbers.
#[test]
fn a_restored_call_is_no_barrier() {
    let tool = tool("t");
    let mut calls = calls("a B c d", &tool);
    mark_answered(&mut calls[0], "ok");
    mark_answered(&mut calls[1], "failed");
    let recorder = run_and_record(&[&tool], 1, calls, "c d");
    insta::assert_snapshot!(recorder.lines().join("\n"), @r"
    turn 0
    queued a Some(0)
    finished a ok 0
    delivered a
    queued B Some(1)
    finished B failed 0
    delivered B
    queued c Some(2)
    queued d Some(2)
    batch 2 [c d] + started c 1
    finished c ok 1
    delivered c
    started d 1
    finished d ok 1
    delivered d
    drained
    ");
}

/// It is answered at once, and no attempt starts.
#[test]
fn a_call_in_doubt_does_not_start() {
    let tool = tool_that_continues_on_doubt();
    let mut calls = calls("A b", &tool);
    mark_in_doubt(&mut calls[0]);
    let recorder = run_and_record(&[&tool], 8, calls, "b");
    assert_eq!(recorder.lines_for("finished"), ["A in_doubt 0", "b ok 1"]);
    assert_eq!(recorder.lines_for("delivered"), ["A", "b"]);
}

/// A failure from an earlier run stops the same calls as it did then.
#[test]
fn a_restored_failure_stops_later_calls() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let mut calls = calls("a b c", &tool);
    mark_answered(&mut calls[1], "failed");
    let recorder = run_and_record(&[&tool], 8, calls, "a");
    let ends = ["b failed 0", "c not_executed 0", "a ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

/// The siblings of a failed call don't run, regardless of their position in the batch. Other batches do.
#[test]
fn a_restored_failure_cancels_its_siblings() {
    let tool = Tool {
        on_failure: OnFailure::CancelSiblings,
        ..tool("t")
    };
    for failed in 0..3 {
        let mut calls = calls("a b c D", &tool);
        mark_answered(&mut calls[failed], "failed");
        let ids: Vec<_> = calls
            .iter()
            .map(|checked| checked.call.id.clone())
            .collect();
        let recorder = run_and_record(&[&tool], 8, calls, "D");
        let mut ends = recorder.lines_for("finished");
        ends.sort();
        let mut expected: Vec<String> = ids[..3]
            .iter()
            .map(|id| format!("{id} not_executed 0"))
            .collect();
        expected[failed] = format!("{} failed 0", ids[failed]);
        expected.insert(0, "D ok 1".to_owned());
        assert_eq!(ends, expected);
    }
}

#[test]
fn restored_failures_pause_a_tool() {
    let tool = Tool {
        pause_after_failures: Some(2),
        ..tool("t")
    };
    let mut calls = calls("A B C", &tool);
    mark_answered(&mut calls[0], "failed");
    mark_answered(&mut calls[1], "timeout");
    let recorder = run_and_record(&[&tool], 8, calls, "");
    let ends = ["A failed 0", "B timeout 0", "C paused 0"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

#[test]
fn restored_calls_use_no_budget() {
    let tool = tool_that_continues_on_doubt();
    let mut calls = calls("A B C", &tool);
    mark_answered(&mut calls[0], "ok");
    mark_in_doubt(&mut calls[1]);
    let budgets = BudgetLimits {
        calls: Some(1),
        ..BudgetLimits::default()
    };
    let mut recorder = EventRecorder::default();
    let mut engine = crate::tests::scripted_runner::engine_with_budgets(&[&tool], 8, budgets);
    run_script(&mut engine, calls, "C", &mut recorder);
    let ends = ["A ok 0", "B in_doubt 0", "C ok 1"];
    assert_eq!(recorder.lines_for("finished"), ends);
}

fn tool_that_continues_on_doubt() -> Tool {
    Tool {
        on_doubt: OnDoubt::Continue,
        ..tool("t")
    }
}
