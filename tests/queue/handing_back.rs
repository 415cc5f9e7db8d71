//! When a worker hands a turn back to the queue.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::queue_sandbox::{QUEUE, QueueSandbox};
use crate::support::waiting::wait_until;

#[test]
fn a_worker_with_other_tools_hands_the_turn_back_and_says_so() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let other = "version: 1\ntools:\n  write: {input_schema: {type: object}, effect: write, command: [touch, effects]}\n";
    sandbox.write("other.yaml", other);
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let mut worker = sandbox.command(&["-c", "other.yaml", "queue", "work", "jobs"]);
    let log = std::fs::File::create(sandbox.path("worker.log")).unwrap();
    let mut worker = worker.stderr(log).spawn().unwrap();
    let said = || std::fs::read_to_string(sandbox.path("worker.log")).unwrap();
    wait_until("it is said", || {
        said().contains("submitted with other tools than those of other.yaml are handed back")
    });
    assert!(sandbox.effects().is_empty());
    // A worker with the right tools gets it.
    let right = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["wrote a"]);
    right.wait().assert_exit(0);
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(
        said().matches("handed back").count(),
        1,
        "once for all turns"
    );
}

/// The server gives out what was handed back before what came later.
#[test]
fn turns_for_other_tools_do_not_hold_up_a_worker() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let other = "version: 1\ntools:\n  write: {input_schema: {type: object}, effect: write, command: [touch, effects]}\n";
    sandbox.write("other.yaml", other);
    let turns: Vec<String> = (0..40).map(|number| format!("x{number}")).collect();
    let turns: Vec<(&str, &str)> = turns.iter().map(|text| ("write", &**text)).collect();
    sandbox.write_turns("foreign.jsonl", &turns);
    let submitted = sandbox.run(&[
        "-c",
        "other.yaml",
        "queue",
        "submit",
        QUEUE,
        "foreign.jsonl",
    ]);
    submitted.assert_exit(0);
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&[]);
    sandbox.wait_for_effects(2);
    worker.end(Signal::TERM);
    assert_eq!(sandbox.effects(), ["a", "b"]);
}

#[test]
fn an_idle_worker_ends_although_its_server_is_gone() {
    let Some(mut sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&[]);
    sandbox.wait_for_effects(1);
    let collector = sandbox.start_into("collected", &["queue", "collect", QUEUE]);
    let collected = sandbox.path("collected");
    wait_until("the answer is collected", || {
        std::fs::read_to_string(&collected).is_ok_and(|lines| !lines.is_empty())
    });
    sandbox.stop_server();
    for process in [worker, collector] {
        let began = Instant::now();
        let output = process.end(Signal::TERM);
        assert_eq!(output.code, Some(143), "{}", output.stderr);
        // They would wait for a minute, or forever, until a server is back.
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn workers_that_run_keep_their_lease() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&[]);
    sandbox.wait_for_effects(1);
    let refused = sandbox
        .run(&["queue", "work", QUEUE, "--ack-wait", "3s"])
        .assert_exit(2);
    assert!(
        refused.stderr.contains("while workers run (1)"),
        "{}",
        refused.stderr
    );
    let refused = sandbox
        .run(&["queue", "work", QUEUE, "--ack-wait", "10ms"])
        .assert_exit(2);
    assert!(
        refused.stderr.contains("must be 1s or longer"),
        "{}",
        refused.stderr
    );
    sandbox.go();
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
    worker.end(Signal::TERM);
}

#[test]
fn a_turn_for_which_a_worker_has_no_disk_is_left_to_others() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let no_disk = "trap '' XFSZ; ulimit -f 0";
    let unlucky = sandbox.start_worker_after(no_disk, "--max-deliveries 1");
    wait_until("the turn was handed back", || {
        sandbox.status()["redelivered"].as_u64() > Some(0)
    });
    let unlucky = unlucky.end(Signal::TERM);
    assert!(
        unlucky.stderr.contains("is handed back"),
        "{}",
        unlucky.stderr
    );
    let other = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["wrote a"]);
    other.wait().assert_exit(0);
    assert_eq!(sandbox.status()["dead"], 0);
}

#[test]
fn a_worker_under_nohup_outlives_its_terminal() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker_after("trap '' HUP", "");
    sandbox.wait_for_effects(1);
    worker.signal(Signal::HUP);
    sandbox.go();
    sandbox.wait_for_effects(2);
    let output = worker.end(Signal::TERM);
    assert_eq!(output.code, Some(143), "{}", output.stderr);
}

#[test]
fn a_worker_that_is_asked_to_stop_finishes_its_turn() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&[]);
    sandbox.wait_for_effects(1);
    worker.signal(Signal::TERM);
    sandbox.go();
    let output = worker.wait();
    assert_eq!(output.code, Some(143), "{}", output.stderr);
    // It took no other turn.
    assert_eq!(sandbox.effects(), ["a"]);
    let other = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(
        sandbox.collect().assert_exit(0).texts(),
        ["did a", "wrote b"]
    );
    other.wait().assert_exit(0);
}

#[test]
fn after_the_drain_time_the_turn_is_stopped_and_another_worker_goes_on() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_read", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--drain", "0s"]);
    sandbox.wait_for_effects(1);
    let output = worker.end(Signal::TERM);
    assert!(
        output.stderr.contains("is handed back: it was stopped"),
        "{}",
        output.stderr
    );
    sandbox.go();
    let other = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
    other.wait().assert_exit(0);
}
