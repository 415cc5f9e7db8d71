//! What is larger than a message, and how many messages there are.

use serde_json::{Value, json};

use crate::queue_sandbox::{QUEUE, QueueSandbox};

/// `print_file` prints a file of any size that toolq reads whole.
const TOOLS: &str = r"
version: 1
tools:
  print_file:
    input_schema: {type: object}
    effect: read
    max_output: 8MiB
    command: [cat, large]
  copy:
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    effect: write
    command: {argv: [sh, -c, 'wc -c > size; echo copied'], stdin: input}
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
";
const LARGE_BYTES: usize = 5 << 20;

/// Writes an input with one turn of these calls.
fn write_turn(sandbox: &QueueSandbox, name: &str, calls: &[(&str, Value)]) {
    let blocks = calls.iter().enumerate().map(|(number, (tool, input))| {
        json!({"type": "tool_use", "id": format!("{name}_{number}"), "name": tool, "input": input})
    });
    let content: Vec<Value> = blocks.collect();
    let message = json!({"id": name, "type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"});
    sandbox.write(name, &format!("{message}\n"));
}

fn message_count(sandbox: &QueueSandbox) -> u64 {
    let status = sandbox.run(&["queue", "status", QUEUE, "--format", "json"]);
    let status: Value = serde_json::from_str(&status.assert_exit(0).stdout).unwrap();
    status["messages"].as_u64().unwrap()
}

fn work(sandbox: &QueueSandbox) {
    let worker = sandbox.start_worker(&["--until-empty"]);
    worker.wait().assert_exit(0);
}

#[test]
fn a_result_of_five_mebibytes_arrives() {
    let Some(sandbox) = QueueSandbox::with_tools(TOOLS) else {
        return;
    };
    let text = "0123456789abcde\n".repeat(LARGE_BYTES / 16);
    sandbox.write("large", &text);
    write_turn(&sandbox, "in", &[("print_file", json!({}))]);
    sandbox.submit("in");
    work(&sandbox);
    let texts = sandbox.collect().assert_exit(0).texts();
    assert_eq!(texts[0].trim_end(), text.trim_end());
    let status = sandbox
        .run(&["queue", "status", QUEUE, "--format", "json"])
        .assert_exit(0);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert!(
        status["object_bytes"].as_u64().unwrap() > LARGE_BYTES as u64,
        "{status}"
    );
    // It is gone with the queue, of which nothing is left to open.
    let purge = sandbox.run(&["queue", "purge", QUEUE]).assert_exit(0);
    let bytes: u64 = purge
        .stderr
        .split_whitespace()
        .rev()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(bytes > LARGE_BYTES as u64, "{}", purge.stderr);
    sandbox.submit("in");
    assert_eq!(message_count(&sandbox), 2);
}

#[test]
fn a_call_with_a_large_input_runs() {
    let Some(sandbox) = QueueSandbox::with_tools(TOOLS) else {
        return;
    };
    let text = "x".repeat(LARGE_BYTES);
    write_turn(&sandbox, "in", &[("copy", json!({"text": text}))]);
    sandbox.submit("in");
    let again = sandbox.submit("in");
    assert!(
        again.stderr.contains("the queue had 1 turn already"),
        "{}",
        again.stderr
    );
    work(&sandbox);
    assert_eq!(sandbox.collect().assert_exit(0).texts(), ["copied"]);
    let size = std::fs::read_to_string(sandbox.path("size")).unwrap();
    assert!(
        size.trim().parse::<usize>().unwrap() > LARGE_BYTES,
        "{size}"
    );
}

#[test]
fn what_a_lost_worker_stored_in_files_is_known_to_the_next_one() {
    use rustix::process::Signal;
    let tools = TOOLS.replace("tools:\n", "tools:\n  wait: {input_schema: {type: object}, effect: write, command: [sh, -c, 'echo w >> effects; until [ -e go ]; do sleep 0.01; done']}\n");
    let Some(sandbox) = QueueSandbox::with_tools(&tools) else {
        return;
    };
    let text = "0123456789abcde\n".repeat(LARGE_BYTES / 16);
    sandbox.write("large", &text);
    write_turn(
        &sandbox,
        "in",
        &[("print_file", json!({})), ("wait", json!({}))],
    );
    sandbox.submit("in");
    let first = sandbox.start_worker(&["--ack-wait", "1s"]);
    sandbox.wait_for_effects(1);
    first.end(Signal::KILL);
    // The result comes from the log, not from the program.
    sandbox.write("large", "changed");
    sandbox.go();
    work(&sandbox);
    let answer: Value = serde_json::from_str(&sandbox.collect().assert_exit(3).stdout).unwrap();
    let printed = answer["content"][0]["content"].as_str().unwrap();
    assert_eq!(printed.trim_end(), text.trim_end());
}

#[test]
fn the_starts_of_a_batch_are_one_message_and_so_are_its_results() {
    let Some(sandbox) = QueueSandbox::with_tools(TOOLS) else {
        return;
    };
    let calls = [(); 8].map(|()| ("look", json!({})));
    write_turn(&sandbox, "in", &calls);
    sandbox.submit("in");
    let before = message_count(&sandbox);
    work(&sandbox);
    // The session, the starts of all calls, all results with the end, and the answer. Some may come together.
    let count = message_count(&sandbox) - before;
    assert!((3..=4).contains(&count), "{count}");
    assert_eq!(
        sandbox
            .collect()
            .assert_exit(0)
            .stdout
            .matches("seen")
            .count(),
        8
    );
}
