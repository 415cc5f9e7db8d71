//! Turns over which workers are lost again and again.

use rustix::process::Signal;

use crate::queue_sandbox::{QUEUE, QueueSandbox};

#[test]
fn a_turn_that_workers_are_lost_over_is_dead_and_says_why() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_read", "a")]);
    sandbox.submit("in.jsonl");
    let flags = ["--ack-wait", "1s", "--max-deliveries", "2"];
    for lost in 1..=2 {
        let worker = sandbox.start_worker(&flags);
        sandbox.wait_for_effects(lost);
        worker.end(Signal::KILL);
    }
    sandbox.write_turns("more.jsonl", &[("write", "b")]);
    sandbox.submit("more.jsonl");
    let third = sandbox.start_worker(&[&flags[..], &["--until-empty"]].concat());
    let texts = sandbox.collect().assert_exit(0).texts();
    assert!(
        texts[0].contains("too many workers were lost over this turn"),
        "{texts:?}"
    );
    assert_eq!(texts[1], "wrote b");
    let third = third.wait().assert_exit(0);
    let reason = "isn't run anymore: 2 workers were lost over it";
    assert!(third.stderr.contains(reason), "{}", third.stderr);
    assert_eq!(sandbox.effects(), ["a", "a", "b"]);
    let dead = sandbox.run(&["queue", "dead", QUEUE]).assert_exit(0).stdout;
    assert!(
        dead.contains("0 of in.jsonl: 2 workers were lost over it"),
        "{dead}"
    );
    assert_eq!(dead.lines().count(), 1, "{dead}");
    // Its name leads to what is known of it.
    let turn = dead.split_whitespace().next().unwrap();
    let log = sandbox.run(&["queue", "log", QUEUE, turn]).assert_exit(0);
    assert_eq!(log.stdout.matches(r#""type":"tool_start""#).count(), 2);
    let status = sandbox.run(&["queue", "status", QUEUE]).assert_exit(0);
    assert!(
        status.stdout.contains("dead         1\n"),
        "{}",
        status.stdout
    );
}

#[test]
fn what_was_in_doubt_of_a_dead_turn_is_still_said() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let flags = ["--ack-wait", "1s", "--max-deliveries", "1"];
    let worker = sandbox.start_worker(&flags);
    sandbox.wait_for_effects(1);
    worker.end(Signal::KILL);
    let second = sandbox.start_worker(&[&flags[..], &["--until-empty"]].concat());
    let output = sandbox.collect().assert_exit(3);
    assert!(output.texts()[0].contains("may have"), "{}", output.stdout);
    second.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a"]);
}

#[test]
fn a_turn_that_nobody_has_begun_has_no_log() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    for turn in ["0123456789ab.0", "x", ""] {
        let output = sandbox.run(&["queue", "log", QUEUE, turn]).assert_exit(2);
        assert!(
            output.stderr.contains("no worker has begun"),
            "{}",
            output.stderr
        );
    }
}
