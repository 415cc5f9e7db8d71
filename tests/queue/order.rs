//! `collect` writes answers in the order in which their turns were submitted, each as soon as it may.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use crate::queue_sandbox::{QUEUE, QueueSandbox};
use crate::support::waiting::wait_until;

#[test]
fn an_answer_waits_for_those_of_earlier_turns() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns(
        "in.jsonl",
        &[
            ("slow_write", "first"),
            ("write", "second"),
            ("write", "third"),
        ],
    );
    sandbox.submit("in.jsonl");
    let workers = [sandbox.start_worker(&[]), sandbox.start_worker(&[])];
    // The others are done while the first still runs.
    sandbox.wait_for_effects(3);
    let status = || sandbox.run(&["queue", "status", QUEUE]).stdout;
    wait_until("only the first is left", || {
        let status = status();
        status.contains("waiting      0") && status.contains("running      1")
    });
    sandbox.go();
    let output = sandbox.collect().assert_exit(0);
    assert_eq!(output.texts(), ["did first", "wrote second", "wrote third"]);
    for worker in workers {
        worker.end(Signal::TERM);
    }
    assert_eq!(sandbox.effects().len(), 3);
}

#[test]
fn answers_are_written_as_soon_as_they_are_there() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("slow_write", "b")]);
    sandbox.submit("in.jsonl");
    let mut command = sandbox.command(&["queue", "collect", QUEUE]);
    let mut collect = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collect.stdout.take().unwrap()).lines();
    let worker = sandbox.start_worker(&[]);
    // The second call waits for `go`, so this line can't wait for its answer.
    assert!(lines.next().unwrap().unwrap().contains("wrote a"));
    sandbox.go();
    assert!(lines.next().unwrap().unwrap().contains("did b"));
    worker.end(Signal::TERM);
    collect.kill().unwrap();
    collect.wait().unwrap();
}

#[test]
fn the_next_collect_goes_on_where_the_last_one_ended() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    for name in ["a", "b"] {
        sandbox.write_turns(name, &[("write", name)]);
        sandbox.submit(name);
        sandbox
            .start_worker(&["--until-empty"])
            .wait()
            .assert_exit(0);
        assert_eq!(
            sandbox.collect().assert_exit(0).texts(),
            [format!("wrote {name}")]
        );
    }
    assert_eq!(sandbox.collect().assert_exit(0).stdout, "");
    let all = sandbox.run(&["queue", "collect", QUEUE, "--until-empty", "--from-start"]);
    assert_eq!(all.assert_exit(0).texts(), ["wrote a", "wrote b"]);
}

#[test]
fn a_queue_that_nobody_made_has_no_answers() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let output = sandbox.run(&["queue", "collect", "other"]).assert_exit(2);
    assert!(
        output.stderr.contains("there is no queue other"),
        "{}",
        output.stderr
    );
}
