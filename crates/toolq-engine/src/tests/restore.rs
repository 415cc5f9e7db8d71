//! Calls that an earlier run began or ended.

use crate::run_budget::Budgets;
use crate::tests::remote::{Witness, bad, calls, engine, good, run, tool, witness};
use toolq_core::types::{
    Begun, Checked, Content, Ending, OnFailure, Outcome, Past, Recalled, Tool,
};

fn answered(checked: &mut Checked, status: &'static str) {
    checked.past = Past::Answered(Recalled {
        status,
        is_error: status != "ok",
        content: Content::Text("from the log".to_owned()),
        agent: None,
    });
}

fn begun(attempts: u32) -> Begun {
    Begun {
        attempts,
        key: Some("the key of then".to_owned()),
        doubtful: false,
    }
}

/// FAULTS 117: they are answered as they arrive, take no slot, and are in nobody's way; batches keep their numbers.
#[test]
fn a_recalled_call_is_no_barrier() {
    let tool = tool("t");
    let mut calls = calls("a B c d", &tool);
    answered(&mut calls[0], "ok");
    answered(&mut calls[1], "failed");
    let witness = witness(&[&tool], 1, calls, "c d");
    insta::assert_snapshot!(witness.lines().join("\n"), @r"
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

/// FAULTS 118: in doubt at once, and nothing of it starts.
#[test]
fn what_is_in_doubt_does_not_start() {
    let tool = tool("t");
    let mut calls = calls("A b", &tool);
    calls[0].past = Past::InDoubt(begun(2));
    let witness = witness(&[&tool], 8, calls, "b");
    assert_eq!(witness.of("finished"), ["A in_doubt 2", "b ok 1"]);
    assert_eq!(witness.of("delivered"), ["A", "b"]);
}

#[test]
fn attempts_are_counted_over_runs_and_retried_by_run() {
    let mut tool = tool("t");
    tool.retry.times = 1;
    tool.retry.on = vec![toolq_core::types::RetryOn::Exit(1)];
    let mut calls = calls("a", &tool);
    calls[0].past = Past::Started(begun(3));
    let witness = witness(&[&tool], 8, calls, "!a !a");
    assert_eq!(witness.of("started"), ["a 5"]);
    assert_eq!(witness.of("batch"), ["0 [a] + started a 4"]);
    assert_eq!(witness.of("finished"), ["a failed 5"]);
}

/// A failure of an earlier run stops what it stopped then.
#[test]
fn a_recalled_failure_stops_what_comes_later() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let mut calls = calls("a b c", &tool);
    answered(&mut calls[1], "failed");
    let witness = witness(&[&tool], 8, calls, "a");
    let ends = ["b failed 0", "c not_executed 0", "a ok 1"];
    assert_eq!(witness.of("finished"), ends);
}

/// The siblings of a failed call don't run, wherever they stand in the batch; other batches do.
#[test]
fn a_recalled_failure_cancels_its_siblings() {
    let tool = Tool {
        on_failure: OnFailure::CancelSiblings,
        ..tool("t")
    };
    for failed in 0..3 {
        let mut calls = calls("a b c D", &tool);
        answered(&mut calls[failed], "failed");
        let ids: Vec<_> = calls
            .iter()
            .map(|checked| checked.call.id.clone())
            .collect();
        let witness = witness(&[&tool], 8, calls, "D");
        let mut ends = witness.of("finished");
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
fn recalled_failures_pause_a_tool() {
    let tool = Tool {
        pause_after_failures: Some(2),
        ..tool("t")
    };
    let mut calls = calls("A B C", &tool);
    answered(&mut calls[0], "failed");
    answered(&mut calls[1], "timeout");
    let witness = witness(&[&tool], 8, calls, "");
    let ends = ["A failed 0", "B timeout 0", "C paused 0"];
    assert_eq!(witness.of("finished"), ends);
}

#[test]
fn recalled_calls_use_no_budget() {
    let tool = tool("t");
    let mut calls = calls("A B C", &tool);
    answered(&mut calls[0], "ok");
    calls[1].past = Past::InDoubt(begun(1));
    let budgets = Budgets {
        calls: Some(1),
        ..Budgets::default()
    };
    let mut witness = Witness::default();
    let mut engine = crate::tests::remote::budgeted(&[&tool], 8, budgets);
    run(&mut engine, calls, "C", &mut witness);
    let ends = ["A ok 0", "B in_doubt 1", "C ok 1"];
    assert_eq!(witness.of("finished"), ends);
}

fn exit(code: i32) -> Outcome {
    let mut outcome = if code == 0 { good() } else { bad() };
    if let Outcome::Failed { ending, .. } = &mut outcome {
        *ending = Ending::Exit(code);
    }
    outcome
}

/// The probe answers in the call's place: done is its result, not done starts it, anything else is a doubt.
#[test]
fn a_probe_is_asked_before_anything_starts() {
    let tool = tool("t");
    for (code, lines) in [
        (0, "probing A|probed A done|finished A ok 1|delivered A"),
        (
            2,
            "probing A|probed A unknown|finished A in_doubt 1|delivered A",
        ),
    ] {
        let mut calls = calls("A", &tool);
        calls[0].past = Past::Unsure(begun(1));
        let mut witness = Witness::default();
        let (mut engine, mut attempts) = engine(&[&tool], 8);
        let mut delivery = witness.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let answer = async {
                let (_, end) = attempts.recv().await.unwrap();
                end.send(exit(code)).unwrap();
            };
            tokio::join!(engine.turn(0, calls, &mut witness, &mut delivery), answer);
        });
        let told = witness.lines();
        let told: Vec<&str> = told[2..told.len() - 1]
            .iter()
            .map(|line| line.rsplit(" + ").next().unwrap())
            .collect();
        assert_eq!(told.join("|"), lines);
    }
    let mut calls = calls("A", &tool);
    calls[0].past = Past::Unsure(begun(1));
    let witness = witness(&[&tool], 8, calls, "!A A");
    assert_eq!(witness.of("probed"), ["A not_done"]);
    assert_eq!(witness.of("started"), ["A 2"]);
    assert_eq!(witness.of("finished"), ["A ok 2"]);
}

/// Who was not asked is not just skipped: the model must not take it for a call that did nothing.
#[test]
fn what_could_not_be_asked_is_in_doubt() {
    let tool = Tool {
        on_failure: OnFailure::Stop,
        ..tool("t")
    };
    let mut calls = calls("A B", &tool);
    answered(&mut calls[0], "failed");
    calls[1].past = Past::Unsure(begun(1));
    let witness = witness(&[&tool], 8, calls, "");
    assert_eq!(witness.of("finished"), ["A failed 0", "B in_doubt 1"]);
}
