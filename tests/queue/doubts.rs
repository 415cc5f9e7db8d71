//! Calls in doubt are reported, and users resolve them in the queue.

use rustix::process::Signal;

use crate::queue_sandbox::{QUEUE, QueueOutput, QueueSandbox};
use crate::support::parse_json_lines;

/// Kills a worker in the middle of a write, and answers its turn with another one, so that the write is in doubt.
fn leave_in_doubt(sandbox: &QueueSandbox) {
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--ack-wait", "1s"]);
    sandbox.wait_for_effects(1);
    worker.end(Signal::KILL);
    sandbox.go();
    work(sandbox);
    let output = sandbox.collect().assert_exit(3);
    assert!(output.texts()[0].contains("may have"), "{}", output.stdout);
}

fn work(sandbox: &QueueSandbox) {
    let worker = sandbox.start_worker(&["--until-empty"]);
    worker.wait().assert_exit(0);
}

fn resolve(sandbox: &QueueSandbox, finding: &[&str]) -> QueueOutput {
    sandbox.run(&[&["queue", "resolve", QUEUE, "toolu_0"], finding].concat())
}

fn status(sandbox: &QueueSandbox) -> String {
    let status = sandbox.run(&["queue", "status", QUEUE]).assert_exit(0);
    status.stdout
}

/// Returns the exit code with which the log of the turn in doubt ends. `status` has the turn's name.
fn last_exit_code(sandbox: &QueueSandbox, status: &str) -> u64 {
    let (_, rest) = status.split_once("toolu_0 (slow_write) of ").unwrap();
    let turn = rest.split_whitespace().next().unwrap();
    let log = sandbox.run(&["queue", "log", QUEUE, turn]).assert_exit(0);
    let end = parse_json_lines(&log.stdout).pop().unwrap();
    assert_eq!(end["type"], "session_end", "{}", log.stdout);
    end["metadata"]["exit_code"].as_u64().unwrap()
}

#[test]
fn a_call_that_was_done_gets_the_result_that_a_person_knows() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    leave_in_doubt(&sandbox);
    let before = status(&sandbox);
    assert!(before.contains("in doubt     1\n"), "{before}");
    assert!(before.contains("toolu_0 (slow_write) of "), "{before}");
    assert_eq!(last_exit_code(&sandbox, &before), 3);
    let output = resolve(&sandbox, &["--done", "--result", "receipt 4711"]).assert_exit(0);
    assert!(
        output.stderr.contains("toolu_0 has this result now"),
        "{}",
        output.stderr
    );
    work(&sandbox);
    // It isn't run again, and its turn is answered again.
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["receipt 4711"]);
    assert_eq!(sandbox.effects(), ["a"]);
    let after = status(&sandbox);
    assert!(after.contains("in doubt     0\n"), "{after}");
    assert_eq!(last_exit_code(&sandbox, &before), 0);
    // From the start, both answers are there, and the later one counts.
    let all = sandbox.run(&["queue", "collect", QUEUE, "--until-empty", "--from-start"]);
    let texts = all.assert_exit(0).texts();
    assert!(texts[0].contains("may have"), "{texts:?}");
    assert_eq!(texts[1..], ["receipt 4711"]);
}

#[test]
fn a_call_that_was_not_done_runs_once_no_lease_can_start_it() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    leave_in_doubt(&sandbox);
    let output = resolve(&sandbox, &["--not-done", "--note", "nothing arrived"]).assert_exit(0);
    assert!(
        output.stderr.contains("toolu_0 will run"),
        "{}",
        output.stderr
    );
    work(&sandbox);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
    assert_eq!(sandbox.effects(), ["a", "a"]);
}

#[test]
fn a_call_that_is_not_in_doubt_cannot_be_settled() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    work(&sandbox);
    let output = resolve(&sandbox, &["--not-done"]).assert_exit(2);
    let why = "the queue jobs has no call toolu_0 in doubt";
    assert!(output.stderr.contains(why), "{}", output.stderr);
    assert_eq!(sandbox.effects(), ["a"]);
}

#[test]
fn a_call_that_was_done_keeps_its_first_result() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    leave_in_doubt(&sandbox);
    // More than a record takes of an input.
    let long = "A".repeat(50_000);
    for _ in 0..2 {
        resolve(&sandbox, &["--done", "--result", &long]).assert_exit(0);
    }
    for other in [&["--done", "--result", "B"][..], &["--not-done"]] {
        let refused = resolve(&sandbox, other).assert_exit(2);
        let expected = "was settled already, as done with the result \"AAA";
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    work(&sandbox);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), [long]);
    assert_eq!(sandbox.effects(), ["a"]);
}

#[test]
fn settling_a_call_twice_runs_its_turn_once() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    leave_in_doubt(&sandbox);
    for _ in 0..2 {
        resolve(&sandbox, &["--not-done"]).assert_exit(0);
    }
    work(&sandbox);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
    assert_eq!(sandbox.effects(), ["a", "a"]);
}
