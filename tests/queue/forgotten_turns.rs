//! A server that hands out a turn and then forgets it, as some do when another server of their group is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use crate::queue_sandbox::{QUEUE, QueueSandbox};

/// Takes a turn as a worker does, and tells the server never to hand it out again.
fn make_server_forget_a_turn(url: &str) {
    let address = url.strip_prefix("nats://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let next = format!("$JS.API.CONSUMER.MSG.NEXT.toolq-{QUEUE}.workers");
    write!(
        socket,
        "CONNECT {{\"verbose\":false}}\r\nSUB taken 1\r\nPUB {next} taken 1\r\n1\r\n"
    )
    .unwrap();
    let message = lines.find(|line| {
        line.as_ref().unwrap().starts_with("MSG ") || line.as_ref().unwrap().starts_with("HMSG ")
    });
    let message = message.unwrap().unwrap();
    let reply = message
        .split(' ')
        .find(|word| word.starts_with("$JS.ACK."))
        .unwrap();
    write!(
        socket,
        "PUB {reply} confirmed 5\r\n+TERM\r\nSUB confirmed 2\r\nPING\r\n"
    )
    .unwrap();
    assert!(lines.any(|line| line.unwrap() == "PONG"));
}

#[test]
fn a_turn_that_the_server_forgets_is_asked_for_again_by_collect() {
    let Some(sandbox) = QueueSandbox::new() else {
        return;
    };
    // Workers make what turns are pulled from.
    let worker = sandbox.start_worker(&["--ack-wait", "1s", "--until-empty"]);
    worker.wait().assert_exit(0);
    sandbox.write_turns("in.jsonl", &[("write", "a"), ("write", "b")]);
    sandbox.submit("in.jsonl");
    make_server_forget_a_turn(sandbox.url());
    let worker = sandbox.start_worker(&[]);
    let texts = sandbox.collect().assert_exit(0).texts();
    assert_eq!(texts, ["wrote a", "wrote b"]);
    worker.end(rustix::process::Signal::TERM);
    assert_eq!(sandbox.effects(), ["b", "a"]);
}
