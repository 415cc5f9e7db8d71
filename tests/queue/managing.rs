//! `toolq queue`.

use crate::queue_sandbox::{QUEUE, QueueSandbox};

#[test]
fn the_status_counts_what_waits() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let before = sandbox
        .run(&["queue", "status", QUEUE])
        .assert_exit(0)
        .stdout;
    assert!(before.contains("waiting      2\n"), "{before}");
    assert!(before.contains("workers      0, 0.0 turns/s\n"), "{before}");
    sandbox
        .start_worker(&["--until-empty"])
        .wait()
        .assert_exit(0);
    let after = sandbox
        .run(&["queue", "status", QUEUE])
        .assert_exit(0)
        .stdout;
    assert!(after.contains("waiting      0\n"), "{after}");
}

#[test]
fn a_queue_with_open_turns_is_removed_only_by_force() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let refused = sandbox.run(&["queue", "purge", QUEUE]).assert_exit(2);
    assert!(
        refused
            .stderr
            .contains("turns of the queue jobs without an answer: 1"),
        "{}",
        refused.stderr
    );
    sandbox
        .run(&["queue", "purge", QUEUE, "--force"])
        .assert_exit(0);
    sandbox.run(&["queue", "status", QUEUE]).assert_exit(2);
}

#[test]
fn a_name_that_no_subject_can_have_is_refused() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let output = sandbox.run(&["queue", "status", "a.b"]).assert_exit(2);
    assert!(
        output.stderr.contains("the name of a queue must have"),
        "{}",
        output.stderr
    );
}
