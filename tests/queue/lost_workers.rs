//! What becomes of a turn whose worker is killed, or stopped for longer than its lease.

use rustix::process::Signal;

use crate::queue_sandbox::QueueSandbox;

/// A worker that is gone for this time loses its turn.
const SHORT_LEASE: [&str; 2] = ["--ack-wait", "1s"];

#[test]
fn a_write_whose_worker_was_killed_is_in_doubt_and_not_repeated() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let first = sandbox.start_worker(&SHORT_LEASE);
    sandbox.wait_for_effects(1);
    first.end(Signal::KILL);
    sandbox.go();
    let second = sandbox.start_worker(&["--until-empty"]);
    let output = sandbox.collect();
    second.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a", "b"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let texts = output.texts();
    assert!(texts[0].contains("may have"), "{texts:?}");
    assert_eq!(texts[1], "wrote b");
}

#[test]
fn a_read_whose_worker_was_killed_runs_again() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_read", "a")]);
    sandbox.submit("in.jsonl");
    let first = sandbox.start_worker(&SHORT_LEASE);
    sandbox.wait_for_effects(1);
    first.end(Signal::KILL);
    sandbox.go();
    let second = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
    second.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a", "a"]);
}

#[test]
fn a_worker_that_was_stopped_for_too_long_finds_its_turn_taken_over() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let first = sandbox.start_worker(&SHORT_LEASE);
    sandbox.wait_for_effects(1);
    first.signal(Signal::STOP);
    // The second one gets the turn once the lease of the first is over, and answers it in doubt.
    let second = sandbox.start_worker(&["--until-empty"]);
    let output = sandbox.collect().assert_exit(3);
    second.wait().assert_exit(0);
    assert!(output.texts()[0].contains("may have"), "{}", output.stdout);
    // The first one wakes up with a call that ends, and its result isn't taken.
    sandbox.go();
    first.signal(Signal::CONT);
    sandbox.write_turns("more.jsonl", &[("write", "b")]);
    sandbox.submit("more.jsonl");
    // It continues with the next turn, so it has finished with this one.
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["wrote b"]);
    let first = first.end(Signal::TERM);
    let taken_over = "another worker has taken over this turn";
    assert!(first.stderr.contains(taken_over), "{}", first.stderr);
    assert_eq!(sandbox.effects(), ["a", "b"]);
    let all = sandbox.run(&["queue", "collect", "jobs", "--until-empty", "--from-start"]);
    assert!(all.texts()[0].contains("may have"), "{}", all.stdout);
}
