//! `toolq queue cancel`.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::queue_sandbox::{QUEUE, QueueSandbox};
use crate::support::waiting::wait_until;

/// Returns the turn that a worker has.
fn running_turn(sandbox: &QueueSandbox) -> String {
    let mut turn = None;
    wait_until("a worker says what it runs", || {
        turn = sandbox.status()["turns"][0].as_str().map(str::to_owned);
        turn.is_some()
    });
    turn.unwrap()
}

#[test]
fn a_turn_that_is_canceled_stops_and_says_what_may_have_been_done() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--ack-wait", "1s", "--until-empty"]);
    sandbox.wait_for_effects(1);
    let turn = running_turn(&sandbox);
    let output = sandbox
        .run(&["queue", "cancel", QUEUE, &turn])
        .assert_exit(0);
    assert!(output.stderr.contains("is canceled"), "{}", output.stderr);
    // Without the cancellation, it would wait forever: the test never lets it continue.
    let answer = sandbox.collect().assert_exit(3);
    assert!(answer.texts()[0].contains("may have"), "{}", answer.stdout);
    worker.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a"]);
    let again = sandbox
        .run(&["queue", "cancel", QUEUE, &turn])
        .assert_exit(2);
    assert!(
        again.stderr.contains("is answered already"),
        "{}",
        again.stderr
    );
}

/// A link to a server that holds a cancellation back until it is told to pass it on.
struct HoldingLink {
    url: String,
    holds: Arc<AtomicBool>,
    may_pass: Arc<AtomicBool>,
}

impl HoldingLink {
    fn open(server: &str) -> Self {
        let server = server.strip_prefix("nats://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let (holds, may_pass) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let flags = (Arc::clone(&holds), Arc::clone(&may_pass));
        // It ends with the test program.
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut server = TcpStream::connect(server).unwrap();
            let (mut back, mut to_client) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut back, &mut to_client));
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = client.read(&mut buffer) {
                if String::from_utf8_lossy(&buffer[..read]).contains("Toolq-Cancel") {
                    flags.0.store(true, Ordering::SeqCst);
                    wait_until("it may pass", || flags.1.load(Ordering::SeqCst));
                }
                server.write_all(&buffer[..read]).unwrap();
            }
        });
        Self {
            url,
            holds,
            may_pass,
        }
    }
}

#[test]
fn a_turn_that_is_answered_meanwhile_is_not_said_to_be_canceled() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--until-empty"]);
    sandbox.wait_for_effects(1);
    let turn = running_turn(&sandbox);
    let link = HoldingLink::open(sandbox.url());
    let canceling = sandbox.start(&["queue", "cancel", QUEUE, &turn, "--nats", &link.url]);
    wait_until("the cancellation is sent", || {
        link.holds.load(Ordering::SeqCst)
    });
    sandbox.go();
    worker.wait().assert_exit(0);
    link.may_pass.store(true, Ordering::SeqCst);
    let output = canceling.wait().assert_exit(2);
    assert!(
        output.stderr.contains("is answered already"),
        "{}",
        output.stderr
    );
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["did a"]);
}

#[test]
fn a_turn_that_is_canceled_before_it_begins_never_runs() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("slow_write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    let worker = sandbox.start_worker(&["--ack-wait", "1s", "--until-empty"]);
    sandbox.wait_for_effects(1);
    let next = running_turn(&sandbox).replace(".0", ".1");
    sandbox
        .run(&["queue", "cancel", QUEUE, &next])
        .assert_exit(0);
    sandbox.go();
    let texts = sandbox.collect().assert_exit(0).texts();
    assert_eq!(texts[0], "did a");
    assert!(
        texts[1].contains("Not executed: the client canceled it"),
        "{texts:?}"
    );
    worker.wait().assert_exit(0);
    assert_eq!(sandbox.effects(), ["a"]);
}

#[test]
fn a_turn_that_is_not_there_cannot_be_canceled() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    sandbox.write_turns("in.jsonl", &[("write", "a")]);
    sandbox.submit("in.jsonl");
    let output = sandbox
        .run(&["queue", "cancel", QUEUE, "0123456789ab.0"])
        .assert_exit(2);
    assert!(output.stderr.contains("has no turn"), "{}", output.stderr);
}
