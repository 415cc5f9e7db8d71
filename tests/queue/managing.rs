//! `toolq queue`.

use rustix::process::Signal;
use tempfile::TempDir;

use crate::nats_server::NatsServer;
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
    assert!(before.contains("running      0\n"), "{before}");
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

/// Returns a server with a user `all`, and a user `some` who gets no answer to requests of this subject.
fn server_that_denies(subject: &str) -> Option<(NatsServer, TempDir)> {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("nats.conf");
    let deny = format!("permissions: {{publish: {{allow: \">\", deny: \"{subject}\"}}}}");
    let users = format!("{{user: all, password: x}}\n{{user: some, password: x, {deny}}}");
    std::fs::write(&config, format!("authorization {{users: [{users}]}}")).unwrap();
    let server = NatsServer::start_with(&["--jetstream", "--config", config.to_str().unwrap()])?;
    Some((server, dir))
}

#[test]
fn a_status_that_gets_no_answer_changes_no_setting() {
    let Some((server, _dir)) = server_that_denies("$JS.API.CONSUMER.INFO.>") else {
        return;
    };
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    let login = |user: &str| server.url.replace("nats://", &format!("nats://{user}:x@"));
    let (all, some) = (login("all"), login("some"));
    let ack_wait = ["--nats", &all, "--ack-wait"];
    let worker = sandbox.start_worker(&[&ack_wait[..], &["10m"]].concat());
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox
        .run(&["queue", "submit", QUEUE, "in.jsonl", "--nats", &all])
        .assert_exit(0);
    sandbox.wait_for_effects(1);
    let unanswered = sandbox.run(&["queue", "status", QUEUE, "--nats", &some]);
    let unanswered = unanswered.assert_exit(4);
    let why = "the consumer of the queue jobs can't be opened";
    assert!(unanswered.stderr.contains(why), "{}", unanswered.stderr);
    let arguments = [&["queue", "work", QUEUE], &ack_wait[..], &["3s"]].concat();
    let refused = sandbox.run(&arguments).assert_exit(2);
    let kept = "can't be shorter than the 10m of the queue";
    assert!(refused.stderr.contains(kept), "{}", refused.stderr);
    worker.end(Signal::TERM);
}

#[test]
fn a_worker_that_starts_beside_another_keeps_the_lease_of_the_other() {
    for _ in 0..8 {
        let Some(sandbox) = QueueSandbox::new() else {
            return;
        };
        let workers = [
            sandbox.start_worker(&["--ack-wait", "10m"]),
            sandbox.start_worker(&[]),
        ];
        sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("slow_write", "b")]);
        sandbox.submit("in.jsonl");
        // Each has a turn then.
        sandbox.wait_for_effects(2);
        let refused = sandbox.run(&["queue", "work", QUEUE, "--ack-wait", "3s"]);
        let refused = refused.assert_exit(2);
        let kept = "can't be shorter than the 10m of the queue";
        assert!(refused.stderr.contains(kept), "{}", refused.stderr);
        sandbox.go();
        for worker in workers {
            worker.end(Signal::TERM);
        }
    }
}

#[test]
fn the_status_of_a_queue_without_workers_creates_nothing() {
    let Some((server, _dir)) = server_that_denies("$JS.API.CONSUMER.CREATE.>") else {
        return;
    };
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    let url = server.url.replace("nats://", "nats://some:x@");
    sandbox
        .run(&["queue", "submit", QUEUE, "in.jsonl", "--nats", &url])
        .assert_exit(0);
    let status = sandbox.run(&["queue", "status", QUEUE, "--nats", &url]);
    let status = status.assert_exit(0).stdout;
    assert!(
        status.contains("waiting      2\nrunning      0\n"),
        "{status}"
    );
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

#[test]
fn a_collect_of_a_purged_queue_ends_and_the_next_one_begins_anew() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--until-empty"]);
    let collector = sandbox.start(&["queue", "collect", QUEUE]);
    worker.wait().assert_exit(0);
    sandbox
        .run(&["queue", "purge", QUEUE, "--force"])
        .assert_exit(0);
    sandbox.write_turns("next.jsonl", &[("write", "c")]);
    sandbox.submit("next.jsonl");
    let output = collector.wait().assert_exit(4);
    assert!(
        output.stderr.contains("the queue was purged"),
        "{}",
        output.stderr
    );
    let worker = sandbox.start_worker(&["--until-empty"]);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["wrote c"]);
    worker.wait().assert_exit(0);
}

/// The library of the connection ignores them there.
#[test]
fn a_user_and_a_password_or_a_token_may_be_part_of_the_url() {
    let logins = [
        (vec!["--user", "u", "--pass", "p@ss:w"], "u:p%40ss%3Aw"),
        (vec!["--auth", "t0ken"], "t0ken"),
    ];
    for (flags, login) in logins {
        let flags = [&["--jetstream"], &*flags].concat();
        let Some(server) = NatsServer::start_with(&flags) else {
            return;
        };
        let Some(sandbox) = QueueSandbox::new() else {
            return;
        };
        sandbox.write_turns("in.jsonl", &[("write", "a")]);
        let url = server.url.replace("nats://", &format!("nats://{login}@"));
        sandbox
            .run(&["queue", "submit", QUEUE, "in.jsonl", "--nats", &url])
            .assert_exit(0);
        let wrong = server.url.replace("nats://", "nats://u:wrong@");
        let refused = sandbox
            .run(&["queue", "submit", QUEUE, "in.jsonl", "--nats", &wrong])
            .assert_exit(4);
        assert!(refused.stderr.contains("log in with"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("wrong@"), "{}", refused.stderr);
    }
}

#[test]
fn certificates_are_not_ignored() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    let submit = ["queue", "submit", QUEUE, "in.jsonl", "--tls-ca"];
    let missing = sandbox
        .run(&[&submit[..], &["nosuch.pem"]].concat())
        .assert_exit(2);
    assert!(
        missing.stderr.contains("nosuch.pem can't be read"),
        "{}",
        missing.stderr
    );
    // This server has no TLS.
    let ca = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    sandbox.write("ca.pem", ca);
    sandbox
        .run(&[&submit[..], &["ca.pem"]].concat())
        .assert_exit(4);
}

#[test]
fn several_copies_need_several_servers() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    let refused = sandbox.run(&["queue", "submit", QUEUE, "in.jsonl", "--replicas", "3"]);
    let refused = refused.assert_exit(4);
    assert!(
        refused.stderr.contains("servers in a cluster"),
        "{}",
        refused.stderr
    );
}
