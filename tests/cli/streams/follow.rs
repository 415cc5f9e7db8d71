//! `--follow`: toolq keeps reading and prints results line by line.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::interactive_run::{InteractiveRun, TOOLS};
use crate::support::CliSandbox;

fn tool_use_line(id: &str, name: &str, input: &str) -> String {
    json!({"type": "tool_use", "id": id, "name": name, "input": {"name": input}}).to_string()
}

/// Each line of output has the form of its input line, and is printed while the input is still open.
#[test]
fn every_line_gets_a_line_of_results() {
    let mut run = InteractiveRun::start(&["run", "--follow", "--log", "log.jsonl"]);
    let call = tool_use_line("a", "look", "1");
    let chat = json!({"id": "b", "function": {"name": "look", "arguments": r#"{"name":"2"}"#}});
    for (line, expected) in [
        ("[]".to_owned(), json!([])),
        (call.clone(), json!({"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false})),
        (json!({"role": "user", "content": "hello"}).to_string(), json!([])),
        (
            format!("[{call}]"),
            json!([{"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false}]),
        ),
        (
            json!({"role": "assistant", "tool_calls": [chat]}).to_string(),
            json!([{"role": "tool", "tool_call_id": "b", "content": "saw 2"}]),
        ),
        (
            json!({"messages": [{"role": "assistant", "content": [serde_json::from_str::<Value>(&call).unwrap()]}]}).to_string(),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false}]}),
        ),
        (
            json!({"output": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": r#"{"name":"3"}"#}]}).to_string(),
            json!([{"type": "function_call_output", "call_id": "c", "output": "saw 3"}]),
        ),
    ] {
        run.send(&format!("{line}\n"));
        let printed: Value = serde_json::from_str(&run.next_line()).unwrap();
        assert_eq!(printed, expected, "{line}");
    }
    // The last line doesn't have to end in a newline.
    run.send(&tool_use_line("d", "change", "4"));
    let output = run.close_and_wait().assert_exit(0);
    assert_eq!(
        output.stdout,
        "{\"type\":\"tool_result\",\"tool_use_id\":\"d\",\"content\":\"changed 4\",\"is_error\":false}\n"
    );
    let log = output.read_json_lines("log.jsonl");
    let turns: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "turn")
        .map(|turn| &turn["metadata"]["turn"])
        .collect();
    assert_eq!(turns, [1, 2, 3, 4, 5, 6]);
}

/// A document with line breaks can't be answered, since each line would be: the error of its first line says what to do.
#[test]
fn the_error_of_a_document_with_line_breaks_says_to_write_it_on_one_line() {
    let call = json!([{"type": "tool_use", "id": "a", "name": "look", "input": {"name": "1"}}]);
    for document in [&call, &call[0]] {
        let pretty = serde_json::to_string_pretty(document).unwrap();
        let sandbox = CliSandbox::new().tools(TOOLS).stdin(pretty);
        let output = sandbox.run(&["run", "--follow", "--no-log"]).assert_exit(3);
        let mut lines = output.stderr.lines();
        let error = "error: stdin:1:2: the input ends in the middle of a JSON value";
        assert_eq!(lines.next(), Some(error));
        let hint = lines.next().unwrap();
        assert!(hint.contains("one JSON document per line"), "{hint}");
        assert!(hint.contains("`jq -c --unbuffered .`"), "{hint}");
    }
}

/// Calls that already have a result in the line don't run again. The line still gets a line of output.
#[test]
fn a_line_whose_calls_have_results_gets_an_empty_list() {
    let call: Value = serde_json::from_str(&tool_use_line("a", "look", "1")).unwrap();
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]});
    let request = json!({"messages": [{"role": "assistant", "content": [call]}, result]});
    let run = |flags: &[&str]| {
        let toolq = CliSandbox::new().tools(TOOLS).stdin(format!("{request}\n"));
        toolq.run(&[&["run", "--follow"], flags].concat())
    };
    assert_eq!(run(&[]).assert_exit(5).stdout, "[]\n");
    assert!(run(&["--all"]).assert_exit(0).stdout.contains("saw 1"));
}

/// A client that waits for a line gets one that says what was wrong with its own. The process lives on.
#[test]
fn a_bad_line_is_answered_and_the_next_one_runs() {
    for (bad, answer, position) in [
        ("{\"a\":", Some("stdin:2:"), "error: stdin:2:"),
        ("not json", Some("stdin:2:"), "error: stdin:2:"),
        (r#"{"error":{"type":"x"}}"#, None, "note: stdin:2:1:"),
    ] {
        let mut run = InteractiveRun::start(&["run", "--follow"]);
        run.send(&(tool_use_line("a", "look", "1") + "\n"));
        assert!(run.next_line().contains("saw 1"));
        run.send(&format!("{bad}\n"));
        let answered: Value = serde_json::from_str(&run.next_line()).unwrap();
        match answer {
            Some(position) => {
                assert_eq!(answered["type"], "error");
                assert_eq!(answered["error"]["type"], "invalid_request");
                let message = answered["error"]["message"].as_str().unwrap();
                assert!(message.starts_with(position), "{message}");
            }
            None => assert_eq!(answered, json!([])),
        }
        run.send(&(tool_use_line("b", "look", "2") + "\n"));
        assert!(run.next_line().contains("saw 2"));
        let output = run.close_and_wait().assert_exit(3);
        assert!(output.stderr.contains(position), "{}", output.stderr);
    }
}

/// Each line has an answer, so that the client never waits, and the exit code is 3 in the end.
#[test]
fn bad_lines_without_any_call_are_answered() {
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin("{\"a\":\n[]\n{\"error\":{\"type\":\"x\"}}\n")
        .run(&["run", "--follow"])
        .assert_exit(3);
    let lines = ran.lines();
    assert_eq!(lines[0]["type"], "error");
    assert_eq!(lines[1..], [json!([]), json!([])]);
    let empty = || CliSandbox::new().tools(TOOLS);
    empty().run(&["run", "--follow"]).assert_exit(2);
    empty()
        .stdin("data: {}\n")
        .run(&["run", "--follow", "--from", "anthropic-sse"])
        .assert_exit(2);
}

/// A line of another dialect than the one that was named isn't answered as if it had no calls.
#[test]
fn a_line_of_another_dialect_than_the_named_one_is_invalid() {
    let block = tool_use_line("a", "look", "1");
    let message = format!(r#"{{"role":"assistant","content":[{block}]}}"#);
    let output = r#"{"output":[{"type":"function_call","call_id":"c","name":"look","arguments":"{\"name\":\"3\"}"}]}"#;
    for (named, line, found) in [
        ("codex", message.as_str(), "anthropic"),
        ("codex", output, "openai-responses"),
        ("claude-code", &message, "anthropic"),
        ("openai-chat", &message, "anthropic"),
        ("openai-responses", &block, "anthropic"),
        ("anthropic", output, "openai-responses"),
    ] {
        let ran = CliSandbox::new()
            .tools(TOOLS)
            .stdin(format!(
                "{line}\n{{\"role\":\"user\",\"content\":\"hello\"}}\n"
            ))
            .run(&["run", "--follow", "--no-log", "--from", named])
            .assert_exit(3);
        let lines = ran.lines();
        assert_eq!(lines.len(), 2, "{}", ran.stdout);
        let message = lines[0]["error"]["message"].as_str().unwrap();
        let why = format!("has the form of `{found}`, but `--from` says `{named}`");
        assert!(message.contains(&why), "{message}");
        assert_eq!(lines[1], json!([]));
    }
}

/// After the lines of a log, a message is read in its own dialect, not as another line of the log, which would have no calls.
#[test]
fn a_message_among_the_lines_of_a_log_is_answered() {
    let item = r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","call_id":"a","name":"look","arguments":"{\"name\":\"1\"}"}}"#;
    let other = r#"{"type":"unknown_to_toolq"}"#;
    let message = tool_use_line("b", "look", "2");
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin([item, other, &message, other].join("\n"))
        .run(&["run", "--follow", "--no-log"])
        .assert_exit(0);
    let lines = ran.lines();
    assert_eq!(lines.len(), 4, "{}", ran.stdout);
    assert!(lines[0].to_string().contains("saw 1"), "{}", ran.stdout);
    assert_eq!(lines[2]["content"], "saw 2");
    assert_eq!((&lines[1], &lines[3]), (&json!([]), &json!([])));
}

/// An empty input is an error, which `-q` doesn't silence, and not a note.
#[test]
fn an_empty_input_is_an_error_even_with_quiet() {
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .run(&["run", "--follow", "-q"])
        .assert_exit(2);
    let expected = "error: stdin:1:1: the input is empty\n hint: write one JSON document per line, such as a model's message\n";
    assert_eq!((&*ran.stdout, &*ran.stderr), ("", expected));
}

/// Lines that nothing tells apart are counted within a process, and answered from the log by the next one.
#[test]
fn lines_that_look_the_same_are_counted() {
    let line = tool_use_line("a", "change", "1") + "\n";
    let more = tool_use_line("b", "change", "2") + "\n";
    let script = r#"
        printf %s "$LINE$LINE" | "$TOOLQ" run --follow -q --log log.jsonl > first
        printf %s "$LINE" | "$TOOLQ" run --follow -q --log log.jsonl > second
        printf %s "$LINE$MORE" | "$TOOLQ" run --follow -q --log log.jsonl > third
        jq -r 'select(.type == "tool_start") | .metadata.tool_use_id' log.jsonl
    "#;
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .env("LINE", &line)
        .env("MORE", &more)
        .run_shell(script)
        .assert_exit(0);
    assert_eq!(ran.stdout, "a\na\nb\n", "{}", ran.stderr);
    assert!(ran.file("third").unwrap().contains("changed 2"));
}

/// Each value on a line gets its own line of output, in order.
#[test]
fn each_value_on_a_line_gets_its_own_line() {
    let line = tool_use_line("a", "look", "1") + " [] " + &tool_use_line("b", "look", "2");
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin(line)
        .run(&["run", "--follow"])
        .assert_exit(0);
    let ids: Vec<Value> = ran
        .lines()
        .iter()
        .map(|line| line["tool_use_id"].clone())
        .collect();
    assert_eq!(ids, [json!("a"), Value::Null, json!("b")]);
}

/// toolq waits for more input until it gets a signal.
#[test]
fn a_signal_ends_follow_between_and_within_lines() {
    let mut idle = InteractiveRun::start(&["run", "--follow", "--log", "log.jsonl"]);
    idle.send(&(tool_use_line("a", "look", "1") + "\n"));
    idle.next_line();
    idle.signal(Signal::INT);
    let output = idle.wait().assert_exit(130);
    assert_eq!(
        output.read_json_lines("log.jsonl").last().unwrap()["type"],
        "session_end"
    );
    let mut busy = InteractiveRun::start(&["run", "--follow"]);
    busy.send(&(tool_use_line("a", "wait", "1") + "\n"));
    busy.wait_for_file("wait.1");
    busy.signal(Signal::INT);
    let output = busy.wait().assert_exit(130);
    assert!(
        output.stdout.contains("Interrupted while running"),
        "{}",
        output.stdout
    );
}

/// The budget applies to the whole run. Calls over budget still get a result.
#[test]
fn a_budget_applies_to_all_lines() {
    let lines: String = (0..3)
        .map(|n| tool_use_line(&format!("c{n}"), "look", &n.to_string()) + "\n")
        .collect();
    let ran = CliSandbox::new()
        .tools(TOOLS)
        .stdin(lines)
        .run(&["run", "--follow", "--max-calls", "2"])
        .assert_exit(3);
    let errors: Vec<Value> = ran
        .lines()
        .iter()
        .map(|line| line["is_error"].clone())
        .collect();
    assert_eq!(errors, [false, false, true]);
}
