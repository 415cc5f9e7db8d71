//! `toolq record` between an MCP client and a server: what passes, what is recorded, and what `replay` makes of it.

use std::fs;
use std::io::Write as _;
use std::process::Output;
use std::thread;

use crate::support::waiting::{wait_until, wait_until_gone};
use crate::support::{CliSandbox, parse_json_lines};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const TOOLQ: &str = env!("CARGO_BIN_EXE_toolq");

/// The tools of the recorded server, which is another toolq.
const SERVER_TOOLS: &str = r#"
version: 1
tools:
  say:
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    effect: read
    command: [echo, "hello {text}"]
  fail: {input_schema: {type: object}, effect: read, command: [sh, -c, "echo no cheese; exit 3"]}
"#;

/// The file against which the recording is replayed.
fn replayed_tools() -> String {
    format!(
        r#"
version: 1
servers:
  inner:
    command: {{argv: ["{TOOLQ}", serve, -q, -c, inner.yaml], env: {{XDG_STATE_HOME: inner-state}}}}
    prefix: ""
    hints: trust
"#
    )
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> String {
    let id: Value = id.into();
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> String {
    request(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
    )
}

/// Runs a command with this stdin to its end.
fn run(sandbox: &CliSandbox, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = sandbox.command(arguments).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    let writer = thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn read_log(sandbox: &CliSandbox, log: &str) -> Vec<Value> {
    let verified = sandbox.command(&["log", "verify", log]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
    parse_json_lines(&fs::read_to_string(sandbox.path().join(log)).unwrap())
}

#[test]
fn what_a_server_answered_is_replayed_against_the_server_of_today() {
    let sandbox = CliSandbox::new()
        .tools(&replayed_tools())
        .file("inner.yaml", SERVER_TOOLS);
    let requests = [
        request("list", "tools/list", &json!({})),
        call(1, "say", &json!({"text": "you"})),
        call(2, "fail", &json!({})),
        call(3, "nobody", &json!({})),
    ]
    .join("\n");
    let record = [
        "record",
        "-q",
        "--log",
        "record.jsonl",
        "--",
        TOOLQ,
        "serve",
        "-q",
        "-c",
        "inner.yaml",
    ];
    let output = run(&sandbox, &record, format!("{requests}\n").as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answers = parse_json_lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(answers.len(), 4, "{answers:?}");

    let log = read_log(&sandbox, "record.jsonl");
    let results: Vec<(&str, &str, bool)> = log
        .iter()
        .filter(|record| record["type"] == "tool_result")
        .map(|record| {
            let metadata = &record["metadata"];
            let text = record["content"].as_str().unwrap_or_default();
            let name = metadata["tool_name"].as_str().unwrap();
            (name, text, metadata["is_error"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert!(
        results.contains(&("say", "hello you", false)),
        "{results:?}"
    );
    let has_error = |tool: &str, part: &str| {
        let mut results = results.iter();
        results.any(|(name, text, is_error)| *name == tool && *is_error && text.contains(part))
    };
    assert!(has_error("fail", "no cheese"), "{results:?}");
    assert!(has_error("nobody", "unknown tool"), "{results:?}");

    let requests = [
        call(1, "say", &json!({"text": "you"})),
        call(2, "fail", &json!({})),
    ]
    .join("\n");
    let record = [&["record", "-q", "--log", "known.jsonl"], &record[4..]].concat();
    run(&sandbox, &record, format!("{requests}\n").as_bytes());
    let lock = sandbox.command(&["servers", "lock"]).output().unwrap();
    assert!(lock.status.success(), "{lock:?}");
    let same = run(&sandbox, &["replay", "known.jsonl"], b"");
    let stderr = String::from_utf8_lossy(&same.stderr).into_owned();
    assert_eq!(same.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("none differ, 2 match"), "{stderr}");

    let changed = SERVER_TOOLS.replace("hello {text}", "goodbye {text}");
    fs::write(sandbox.path().join("inner.yaml"), changed).unwrap();
    let differs = run(&sandbox, &["replay", "known.jsonl"], b"");
    let stderr = String::from_utf8_lossy(&differs.stderr).into_owned();
    assert_eq!(differs.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("goodbye you"), "{stderr}");
}

#[test]
fn bytes_pass_unchanged_in_both_directions() {
    let sandbox = CliSandbox::new();
    let mut bytes = b"\xef\xbb\xbfhello\r\n\r\n{\"jsonrpc\": \"2.0\" }\n\xff\xfe\0[1,\n".to_vec();
    bytes.extend(vec![b'x'; 300_000]);
    bytes.extend(b"\n{\"no\":\"line break\"}");
    let output = run(&sandbox, &["record", "-q", "--", "cat"], &bytes);
    assert_eq!(output.status.code(), Some(0), "{:?}", output.stderr);
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
}

#[test]
fn the_exit_code_is_that_of_the_server() {
    let sandbox = CliSandbox::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        // The server leaves although the client is still there, and something holds its stdout.
        ("sleep 600 & exit 5", 5),
    ] {
        let mut child = sandbox
            .command(&["record", "-q", "--", "sh", "-c", script])
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{script}");
        drop(stdin);
    }
}

/// If nothing was recorded, there is no log, and toolq doesn't announce one.
#[test]
fn a_server_that_cannot_be_started_leaves_no_log() {
    let sandbox = CliSandbox::new();
    let output = run(&sandbox, &["record", "--", "no-such-server"], b"");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("no-such-server can't be started"),
        "{stderr}"
    );
    assert!(!stderr.contains("session log"), "{stderr}");
    let logs = sandbox.command(&["log", "list"]).output().unwrap();
    assert_eq!(logs.stdout, b"", "{logs:?}");
}

/// Some clients drop the `--` of a configured command.
#[test]
fn the_command_may_follow_the_flags_directly() {
    let sandbox = CliSandbox::new();
    for command in [
        &["sh", "-c", "echo $1", "sh", "--log"][..],
        &["--", "sh", "-c", "echo $1", "sh", "--log"],
        &["sh", "-c", "echo $2", "sh", "--", "--log"],
    ] {
        let output = run(&sandbox, &[&["record", "-q"], command].concat(), b"");
        assert_eq!(output.stdout, b"--log\n", "{command:?}: {output:?}");
    }
}

/// A call that the server didn't answer may have done its work.
#[test]
fn a_signal_ends_the_server_with_all_its_processes() {
    let sandbox = CliSandbox::new();
    let script = "trap '' TERM; sleep 600 & echo $! >> pids; read line; echo $$ >> pids; wait";
    let record = ["record", "--log", "r.jsonl", "--", "sh", "-c", script];
    let mut child = sandbox.command(&record).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", call("a", "pay", &json!({}))).unwrap();
    let read = || fs::read_to_string(sandbox.path().join("pids")).unwrap_or_default();
    wait_until("the server has read", || read().lines().count() == 2);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let pids: Vec<String> = read().lines().map(str::to_owned).collect();
    wait_until_gone(&pids);
    let log = read_log(&sandbox, "r.jsonl");
    let types: Vec<&str> = log
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "session",
            "turn",
            "tool_call",
            "tool_start",
            "tool_in_doubt",
            "session_end"
        ]
    );
    assert_eq!(log[0]["metadata"]["tools"]["path"], "sh");
    assert_eq!(log[1]["metadata"]["message_id"], "a");
}

#[test]
fn secrets_pass_and_are_masked_in_the_log() {
    let sandbox = CliSandbox::new().env("API_TOKEN", "s3cr3t-canary");
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the key is s3cr3t-canary"}]}}"#;
    let script = format!("read line; echo '{answer}'; echo $API_TOKEN");
    let record = [
        "record",
        "--log",
        "r.jsonl",
        "--secret",
        "API_TOKEN",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let call = call(1, "get", &json!({"key": "s3cr3t-canary"}));
    let output = run(&sandbox, &record, format!("{call}\n").as_bytes());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout, format!("{answer}\ns3cr3t-canary\n"));
    read_log(&sandbox, "r.jsonl");
    let log = fs::read_to_string(sandbox.path().join("r.jsonl")).unwrap();
    assert!(!log.contains("s3cr3t-canary"), "{log}");
    assert!(log.contains("the key is [masked]"), "{log}");
}

#[test]
fn a_client_that_goes_away_takes_the_server_with_it() {
    let sandbox = CliSandbox::new();
    let record = [
        "record",
        "-q",
        "--",
        "sh",
        "-c",
        "echo $$ >> pids; exec sleep 600",
    ];
    let mut child = sandbox.command(&record).spawn().unwrap();
    let read = || fs::read_to_string(sandbox.path().join("pids")).unwrap_or_default();
    wait_until("the server has started", || read().lines().count() == 1);
    // stdin stays open.
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn what_cannot_be_recorded_passes_all_the_same() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let script = format!("cat > requests; echo '{answer}'");
    let list = call(1, "get", &json!([1]));
    let get = call(1, "get", &json!({}));
    for (failpoint, request, code, warning) in [
        (None, list, 0, "a call of get isn't recorded"),
        (
            Some("append.before:3:error"),
            get,
            4,
            "no more calls are recorded",
        ),
    ] {
        let sandbox = CliSandbox::new();
        let sandbox = match failpoint {
            Some(failpoint) => sandbox.env("TOOLQ_FAILPOINT", failpoint),
            None => sandbox,
        };
        let record = ["record", "--log", "r.jsonl", "--", "sh", "-c", &script];
        let output = run(&sandbox, &record, format!("{request}\n").as_bytes());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
        assert_eq!(output.stdout, format!("{answer}\n").into_bytes());
        let requests = fs::read_to_string(sandbox.path().join("requests")).unwrap();
        assert_eq!(requests, format!("{request}\n"));
    }
}
