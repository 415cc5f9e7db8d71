//! Which calls run, and what each of them gets as its result.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::run::{TOOLS, toolq};
use crate::support::{CliSandbox, model_response, parse_json_lines};

#[test]
fn a_message_with_one_command_call() {
    let ran = toolq()
        .stdin(model_response(&[("echo", json!({"n": 1}))]))
        .run(&["run"])
        .assert_exit(0);
    assert_eq!(
        ran.stdout,
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_0\",\"content\":\"{\\\"n\\\":1}\",\"is_error\":false}]}\n"
    );
    let types: Vec<String> = ran
        .log_records()
        .iter()
        .map(|record| record["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        types,
        [
            "session",
            "turn",
            "tool_call",
            "tool_start",
            "tool_result",
            "session_end"
        ]
    );
}

/// A timeout, a failing command, an unknown tool, an invalid input, a 503 and a good call: six results, in order, and
/// the good call isn't affected.
#[test]
fn one_failure_affects_no_other_call() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut head = [0; 1024];
        let _ = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy")
            .unwrap();
    });
    let tools = format!(
        "{TOOLS}  remote:\n    description: Ask a server.\n    input_schema: {{type: object}}\n    effect: read\n    http: {{url: \"http://127.0.0.1:{port}/busy\"}}\n"
    );
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(model_response(&[
            ("hang", json!({})),
            ("fail", json!({"code": 7})),
            ("no_such_tool", json!({})),
            ("say", json!({"txt": 1})),
            ("remote", json!({})),
            ("say", json!({"text": "good"})),
        ]))
        .run(&["run"])
        .assert_exit(0);
    let ids: Vec<Value> = ran
        .results()
        .iter()
        .map(|result| result["tool_use_id"].clone())
        .collect();
    assert_eq!(
        ids,
        [
            "toolu_0", "toolu_1", "toolu_2", "toolu_3", "toolu_4", "toolu_5"
        ]
    );
    let texts = ran.result_texts();
    let errors: Vec<bool> = texts.iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, [true, true, true, true, true, false]);
    for (at, part) in [
        (0, "200ms"),
        (1, "7"),
        (1, "err"),
        (2, "no_such_tool"),
        (3, "text"),
        (4, "503"),
        (5, "good"),
    ] {
        assert!(texts[at].0.contains(part), "{at}: {}", texts[at].0);
    }
    assert_eq!(texts[5].0, "good");
}

/// Also of calls that don't run.
#[test]
fn a_call_that_is_sent_twice_gets_its_result_twice() {
    let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"path": id}});
    let calls = [
        call("a", "none"),
        call("a", "none"),
        call("b", "touch"),
        call("b", "touch"),
        call("a", "none"),
    ];
    let ran = toolq()
        .stdin(json!({"role": "assistant", "content": calls}).to_string())
        .run(&["run"])
        .assert_exit(0);
    let errors: Vec<bool> = ran.result_texts().iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, [true, true, false, false, true]);
}

/// Two keys that are the same, a missing input or one that doesn't match the schema, and a path outside the root. A number is
/// passed on with all of its digits, and calls that share an id are calls of their own.
#[test]
fn invalid_calls_get_errors_and_valid_ones_run() {
    let input = r#"{"role":"assistant","content":[
        {"type":"tool_use","id":"dup","name":"touch","input":{"path":"one"}},
        {"type":"tool_use","id":"dup","name":"touch","input":{"path":"two"}},
        {"type":"tool_use","id":"c","name":"touch","input":{"path":"three","path":"four"}},
        {"type":"tool_use","id":"d","name":"touch","input":"five"},
        {"type":"tool_use","id":"e","name":"touch"},
        {"type":"tool_use","id":"f","name":"Touch","input":{"path":"six"}},
        {"type":"tool_use","id":"g","name":"touch","input":{"path":7, "x":1}},
        {"type":"tool_use","id":"h","name":"touch","input":{"path":"../eight"}},
        {"type":"tool_use","id":"i","name":"echo","input":{"n":12345678901234567890123, "f":1.0}},
        {"type":"tool_use","id":"j","name":"touch","input":{"path":"made"}}]}"#;
    let ran = toolq().stdin(input).run(&["run"]).assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts.len(), 10);
    assert_eq!(
        texts.iter().map(|(_, error)| *error).collect::<Vec<_>>(),
        [
            false, false, true, true, true, true, true, true, false, false
        ]
    );
    assert!(texts[5].0.contains("touch"), "{}", texts[5].0);
    assert!(texts[6].0.contains("/path"), "{}", texts[6].0);
    assert!(
        texts[7].0.contains("Path must be within working directory"),
        "{}",
        texts[7].0
    );
    assert_eq!(texts[8].0, r#"{"n":12345678901234567890123, "f":1.0}"#);
    let made: Vec<bool> = ["one", "two", "three", "four", "five", "six", "made"]
        .iter()
        .map(|name| ran.dir.path().join(name).exists())
        .collect();
    assert_eq!(made, [true, true, false, false, false, false, true]);
    let started = ran
        .log_records()
        .iter()
        .filter(|record| record["type"] == "tool_start")
        .count();
    assert_eq!(started, 4, "a rejected call has no start record");
}

#[test]
fn a_call_of_a_tool_without_backing_is_an_error() {
    let ran = toolq()
        .stdin(model_response(&[("declared", json!({}))]))
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert!(
        texts[0].1 && texts[0].0.contains("backing"),
        "{}",
        texts[0].0
    );
}

/// Calls that already have a result in the input aren't run again, except with `--all`.
#[test]
fn calls_with_a_result_are_skipped() {
    let request = json!({"messages": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "say", "input": {"text": "x"}},
            {"type": "tool_use", "id": "b", "name": "say", "input": {"text": "y"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]})
    .to_string();
    let ran = toolq().stdin(&request).run(&["run"]).assert_exit(0);
    assert_eq!(ran.results().len(), 1);
    assert_eq!(ran.results()[0]["tool_use_id"], "b");
    let ran = toolq()
        .stdin(&request)
        .run(&["run", "--all"])
        .assert_exit(0);
    assert_eq!(ran.results().len(), 2);
}

/// The same calls run if the response is complete.
#[test]
fn the_calls_of_a_refused_response_are_not_executed() {
    for (reason, ran_calls) in [("refusal", false), ("tool_use", true)] {
        let response = json!({"role": "assistant", "stop_reason": reason, "content": [
            {"type": "tool_use", "id": "a", "name": "say", "input": {"text": "hi"}},
            {"type": "tool_use", "id": "b", "name": "touch", "input": {"path": "made"}}]});
        let ran = toolq()
            .stdin(response.to_string())
            .run(&["run"])
            .assert_exit(0);
        assert_eq!(ran.dir.path().join("made").exists(), ran_calls);
        for (text, is_error) in ran.result_texts() {
            assert_eq!(is_error, !ran_calls, "{text}");
            assert_eq!(text.starts_with("Not executed: "), !ran_calls, "{text}");
        }
    }
}

/// The status of a failed attempt isn't shown for the next one.
#[test]
fn a_retry_clears_the_previous_attempts_status() {
    let tools = r#"
version: 1
tools:
  moody:
    description: Fail once.
    input_schema: {type: object}
    effect: read
    retry: {times: 1, on: ["exit:75"], backoff: 10ms}
    command: [sh, -c, 'test -e once && exit; : > once; echo "{\"tip\":\"half\",\"progress\":0.5}" >&3; exit 75']
"#;
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("moody", json!({}))]))
        .run(&["run", "--events", "events.ndjson"])
        .assert_exit(0);
    let events = parse_json_lines(&ran.file("events.ndjson").unwrap());
    let of = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap();
    let tip = of("tool_status")["state"]["tip"].as_str().unwrap();
    assert!(tip.starts_with("exit 75, attempt 2 in "), "{tip}");
    for kind in ["tool_started", "tool_completed", "result_written"] {
        let state = &of(kind)["state"];
        assert!(
            state.get("tip").is_none() && state.get("progress").is_none(),
            "{state}"
        );
    }
}

/// A tool is paused after too many failures. Exit 3 (stopped early) takes precedence over exit 1 (an error result).
#[test]
fn a_paused_tool_is_exit_3() {
    let tools = r#"
version: 1
tools:
  fail: {description: d, input_schema: {type: object}, pause_after_failures: 2, command: ["false"]}
"#;
    let calls = [
        ("fail", json!({})),
        ("fail", json!({})),
        ("fail", json!({})),
    ];
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&calls))
        .run(&["run", "--fail-on-error"])
        .assert_exit(3);
    assert!(ran.result_texts()[2].0.starts_with("Paused"));
}

#[test]
fn retries_do_not_count_toward_the_budget_of_calls() {
    let tools = r#"
version: 1
tools:
  flaky:
    description: Succeed at the third attempt.
    input_schema: {type: object}
    effect: read
    retry: {times: 2, on: ["exit:75"], backoff: 1ms}
    command: [sh, -c, 'echo >> attempts; test "$(wc -l < attempts)" -ge 3 || exit 75; echo done']
"#;
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("flaky", json!({}))]))
        .run(&["run", "--max-calls", "1"])
        .assert_exit(0);
    assert_eq!(ran.result_texts()[0].0, "done");
}

/// A result that fits no call may be that of one that waits: what changes something doesn't run again.
#[test]
fn a_call_that_a_result_may_belong_to_runs_only_if_it_reads() {
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let calls = [
        call("a", "touch", json!({"path": "made.txt"})),
        call("b", "echo", json!({"n": 1})),
    ];
    let request = json!({"messages": [
        {"role": "assistant", "content": calls},
        {"role": "tool", "tool_call_id": "call_a", "content": "made"},
    ]});
    let ran = toolq()
        .stdin(request.to_string())
        .run(&["run"])
        .assert_exit(3);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let content = |call: usize| answer["content"][call]["content"].as_str().unwrap();
    assert!(
        content(0).starts_with("Not executed: the conversation has a result"),
        "{answer}"
    );
    assert_eq!(content(1), r#"{"n":1}"#);
    assert!(!ran.dir.path().join("made.txt").exists());
    let place = "stdin:1:";
    assert!(
        ran.stderr.contains(place) && ran.stderr.contains("this result fits no call"),
        "{}",
        ran.stderr
    );
    // Whoever asks for all calls knows what has run.
    let ran = toolq()
        .stdin(request.to_string())
        .run(&["run", "--all"])
        .assert_exit(0);
    assert!(ran.dir.path().join("made.txt").exists());
    // A result that no call waits for is only noted.
    let answered = json!({"messages": [
        {"role": "tool", "tool_call_id": "old", "content": "made"},
        {"role": "assistant", "content": [calls[1]]},
    ]});
    let ran = toolq()
        .stdin(answered.to_string())
        .run(&["run"])
        .assert_exit(0);
    assert!(
        ran.stderr.contains("1 result fits no call"),
        "{}",
        ran.stderr
    );
}
