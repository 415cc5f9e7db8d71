//! Input and arguments with which nothing runs, and what toolq says about them.

use std::fs;

use serde_json::json;

use crate::run::toolq;
use crate::support::model_response;

/// The error has the position of the problem. Nothing runs, and no log is created.
#[test]
fn input_that_is_not_a_model_response_is_an_error() {
    for (input, expected) in [
        ("", "empty"),
        ("  \n\t ", "empty"),
        ("{\"role\":\"assistant\",\"content\":[", "stdin:1:"),
        ("not json", "stdin:1:"),
        (
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
            "Overloaded",
        ),
        (
            "{\"role\":\"user\",\"content\":\"hello\"}",
            "no model response",
        ),
        ("{\"a\":1}", ""),
        ("3", ""),
    ] {
        let ran = toolq().stdin(input).run(&["run"]).assert_exit(2);
        assert_eq!(ran.stdout, "", "{input}");
        assert!(ran.stderr.contains(expected), "{input}: {}", ran.stderr);
        assert!(
            !ran.dir.path().join("state").exists(),
            "{input}: a log was created"
        );
    }
}

/// Not even the valid documents before the bad one.
#[test]
fn a_truncated_input_runs_nothing() {
    let complete = model_response(&[("touch", json!({"path": "made"}))]);
    for length in (1..complete.len()).step_by(7) {
        let ran = toolq()
            .stdin(&complete[..length])
            .run(&["run"])
            .assert_exit(2);
        assert!(
            !ran.dir.path().join("made").exists(),
            "the first {length} bytes"
        );
    }
}

#[test]
fn a_response_without_calls_is_exit_5() {
    for input in [
        r#"{"role":"assistant","content":[{"type":"text","text":"hello"}]}"#,
        r#"{"role":"assistant","content":"hello"}"#,
        "[]",
    ] {
        let ran = toolq().stdin(input).run(&["run"]).assert_exit(5);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_line_without_calls_gets_an_empty_list() {
    let lines = format!(
        "{}\n{}\n",
        r#"{"role":"assistant","content":[{"type":"text","text":"hello"}]}"#,
        model_response(&[("say", json!({"text": "x"}))])
    );
    let ran = toolq().stdin(lines).run(&["run"]).assert_exit(0);
    let lines = ran.lines();
    assert_eq!(lines[0], json!([]));
    assert_eq!(lines[1]["content"][0]["content"], "x");
}

#[test]
fn jobs_must_be_at_least_one() {
    for jobs in ["0", "-1", "many", "1.5"] {
        let input = model_response(&[("touch", json!({"path": "canary"}))]);
        let ran = toolq().stdin(input).run(&["run", &format!("-j{jobs}")]);
        let ran = ran.assert_exit(2);
        assert!(
            ran.stderr.contains("must be a whole number, 1 or more"),
            "{}",
            ran.stderr
        );
        assert!(ran.file("canary").is_none());
    }
}

/// Nothing is planned or run then, and both say why.
#[test]
fn an_input_whose_calls_all_have_results_is_explained() {
    let request = json!({"messages": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "say", "input": {"text": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]})
    .to_string();
    for (command, hint) in [("run", "`--all` runs them"), ("plan", "`--all` plans them")] {
        let ran = toolq().stdin(&request).run(&[command]);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
        let all = toolq()
            .stdin(&request)
            .run(&[command, "--all"])
            .assert_exit(0);
        assert!(
            !all.stderr.contains("already has a result"),
            "{}",
            all.stderr
        );
    }
}

/// The size limit applies to each input separately, so the other call runs.
#[test]
fn an_oversized_input_is_rejected() {
    let ran = toolq()
        .stdin(model_response(&[
            ("echo", json!({"x": "x".repeat(8 << 20)})),
            ("say", json!({"text": "x"})),
        ]))
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert!(texts[0].1 && texts[0].0.contains("the limit is 8388608"));
    assert_eq!(texts[1], ("x".to_owned(), false));
}

#[test]
fn unusable_arguments_are_rejected_before_anything_runs() {
    let calls = model_response(&[("touch", json!({"path": "made"}))]);
    for (arguments, code) in [
        (["run", "--events", "fd:1"], 2),
        (["run", "--events", "-"], 2),
        (["run", "--events", "fd:x"], 2),
        (["run", "--events", "no/directory"], 2),
        (["run", "--log", "no/directory"], 4),
        (["run", "--log", "."], 4),
        (["run", "-", "missing.json"], 2),
    ] {
        let ran = toolq().stdin(&calls).run(&arguments).assert_exit(code);
        assert_eq!(ran.stdout, "");
        assert!(!ran.dir.path().join("made").exists(), "{arguments:?}");
    }
}

/// A stream is told from a document in the same words as one dialect is from another, by every command that reads both.
#[test]
fn a_form_that_from_does_not_name_is_an_error_in_the_same_words() {
    let message = model_response(&[("say", json!({"text": "a"}))]);
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[]}}\n\n";
    for (text, from, found, position) in [
        (
            &*message,
            "openai-chat",
            "this has the form of `anthropic`",
            "1:1",
        ),
        (
            &*message,
            "codex",
            "this has the form of `anthropic`",
            "1:1",
        ),
        (
            &*message,
            "openai-sse",
            "this isn't a stream of events",
            "1:1",
        ),
        (
            &*message,
            "anthropic-sse",
            "this isn't a stream of events",
            "1:1",
        ),
        (stream, "anthropic", "this is a stream of events", "1:1"),
        (stream, "toolq", "this is a stream of events", "1:1"),
        (
            stream,
            "openai-sse",
            "this has the form of `anthropic-sse`",
            "2:7",
        ),
    ] {
        let error = format!("{position}: {found}, but `--from` says `{from}`\n");
        for command in ["run", "plan"] {
            let arguments = [command, "--from", from, "in"];
            let named = toolq().file("in", text).run(&arguments).assert_exit(2);
            let piped = toolq().stdin(text).run(&arguments[..3]).assert_exit(2);
            for (ran, name) in [(named, "in"), (piped, "stdin")] {
                let error = format!("error: {name}:{error}");
                assert!(ran.stderr.starts_with(&error), "{}", ran.stderr);
                let hint = "leave it out: toolq detects the format\n";
                assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
                assert_eq!(ran.stdout, "");
            }
        }
    }
}

/// The parser of JSON would ask for a key or a value where a comma is too many.
#[test]
fn a_trailing_comma_is_called_one() {
    let say = r#"{"type":"tool_use","id":"a","name":"say","input":{"text":"x"}}"#;
    let in_object = say.replace(r#""x"}"#, "\"x\",\n}");
    for (input, place) in [(format!("[{say}, ]"), "1:66"), (in_object, "2:1")] {
        let ran = toolq().stdin(input).run(&["run"]).assert_exit(2);
        let error = format!("error: stdin:{place}: the input is not valid JSON: trailing comma\n");
        assert!(ran.stderr.starts_with(&error), "{}", ran.stderr);
    }
    // What is wrong stands in this line, and not in one before it.
    let ran = toolq().stdin(format!("[\n{say},\n,{say}]")).run(&["run"]);
    assert!(ran.stderr.contains("begins on line 1"), "{}", ran.stderr);
    let ran = toolq().stdin(format!("[\n{say},,{say}]")).run(&["run"]);
    assert!(!ran.stderr.contains("begins on line"), "{}", ran.stderr);
    let arguments = json!({"name": "say", "arguments": r#"{"text":"x",}"#});
    let call = json!({"id": "a", "type": "function", "function": arguments});
    let message = json!({"role": "assistant", "tool_calls": [call]}).to_string();
    let ran = toolq().stdin(message).run(&["run"]).assert_exit(0);
    assert!(
        ran.stdout.contains("trailing comma at line 1 column 13"),
        "{}",
        ran.stdout
    );
}

/// What supervises commands is started while a long file is read. It ends with toolq, also if nothing is to run.
#[test]
fn a_long_file_leaves_no_supervisor() {
    let long = json!({"type": "text", "text": "x".repeat(300_000)});
    let call = json!({"type": "tool_use", "id": "a", "name": "say", "input": {"text": "x"}});
    let message =
        |content| json!({"type": "message", "role": "assistant", "content": content}).to_string();
    let with_call = message(json!([long, call]));
    for (input, code) in [
        (&*with_call, 0),
        (&with_call[..299_000], 2),
        (&*message(json!([long])), 5),
    ] {
        let sandbox = toolq().file("in", input);
        let child = sandbox.command(&["run", "in"]).spawn().unwrap();
        let owner = format!("of={}-", child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        for process in fs::read_dir("/proc").unwrap() {
            let command = fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            assert!(!command.contains(&owner), "{command}");
        }
    }
}
