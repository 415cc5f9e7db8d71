//! Which calls are the same: whatever form the input comes in, and whichever run asks.

use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use crate::support::resume_sandbox::{ResumeRunOutput, ResumeSandbox, shell_tools};

const RANDOM_ID: &str = "toolu_01A09q90qw90lq917835lq9x";

/// Returns tools that pay, and a tool that only looks. Each adds a line to `effects`. A payment waits while there is a file `hold`.
fn bank() -> String {
    shell_tools(&[
        (
            "look",
            "effect: read",
            r#"echo "look $1" >> effects; wc -l < effects"#,
        ),
        (
            "pay",
            "effect: write",
            r#"echo "pay $1" >> effects; while test -e hold; do sleep 0.01; done; echo "paid $1""#,
        ),
    ])
}

fn message(calls: &[(&str, &str, u32)]) -> String {
    let block = |(id, name, n): &(&str, &str, u32)| json!({"type": "tool_use", "id": id, "name": name, "input": {"n": n}});
    let content: Vec<Value> = calls.iter().map(block).collect();
    json!({"role": "assistant", "content": content}).to_string()
}

fn sandbox() -> ResumeSandbox {
    ResumeSandbox::new(&bank(), "")
}

/// Runs an input in the memory that all runs without `--log` share.
fn run_input(sandbox: &ResumeSandbox, input: &str) -> ResumeRunOutput {
    sandbox.write_file("input.json", input);
    sandbox.run_toolq(&["run", "input.json"])
}

/// Some vendors make ids of the tool's name and a number, which come again in every conversation.
#[test]
fn the_name_of_a_tool_is_nothing_random() {
    let tools = shell_tools(&[(
        "createPaymentOrder",
        "effect: write",
        r#"echo "pay $1" >> effects; echo "paid $1""#,
    )]);
    let sandbox = ResumeSandbox::new(&tools, "");
    let ask = |words: &str, n: u32| {
        let call = message(&[("functions.createPaymentOrder:0", "createPaymentOrder", n)]);
        let user = json!({"role": "user", "content": words});
        run_input(&sandbox, &format!("[{user},{call}]")).assert_exit(0)
    };
    for (words, n) in [
        ("pay", 1),
        ("pay more", 2),
        ("next month: pay", 1),
        ("pay", 1),
    ] {
        assert_eq!(ask(words, n).result_texts(), [format!("paid {n}")]);
    }
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2", "pay 1"]);
}

/// The directory in which calls run has one name, too.
#[test]
fn the_root_may_be_named_in_any_way() {
    let sandbox = sandbox();
    let tools = sandbox.read_file("tools.yaml");
    let name = sandbox
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for root in [".", "./", &format!("../{name}")] {
        sandbox.write_file("tools.yaml", &format!("root: {root}\n{tools}"));
        let run = run_input(&sandbox, &message(&[("p1", "pay", 7)])).assert_exit(0);
        assert_eq!(run.result_texts(), ["paid 7"]);
    }
    assert_eq!(sandbox.effects(), ["pay 7"]);
}

/// White space, the order of keys, and escapes make no difference, nor what stands around the message.
#[test]
fn the_form_of_the_input_makes_no_difference() {
    let sandbox = sandbox();
    let input = message(&[("p1", "pay", 7)]);
    let first = run_input(&sandbox, &input).assert_exit(0);
    for form in [
        format!("{input}\n"),
        r#"{ "content": [ {"input": {"n": 7}, "name": "p\u0061y", "id": "p1", "type": "tool_use"} ], "role": "assistant" }"#.to_owned(),
        format!(r#"{{"messages": [{{"role": "user", "content": "Pay."}}, {input}]}}"#),
        format!("{}\n{input}", json!({"role": "user", "content": "Pay."})),
        input.replacen('{', r#"{"id":"msg_1","type":"message","stop_reason":"tool_use","#, 1),
    ] {
        let again = run_input(&sandbox, &form).assert_exit(0);
        assert!(again.stdout.contains("paid 7"), "{form}: {}", again.stdout);
        assert!(again.stderr.contains("1 call from memory: pay p1"), "{}", again.stderr);
    }
    assert_eq!(first.result_texts(), ["paid 7"]);
    assert_eq!(sandbox.effects(), ["pay 7"]);
}

/// A named log is a memory of its own, and moves with its file.
#[test]
fn a_named_log_is_a_memory() {
    let sandbox = sandbox();
    sandbox.write_file("input.json", &message(&[("p1", "pay", 7)]));
    for log in ["a.jsonl", "a.jsonl", "b.jsonl"] {
        sandbox
            .run_toolq(&["run", "--log", log, "input.json"])
            .assert_exit(0);
    }
    fs::rename(
        sandbox.path().join("a.jsonl"),
        sandbox.path().join("c.jsonl"),
    )
    .unwrap();
    sandbox
        .run_toolq(&["run", "--log", "c.jsonl", "input.json"])
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["pay 7", "pay 7"]);
}

#[test]
fn another_message_is_another_call() {
    let sandbox = sandbox();
    for id in [
        "chatcmpl-9fQ2mXk7LpT4vWc1RbZ8",
        "chatcmpl-J6sYd3HnE0uGa5BqVtK2",
    ] {
        let call = json!({"id": "functions.pay:0", "type": "function", "function": {"name": "pay", "arguments": "{\"n\":7}"}});
        let chat = json!({"id": id, "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}]});
        for _ in 0..2 {
            run_input(&sandbox, &chat.to_string()).assert_exit(0);
        }
    }
    assert_eq!(sandbox.effects(), ["pay 7", "pay 7"]);
}

/// What people said and how often a tool was called before tells conversations apart, in whatever dialect they are.
#[test]
fn what_stands_before_a_call_tells_conversations_apart() {
    let sandbox = sandbox();
    let anthropic = |said: &str, calls: usize| {
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "p1", "name": "pay", "input": {"n": 7}}]});
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "p1", "content": "paid"}]});
        let mut messages =
            vec![json!({"role": "user", "content": [{"type": "text", "text": said}]})];
        for _ in 1..calls {
            messages.extend([call.clone(), result.clone()]);
        }
        messages.push(call);
        json!({ "messages": messages })
    };
    let chat = |said: &str| {
        let call = json!({"id": "p1", "type": "function", "function": {"name": "pay", "arguments": "{\"n\":7}"}});
        json!({"messages": [{"role": "user", "content": said}, {"role": "assistant", "tool_calls": [call]}]})
    };
    for (input, paid) in [
        (anthropic("Pay the rent.", 1), 1),
        (chat("Pay the rent."), 1),
        (chat("Pay the taxes."), 2),
        (anthropic("Pay the taxes.", 1), 2),
        (anthropic("Pay the rent.", 2), 3),
        (anthropic("Pay the rent.", 2), 3),
        (anthropic("Pay the rent.", 1), 3),
    ] {
        run_input(&sandbox, &input.to_string()).assert_exit(0);
        assert_eq!(sandbox.effects().len(), paid, "{input}");
    }
}

/// Calls that nothing tells apart are counted, and the n-th is held against the n-th.
#[test]
fn calls_that_look_the_same_are_counted() {
    let sandbox = sandbox();
    let turn = message(&[("p1", "pay", 7)]);
    for (turns, paid) in [(1, 1), (2, 2), (2, 2), (3, 3), (1, 3)] {
        let input = vec![turn.as_str(); turns].join("\n");
        let done = run_input(&sandbox, &input).assert_exit(0);
        assert_eq!(
            done.stdout.matches("paid 7").count(),
            turns,
            "{}",
            done.stdout
        );
        assert_eq!(sandbox.effects().len(), paid);
    }
}

/// A random id names one call for ever, so another input under it is a mistake.
#[test]
fn another_input_under_a_random_id_is_a_conflict() {
    let sandbox = sandbox();
    run_input(&sandbox, &message(&[(RANDOM_ID, "pay", 7)])).assert_exit(0);
    let refused = run_input(&sandbox, &message(&[(RANDOM_ID, "pay", 8)]));
    let text = refused.assert_exit(3).result_texts().remove(0);
    assert!(
        text.starts_with("Not executed: the id of this call belongs to an earlier call"),
        "{text}"
    );
    assert_eq!(sandbox.effects(), ["pay 7"]);
}

#[test]
fn with_new_a_call_runs_again() {
    let sandbox = sandbox();
    let ids = [RANDOM_ID, "p2"];
    sandbox.write_file(
        "input.json",
        &message(&[(ids[0], "pay", 1), (ids[1], "pay", 2)]),
    );
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
    sandbox
        .run_toolq(&["run", "--new=p2", "input.json"])
        .assert_exit(0);
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2", "pay 2"]);
    sandbox
        .run_toolq(&["run", "--new", "input.json"])
        .assert_exit(0);
    assert_eq!(sandbox.effects().len(), 5);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
    assert_eq!(sandbox.effects().len(), 5);
}

/// The second of two runs at a time has the result of the first.
#[test]
fn a_run_waits_for_the_one_that_is_first() {
    let sandbox = sandbox();
    sandbox.write_file("hold", "");
    sandbox.write_file("input.json", &message(&[(RANDOM_ID, "pay", 7)]));
    let mut first = sandbox.spawn(&["run", "input.json"]);
    while sandbox.effects().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    thread::scope(|scope| {
        let second =
            scope.spawn(|| sandbox.run_toolq(&["run", "--events", "events", "input.json"]));
        while !sandbox.read_file("events").contains("tool_queued") {
            thread::sleep(Duration::from_millis(5));
        }
        fs::remove_file(sandbox.path().join("hold")).unwrap();
        let second = second.join().unwrap().assert_exit(0);
        assert_eq!(second.result_texts(), ["paid 7"]);
    });
    assert!(first.wait().unwrap().success());
    assert_eq!(sandbox.effects(), ["pay 7"]);
}

/// What was read before a write must not show what came after it.
#[test]
fn what_was_read_before_a_write_is_answered_from_memory() {
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let sandbox = sandbox();
        let calls = [("r1", "look", 1), ("p1", "pay", 2), ("r2", "look", 3)];
        sandbox.write_file("input.json", &message(&calls));
        let run = || sandbox.run_toolq(&[&["run", "input.json"], log].concat());
        let first = run().assert_exit(0);
        for _ in 0..2 {
            assert_eq!(run().assert_exit(0).stdout, first.stdout);
        }
        assert_eq!(sandbox.effects(), ["look 1", "pay 2", "look 3"]);
    }
}

/// A read between two writes that two runs have made is the one that stood between them, also in a third run.
#[test]
fn what_was_read_between_writes_of_two_runs_stays_as_it_was() {
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let sandbox = sandbox();
        let tools = bank().replace("  pay:", "  wire:\n    approve: true\n    input_schema: {type: object}\n    command: [sh, -c, 'echo wire >> effects']\n  pay:");
        sandbox.write_file("tools.yaml", &tools);
        let calls = [("p1", "pay", 1), ("r1", "look", 2), ("w1", "wire", 3)];
        sandbox.write_file("input.json", &message(&calls));
        let run =
            |flags: &[&str]| sandbox.run_toolq(&[&["run", "input.json"], log, flags].concat());
        let first = run(&[]).assert_exit(6).result_texts();
        let second = run(&["--approve", "all"]).assert_exit(0).result_texts();
        let third = run(&[]).assert_exit(0).result_texts();
        assert_eq!([&first[1], &second[1]], [&second[1], &third[1]]);
        assert_eq!(sandbox.effects(), ["pay 1", "look 2", "wire"]);
    }
}

/// An input that only reads runs again: an hourly check is no repetition.
#[test]
fn reads_alone_run_again() {
    let sandbox = sandbox();
    for count in 1..=2 {
        run_input(&sandbox, &message(&[("r1", "look", 1)])).assert_exit(0);
        assert_eq!(sandbox.effects().len(), count);
    }
}

/// Some servers give several calls of a conversation one id.
#[test]
fn an_id_of_several_calls_in_a_conversation_names_none_of_them() {
    let sandbox = sandbox();
    let turn = |n| {
        let call = json!({"type": "tool_use", "id": RANDOM_ID, "name": "pay", "input": {"n": n}});
        json!({"role": "assistant", "content": [call]}).to_string()
    };
    let result = json!({"type": "tool_result", "tool_use_id": RANDOM_ID, "content": "ok"});
    let between = json!({"role": "user", "content": [result]}).to_string();
    let conversation = [turn(1), between, turn(2)].join("\n");
    sandbox.write_file("input.jsonl", &conversation);
    for _ in 0..2 {
        let run = sandbox.run_toolq(&["run", "--all", "input.jsonl"]);
        let ran = run.assert_exit(0).stdout;
        assert!(ran.contains("paid 1") && ran.contains("paid 2"), "{ran}");
    }
    assert_eq!(sandbox.effects(), ["pay 1", "pay 2"]);
}

/// A flag that names it lets a read run again, too. What it names must be there.
#[test]
fn a_read_that_is_named_runs_again() {
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let sandbox = sandbox();
        let calls = [("r1", "look", 1), ("p1", "pay", 2), ("r2", "look", 3)];
        sandbox.write_file("input.json", &message(&calls));
        let run = |new: &str| {
            let arguments = [&["run", new, "input.json"], log].concat();
            sandbox.run_toolq(&arguments).assert_exit(0)
        };
        let first = run("-v");
        let again = run("--new=r2");
        assert_eq!(again.result_texts()[..2], first.result_texts()[..2]);
        assert_eq!(again.result_texts()[2].trim(), "4");
        let unknown = run("--new=r9");
        assert!(
            unknown.stderr.contains("no call of the input has this id"),
            "{}",
            unknown.stderr
        );
        assert!(unknown.stderr.contains("r9"), "{}", unknown.stderr);
        assert_eq!(sandbox.effects(), ["look 1", "pay 2", "look 3", "look 3"]);
    }
}

/// What is read behind a write that runs only now must show what it did.
#[test]
fn what_is_read_behind_a_write_that_had_not_run_is_read_anew() {
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let tools = bank().replace(
            "effect: write",
            "approve: {when: {properties: {n: {const: 3}}}}",
        );
        let sandbox = ResumeSandbox::new(&tools, "");
        let calls = [("p1", "pay", 2), ("p2", "pay", 3), ("r1", "look", 4)];
        sandbox.write_file("input.json", &message(&calls));
        let run = |exit| {
            let arguments = [&["run", "input.json"], log].concat();
            sandbox.run_toolq(&arguments).assert_exit(exit)
        };
        assert_eq!(run(6).result_texts()[2].trim(), "2");
        let approve = [&["approvals", "approve", "p2"], log].concat();
        sandbox.run_toolq(&approve).assert_exit(0);
        for _ in 0..2 {
            assert_eq!(run(0).result_texts()[2].trim(), "4");
        }
        assert_eq!(sandbox.effects(), ["pay 2", "look 4", "pay 3", "look 4"]);
    }
}
