//! `toolq serve` as an MCP client sees it: JSON-RPC on pipes, in both eras of the protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their own environment"
)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{CliSandbox, parse_json_lines};

const TOOLS: &str = r#"
version: 1
secrets: [TOKEN]
tools:
  echo:
    description: Say it again
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    effect: read
    command: [sh, -c, 'printf "%s\n" "$1"', --, "{text}"]
  count:
    input_schema: {type: object, properties: {n: {type: number}}, required: [n]}
    effect: read
    command: {argv: [cat], stdin: input}
  # Ends when a file appears.
  wait_for:
    input_schema: {type: object, properties: {file: {type: string}}, required: [file]}
    effect: read
    timeout: 100s
    command: [sh, -c, 'echo $$ >> pids; until [ -e "$1" ]; do sleep 0.01; done; echo "found $1"', --, "{file}"]
  pay:
    input_schema: {type: object, properties: {file: {type: string}}, required: [file]}
    effect: write
    timeout: 100s
    command: [sh, -c, 'echo $$ >> pids; until [ -e "$1" ]; do sleep 0.01; done; echo "found $1"', --, "{file}"]
  # Waits for another call of it.
  meet:
    input_schema: {type: object, properties: {me: {type: string}, other: {type: string}}}
    effect: read
    timeout: 100s
    command: [sh, -c, ': > "$1"; until [ -e "$2" ]; do sleep 0.01; done; echo met', --, "{me}", "{other}"]
  hang:
    input_schema: {type: object}
    effect: read
    timeout: 1000s
    command: [sh, -c, 'sleep 600 & echo $! >> pids; echo $$ >> pids; wait']
  fail:
    input_schema: {type: object}
    effect: read
    pause_after_failures: 2
    command: [sh, -c, 'echo "no cheese"; exit 3']
  work:
    input_schema: {type: object}
    effect: idempotent
    command:
      argv: [sh, -c, 'echo "{\"tip\":\"half of $TOKEN\",\"progress\":0.5}" >&3; until [ -e more ]; do sleep 0.01; done; echo "{\"tip\":\"more\"}" >&3; until [ -e go ]; do sleep 0.01; done; echo done']
      env: {TOKEN: "${TOKEN:-}"}
  planned:
    input_schema: {type: object}
  scale:
    input_schema: {type: object, properties: {json: {type: string}}, required: [json]}
    effect: read
    output: json
    output_schema: {type: object, properties: {kg: {type: number}}, required: [kg]}
    max_output: 100
    open_world: false
    command: [printf, "%s", "{json}"]
  erase:
    input_schema: {type: object}
    output: json
    output_schema: {type: array}
    destructive: true
    command: [echo, "[1]"]
"#;

/// How long to wait for what surely happens.
const PATIENCE: Duration = Duration::from_mins(1);

/// A client and the server that it has started.
struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    messages: mpsc::Receiver<String>,
    sandbox: CliSandbox,
}

impl Client {
    fn start(sandbox: CliSandbox, arguments: &[&str]) -> Self {
        let mut server = sandbox.command(arguments).spawn().unwrap();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Self {
            stdin: server.stdin.take(),
            server,
            messages,
            sandbox,
        }
    }

    fn serve(arguments: &[&str]) -> Self {
        let sandbox = CliSandbox::new().tools(TOOLS).env("TOKEN", "s3cr3t-canary");
        Self::start(sandbox, &[&["serve"], arguments].concat())
    }

    fn dir(&self) -> &Path {
        self.sandbox.path()
    }

    fn send_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Returns the next message of the server.
    #[track_caller]
    fn receive(&self) -> Value {
        let line = self.messages.recv_timeout(PATIENCE).expect("a message");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    fn send(&mut self, id: impl Into<Value>, method: &str, params: &Value) {
        let id: Value = id.into();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string());
    }

    #[track_caller]
    fn ask(&mut self, id: impl Into<Value>, method: &str, params: &Value) -> Value {
        let id: Value = id.into();
        self.send(id.clone(), method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id);
        answer
    }

    /// Agrees on a version, as clients of the legacy era do.
    fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask("init", "initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        self.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn initialized(arguments: &[&str]) -> Self {
        let mut client = Self::serve(arguments);
        client.initialize();
        client
    }

    fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(id, "tools/call", &params);
    }

    /// Makes a call, and returns the text of its result and whether it is an error.
    #[track_caller]
    fn result(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) -> (String, bool) {
        self.call(id, tool, arguments);
        text_of(&self.receive())
    }

    /// Returns the pids that tools have noted, once there are as many.
    fn pids(&self, count: usize) -> Vec<String> {
        let read = || fs::read_to_string(self.dir().join("pids")).unwrap_or_default();
        wait_until("the tool has started", || read().lines().count() == count);
        read().lines().map(str::to_owned).collect()
    }

    fn create(&self, name: &str) {
        fs::write(self.dir().join(name), "").unwrap();
    }

    /// Closes stdin and returns the exit code, what is left on stdout, and stderr.
    fn leave(mut self) -> EndedServer {
        self.stdin = None;
        self.wait()
    }

    fn wait(mut self) -> EndedServer {
        let code = self.server.wait().unwrap().code();
        let mut stderr = String::new();
        let mut pipe = self.server.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        EndedServer {
            code,
            rest: self.messages.iter().collect(),
            stderr,
            sandbox: self.sandbox,
        }
    }
}

struct EndedServer {
    code: Option<i32>,
    /// The messages that weren't received yet.
    rest: Vec<String>,
    stderr: String,
    sandbox: CliSandbox,
}

impl EndedServer {
    /// Returns the records of the only log, which must be valid.
    fn log(&self) -> Vec<Value> {
        let dir = self.sandbox.path().join("state/toolq/sessions");
        let logs = fs::read_dir(dir).unwrap();
        let mut logs = logs.map(|entry| entry.unwrap().path());
        let log = logs.find(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
        let log = log.unwrap();
        let verify = ["log", "verify", log.to_str().unwrap()];
        let verified = self.sandbox.command(&verify).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
        parse_json_lines(&fs::read_to_string(log).unwrap())
    }

    /// Returns the types of the records, each with its tool.
    fn record_types(&self) -> Vec<String> {
        let of_calls = |record: &Value| {
            let tool = record["metadata"]["tool_name"].as_str()?;
            Some(format!("{} {tool}", record["type"].as_str()?))
        };
        self.log().iter().filter_map(of_calls).collect()
    }
}

fn text_of(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"].as_bool().unwrap())
}

fn modern(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_running(pid: &str) -> bool {
    let probe = Command::new("kill").args(["-0", pid]).output().unwrap();
    probe.status.success()
}

fn wait_until_gone(pids: &[String]) {
    wait_until("nothing is left", || {
        !pids.iter().any(|pid| is_running(pid))
    });
}

#[test]
fn a_legacy_client_lists_and_calls() {
    let mut client = Client::initialized(&[]);
    let listed = client.ask(1, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "echo");
    assert_eq!(tools[0]["description"], "Say it again");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["text"]));
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    let pay = tools.iter().find(|tool| tool["name"] == "pay").unwrap();
    assert_eq!(pay["annotations"]["readOnlyHint"], false);
    assert!(
        !tools.iter().any(|tool| tool["name"] == "planned"),
        "nothing would run it"
    );
    client.call(0, "echo", &json!({"text": "hi"}));
    let answer = client.receive();
    assert_eq!(answer["id"], 0);
    assert_eq!(text_of(&answer), ("hi".to_owned(), false));
    assert_eq!(answer["result"]["_meta"]["dev.toolq/status"], "ok");
    assert!(answer["result"].get("resultType").is_none());
    let ended = client.leave();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.record_types(),
        ["tool_call echo", "tool_start echo", "tool_result echo"]
    );
}

#[test]
fn a_modern_client_needs_no_handshake() {
    let mut client = Client::serve(&[]);
    let discovered = client.ask("d", "server/discover", &modern(&json!({})));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let listed = client.ask(1, "tools/list", &modern(&json!({})));
    assert!(listed["result"]["ttlMs"].is_u64());
    let params = modern(&json!({"name": "echo", "arguments": {"text": "hi"}}));
    let answer = client.ask(2, "tools/call", &params);
    assert_eq!(text_of(&answer), ("hi".to_owned(), false));
    assert_eq!(answer["result"]["resultType"], "complete");
    let meta = &answer["result"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "toolq");
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn declared_hints_are_listed_and_others_are_not() {
    let mut client = Client::initialized(&[]);
    let listed = client.ask(1, "tools/list", &json!({}));
    let annotations = |name: &str| {
        let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["annotations"].clone()
    };
    assert_eq!(
        annotations("erase"),
        json!({"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true})
    );
    assert_eq!(annotations("scale")["openWorldHint"], false);
    assert_eq!(annotations("pay").as_object().unwrap().len(), 2);
}

#[test]
fn a_result_with_an_output_schema_is_structured_content_and_the_same_text() {
    let mut client = Client::initialized(&[]);
    client.call(1, "scale", &json!({"json": "{ \"kg\": 1.50 }"}));
    let line = client.messages.recv_timeout(PATIENCE).unwrap();
    assert!(
        line.contains(r#""structuredContent":{"kg":1.50}"#)
            && line.contains(r#""text":"{\"kg\":1.50}""#),
        "{line}"
    );
    client.call(2, "scale", &json!({"json": "{\"kg\":\"many\"}"}));
    let answer = client.receive();
    let (text, is_error) = text_of(&answer);
    assert!(
        is_error && text.contains("/kg of the output violates the output schema"),
        "{text}"
    );
    assert_eq!(answer["result"].get("structuredContent"), None);
    let long = format!("{{\"kg\":1,\"note\":\"{}\"}}", "x".repeat(100));
    let (text, is_error) = client.result(3, "scale", &json!({"json": long}));
    assert!(
        is_error && text.contains("118 bytes, more than max_output (100)"),
        "{text}"
    );
}

/// In the legacy era, clients refuse a list with any other schema.
#[test]
fn a_legacy_client_sees_only_structured_objects() {
    let mut client = Client::initialized(&[]);
    let legacy = client.ask(1, "tools/list", &json!({}));
    assert_eq!(listed_output_schema(&legacy, "erase"), None);
    assert_eq!(
        listed_output_schema(&legacy, "scale").unwrap()["required"],
        json!(["kg"])
    );
    client.call(2, "erase", &json!({}));
    let answer = client.receive();
    assert_eq!(text_of(&answer), ("[1]".to_owned(), false));
    assert_eq!(answer["result"].get("structuredContent"), None);
    let listed = client.ask(3, "tools/list", &modern(&json!({})));
    assert_eq!(
        listed_output_schema(&listed, "erase"),
        Some(json!({"type": "array"}))
    );
    let call = modern(&json!({"name": "erase", "arguments": {}}));
    let answer = client.ask(4, "tools/call", &call);
    assert_eq!(answer["result"]["structuredContent"], json!([1]));
}

#[test]
fn numbers_keep_their_digits() {
    let mut client = Client::initialized(&[]);
    client.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"n":12345678901234567890.10}}}"#);
    let (text, _) = text_of(&client.receive());
    assert!(text.contains("12345678901234567890.10"), "{text}");
}

#[test]
fn what_is_wrong_with_a_call_is_a_result_and_what_is_no_call_is_an_error() {
    let mut client = Client::initialized(&[]);
    let (text, is_error) = client.result(1, "echo", &json!({"text": 1}));
    assert!(is_error && text.contains("text"), "{text}");
    let (text, is_error) = client.result(2, "fail", &json!({}));
    assert!(is_error && text.contains("no cheese"), "{text}");
    let (_, is_error) = client.result(3, "echo", &json!(["a"]));
    assert!(is_error);
    let unknown = client.ask(
        4,
        "tools/call",
        &json!({"name": "ech0", "arguments": {"text": "a"}}),
    );
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(
        client.ask(5, "prompts/list", &json!({}))["error"]["code"],
        -32601
    );
    assert_eq!(client.ask(6, "ping", &json!({}))["result"], json!({}));
    assert_eq!(client.leave().code, Some(0));
}

/// A model may have read a secret and repeat it anywhere. Ids go back unchanged: the client finds its requests by them.
#[test]
fn errors_repeat_no_secret() {
    const SECRET: &str = "s3cr3t-canary";
    let mut client = Client::initialized(&[]);
    let named = |name: &str| json!({"name": name, "arguments": {}});
    let version = |date: &str| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": date}});
    let requests = [
        ("tools/call", named(SECRET)),
        (SECRET, json!({})),
        ("tools/list", json!({"cursor": SECRET})),
        ("tools/call", json!({"name": "echo", "_meta": SECRET})),
        ("tools/list", version(SECRET)),
    ];
    for (number, (method, params)) in requests.iter().enumerate() {
        let answer = client.ask(number, method, params);
        let error = answer["error"].to_string();
        assert!(!error.contains(SECRET), "{method} {params}: {error}");
        assert!(error.contains("[masked]"), "{method} {params}: {error}");
    }
    let unknown = client.ask(SECRET, "tools/call", &named("ech0"));
    assert_eq!(unknown["error"]["message"], "unknown tool ech0");
    let (text, is_error) = client.result(SECRET, "echo", &json!({"text": 1, SECRET: SECRET}));
    assert!(is_error && !text.contains(SECRET), "{text}");
    client.send_line(SECRET);
    let ended = client.leave();
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    let log = json!(ended.log()).to_string();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn lines_that_are_no_messages_disturb_nothing() {
    let mut client = Client::initialized(&[]);
    for noise in ["hello", "{\"jsonrpc\":", "{}", "", "[1]", "null"] {
        client.send_line(noise);
    }
    let (text, _) = client.result(1, "echo", &json!({"text": "still here"}));
    assert_eq!(text, "still here");
    let ended = client.leave();
    assert!(
        ended.stderr.contains("5 lines from the client"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.rest, [""; 0]);
}

#[test]
fn reads_run_at_the_same_time_and_each_is_answered_when_it_ends() {
    let mut client = Client::initialized(&[]);
    client.call("slow", "wait_for", &json!({"file": "go"}));
    client.call("one", "meet", &json!({"me": "a", "other": "b"}));
    client.call("two", "meet", &json!({"me": "b", "other": "a"}));
    let met = [client.receive(), client.receive()];
    assert!(met.iter().all(|answer| text_of(answer).0 == "met"));
    client.create("go");
    let last = client.receive();
    assert_eq!(last["id"], "slow");
    assert_eq!(text_of(&last).0, "found go");
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn a_write_runs_alone() {
    let mut client = Client::initialized(&[]);
    client.call(1, "wait_for", &json!({"file": "read"}));
    client.pids(1);
    client.call(2, "pay", &json!({"file": "paid"}));
    client.call(3, "echo", &json!({"text": "after"}));
    client.create("read");
    client.pids(2);
    client.create("paid");
    let order: Vec<Value> = (0..3).map(|_| client.receive()["id"].clone()).collect();
    assert_eq!(order, [json!(1), json!(2), json!(3)]);
    let ended = client.leave();
    let types = ended.record_types();
    let place = |wanted: &str| types.iter().position(|found| found == wanted).unwrap();
    assert!(
        place("tool_result wait_for") < place("tool_start pay"),
        "{types:?}"
    );
    assert!(
        place("tool_result pay") < place("tool_start echo"),
        "{types:?}"
    );
}

#[test]
fn a_cancelled_call_ends_with_its_processes_and_gets_no_answer() {
    let mut client = Client::initialized(&[]);
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long","reason":"enough"}}"#,
    );
    wait_until_gone(&pids);
    assert_eq!(client.result(2, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    assert_eq!(ended.rest, [""; 0], "no answer to what was cancelled");
    let log = ended.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["status"] == "interrupted");
    assert!(
        end.unwrap().to_string().contains("the client canceled it"),
        "{end:?}"
    );
}

/// Nobody knows whether it has paid.
#[test]
fn a_write_that_is_cancelled_while_it_runs_is_in_doubt_and_holds_up_no_other() {
    let mut client = Client::initialized(&[]);
    client.call(1, "pay", &json!({"file": "paid"}));
    let pids = client.pids(1);
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    wait_until_gone(&pids);
    client.create("other");
    let (text, is_error) = client.result(2, "pay", &json!({"file": "other"}));
    assert_eq!((text.as_str(), is_error), ("found other", false));
    let ended = client.leave();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let log = ended.log();
    let in_doubt = log
        .iter()
        .filter(|record| record["metadata"]["status"] == "in_doubt");
    assert_eq!(in_doubt.count(), 1);
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_never_starts() {
    let mut client = Client::initialized(&[]);
    client.call(1, "pay", &json!({"file": "paid"}));
    client.pids(1);
    client.call(2, "pay", &json!({"file": "never"}));
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    client.create("paid");
    assert_eq!(text_of(&client.receive()).0, "found paid");
    assert_eq!(client.result(3, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    let starts = ended.record_types();
    let starts = starts.iter().filter(|found| *found == "tool_start pay");
    assert_eq!(starts.count(), 1);
    assert!(
        ended
            .log()
            .iter()
            .any(|record| record["metadata"]["status"] == "not_executed")
    );
}

#[test]
fn progress_goes_to_a_client_that_asked_for_it() {
    let mut client = Client::initialized(&[]);
    let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": "p1"}});
    client.send(1, "tools/call", &params);
    let first = client.receive();
    assert_eq!(first["method"], "notifications/progress");
    assert_eq!(
        first["params"],
        json!({"progressToken": "p1", "progress": 0.5, "total": 1.0, "message": "half of [masked]"})
    );
    client.create("more");
    let second = client.receive();
    assert_eq!(second["params"]["message"], "more");
    assert!(second["params"]["progress"].as_f64() > Some(0.5));
    client.create("go");
    assert_eq!(text_of(&client.receive()).0, "done");
    assert_eq!(client.result(2, "work", &json!({})).0, "done");
}

#[test]
fn a_client_that_wants_progress_hears_of_a_silent_call() {
    let mut client = Client::initialized(&[]);
    let params =
        json!({"name": "wait_for", "arguments": {"file": "go"}, "_meta": {"progressToken": 0}});
    client.send(1, "tools/call", &params);
    for _ in 0..2 {
        assert_eq!(client.receive()["params"]["progressToken"], 0);
    }
    client.create("go");
    assert_eq!(text_of(&client.receive()).0, "found go");
}

#[test]
fn a_client_with_too_many_open_calls_is_told_so() {
    let mut client = Client::initialized(&[]);
    for id in 0..=256 {
        client.call(id, "pay", &json!({"file": "paid"}));
    }
    let refused = client.receive();
    assert_eq!(refused["id"], 256);
    let (text, is_error) = text_of(&refused);
    assert!(is_error && text.contains("256 calls are open"), "{text}");
    client.create("paid");
    for id in 0..256 {
        assert_eq!(client.receive()["id"], id);
    }
}

/// What the log shows about calls that ran at the same time, each in a turn of its own.
#[test]
fn log_show_shows_each_call_once() {
    let mut client = Client::initialized(&["--log", "serve.jsonl"]);
    client.call("slow", "wait_for", &json!({"file": "go"}));
    client.pids(1);
    assert_eq!(
        client.result("fast", "echo", &json!({"text": "hi"})).0,
        "hi"
    );
    client.create("go");
    client.receive();
    let ended = client.leave();
    let show = ["log", "show", "serve.jsonl"];
    let shown = ended.sandbox.command(&show).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("no result"), "{shown}");
    for id in ["turn 0: slow", "turn 1: fast"] {
        assert_eq!(shown.matches(id).count(), 1, "{shown}");
    }
}

/// toolq between a client and another server: here, another toolq.
#[test]
fn tools_of_another_server_are_served() {
    let toolq = env!("CARGO_BIN_EXE_toolq");
    let outer = format!(
        r#"
version: 1
servers:
  inner:
    command: {{argv: ["{toolq}", serve, -q, -c, inner.yaml], env: {{XDG_STATE_HOME: inner-state}}}}
tools:
  say: {{input_schema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}, effect: read, mcp: {{server: inner, tool: echo}}}}
  hang: {{input_schema: {{type: object}}, effect: read, timeout: 1000s, mcp: {{server: inner}}}}
"#
    );
    let sandbox = CliSandbox::new().tools(&outer).file("inner.yaml", TOOLS);
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    assert_eq!(client.result(1, "say", &json!({"text": "hi"})).0, "hi");
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}}"#,
    );
    wait_until_gone(&pids);
    assert_eq!(client.result(2, "say", &json!({"text": "ho"})).0, "ho");
    assert_eq!(client.leave().rest, [""; 0]);
}

/// A server whose tools have output schemas. It answers with the arguments of the call.
const STRUCTURED_SERVER: &str = r#"#!/bin/sh
schema='"inputSchema":{"type":"object"},"outputSchema"'
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *'"method":"initialize"'*)
    result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *'"method":"tools/list"'*)
    result='{"tools":[{"name":"weigh",'$schema':{"type":"object","properties":{"kg":{"type":["number","string"]}},"required":["kg"]}},{"name":"list",'$schema':{"type":"array"}}]}' ;;
  *'"method":"tools/call"'*)
    rest=${line#*'"arguments":'}
    case $rest in
    *'"array"'*) content=',"structuredContent": [ 1.50, 2 ]' ;;
    *'"none"'*) content= ;;
    *'"long"'*) content=',"structuredContent":{"kg":1,"more":"'$(printf '%0200d' 0)'"}' ;;
    *'"secret"'*) content=',"structuredContent":{"kg":"'$S_TOKEN'"}' ;;
    *) content=',"structuredContent": { "kg": 1.50 }' ;;
    esac
    result='{"content":[{"type":"text","text":"some kilograms"}]'$content'}' ;;
  *)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\n' "$id"
    continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const STRUCTURED_TOOLS: &str = r#"
version: 1
servers:
  s: {command: {argv: [./server], env: {S_TOKEN: "${S_TOKEN}"}}, prefix: "", defaults: {max_output: 100}}
tools:
  weigh_as_json: {effect: read, output: json, mcp: {server: s, tool: weigh, arguments: {}}, input_schema: {type: object}}
  weigh: {effect: read, mcp: {server: s}}
"#;

fn structured_client() -> Client {
    let sandbox = CliSandbox::new()
        .tools(STRUCTURED_TOOLS)
        .program("server", STRUCTURED_SERVER)
        .env("S_TOKEN", "s3cr3t-canary");
    let locked = sandbox.command(&["-q", "servers", "lock"]).output();
    assert!(locked.unwrap().status.success());
    let mut client = Client::start(sandbox, &["serve", "-q"]);
    client.initialize();
    client
}

fn listed_output_schema(listed: &Value, name: &str) -> Option<Value> {
    let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == name).unwrap();
    tool.get("outputSchema").cloned()
}

#[test]
fn the_structured_content_of_another_server_passes_through() {
    let mut client = structured_client();
    let listed = client.ask(1, "tools/list", &json!({}));
    for name in ["weigh", "weigh_as_json"] {
        let schema = listed_output_schema(&listed, name).unwrap();
        assert_eq!(schema["required"], json!(["kg"]), "{name}");
    }
    client.call(2, "weigh", &json!({}));
    let line = client.messages.recv_timeout(PATIENCE).unwrap();
    assert!(
        line.contains(r#""structuredContent":{"kg":1.50}"#)
            && line.contains(r#""text":"some kilograms""#)
            && line.contains(r#""isError":false"#),
        "{line}"
    );
    client.call(3, "weigh_as_json", &json!({}));
    let answer = client.receive();
    assert_eq!(answer["result"]["structuredContent"]["kg"], json!(1.5));
    assert_eq!(text_of(&answer).0, r#"{"kg":1.50}"#);
    client.call(4, "weigh", &json!({"x": "secret"}));
    let answer = client.receive();
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"kg": "[masked]"})
    );
}

/// Clients refuse a result without the structured content that the list has promised.
#[test]
fn a_result_without_its_promised_structured_content_is_an_error_with_its_text() {
    let mut client = structured_client();
    for kind in ["none", "long"] {
        client.call(kind, "weigh", &json!({"x": kind}));
        let answer = client.receive();
        let (text, is_error) = text_of(&answer);
        assert!(
            is_error && text.contains("sent no structured content"),
            "{answer}"
        );
        assert_eq!(answer["result"]["content"][1]["text"], "some kilograms");
        assert_eq!(answer["result"].get("structuredContent"), None);
    }
}

#[test]
fn a_legacy_client_gets_no_array_of_another_server() {
    let mut client = structured_client();
    let listed = client.ask(1, "tools/list", &json!({}));
    assert_eq!(listed_output_schema(&listed, "list"), None);
    client.call(2, "list", &json!({"x": "array"}));
    let answer = client.receive();
    assert_eq!(text_of(&answer), ("some kilograms".to_owned(), false));
    assert_eq!(answer["result"].get("structuredContent"), None);
    let listed = client.ask(3, "tools/list", &modern(&json!({})));
    assert!(listed_output_schema(&listed, "list").is_some());
    let call = modern(&json!({"name": "list", "arguments": {"x": "array"}}));
    let answer = client.ask(4, "tools/call", &call);
    assert_eq!(answer["result"]["structuredContent"], json!([1.5, 2]));
}

#[test]
fn failures_in_a_row_pause_a_tool_across_calls() {
    let mut client = Client::initialized(&[]);
    let results = [1, 2, 3].map(|id| client.result(id, "fail", &json!({})).0);
    assert!(results[1].contains("no cheese"), "{results:?}");
    assert!(!results[2].contains("no cheese"), "{results:?}");
}

#[test]
fn the_end_of_input_ends_what_still_runs() {
    let mut client = Client::initialized(&[]);
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    let ended = client.leave();
    wait_until_gone(&pids);
    assert_eq!(ended.rest.len(), 1, "{:?}", ended.rest);
    assert!(
        ended.rest[0].contains("the client has left"),
        "{:?}",
        ended.rest
    );
    let log = ended.log();
    assert_eq!(log.last().unwrap()["type"], "session_end");
}

#[test]
fn calls_that_came_before_the_end_of_input_are_answered() {
    let mut client = Client::initialized(&[]);
    client.call(1, "echo", &json!({"text": "hi"}));
    client.call(2, "pay", &json!({"file": "tools.yaml"}));
    let ended = client.leave();
    assert_eq!(ended.rest.len(), 2, "{:?}", ended.rest);
}

#[test]
fn a_signal_ends_the_server_and_answers_its_calls() {
    let mut client = Client::initialized(&[]);
    client.call(1, "hang", &json!({}));
    let pids = client.pids(2);
    kill_process(Pid::from_child(&client.server), Signal::TERM).unwrap();
    let (text, is_error) = text_of(&client.receive());
    assert!(is_error && text.contains("stopped from outside"), "{text}");
    let ended = client.wait();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    wait_until_gone(&pids);
}

#[test]
fn a_client_that_goes_away_takes_its_calls_with_it() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut server = sandbox.command(&["serve"]).spawn().unwrap();
    let request = modern(&json!({"name": "hang", "arguments": {}}));
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": request});
    writeln!(server.stdin.as_mut().unwrap(), "{request}").unwrap();
    let read = || fs::read_to_string(sandbox.path().join("pids")).unwrap_or_default();
    wait_until("the tool has started", || read().lines().count() == 2);
    let pids: Vec<String> = read().lines().map(str::to_owned).collect();
    // stdin stays open.
    drop(server.stdout.take());
    wait_until_gone(&pids);
    server.wait().unwrap();
}

/// It can be asked to end, and neither takes memory without end nor reads what it can't answer.
#[test]
fn a_client_that_never_reads_keeps_no_server_alive() {
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut server = sandbox.command(&["serve"]).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(&json!({}))});
    let writer = thread::spawn(move || while writeln!(stdin, "{request}").is_ok() {});
    let pid = Pid::from_child(&server);
    let stdout = server.stdout.take().unwrap();
    wait_until("the pipe is full", || {
        rustix::io::ioctl_fionread(&stdout).unwrap() > 60_000
    });
    kill_process(pid, Signal::TERM).unwrap();
    // 143 if everything still fitted into the pipe.
    let code = server.wait().unwrap().code();
    assert!(matches!(code, Some(74 | 143)), "{code:?}");
    writer.join().unwrap();
}

/// A write that was running is in doubt from then on, and nobody runs it again.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_server_leaves_no_process_and_its_write_in_doubt() {
    let arguments = ["serve", "--log", "serve.jsonl"];
    let sandbox = CliSandbox::new().tools(TOOLS);
    let mut client = Client::start(sandbox, &arguments);
    client.initialize();
    client.call(1, "pay", &json!({"file": "paid"}));
    let pids = client.pids(1);
    kill_process(Pid::from_child(&client.server), Signal::KILL).unwrap();
    wait_until_gone(&pids);
    let killed = client.wait();
    assert_eq!(killed.code, None);

    let mut client = Client::start(killed.sandbox, &arguments);
    client.initialize();
    assert_eq!(client.result(1, "echo", &json!({"text": "hi"})).0, "hi");
    let ended = client.leave();
    assert!(
        ended.stderr.contains("1 call in doubt: ") && ended.stderr.contains("(pay)"),
        "{}",
        ended.stderr
    );
    let log = fs::read_to_string(ended.sandbox.path().join("serve.jsonl")).unwrap();
    let starts = log.lines().filter(|line| {
        line.contains(r#""type":"tool_start""#) && line.contains(r#""tool_name":"pay""#)
    });
    assert_eq!(starts.count(), 1);
}

#[test]
fn flags_choose_the_tools_that_are_served() {
    for (flags, expected) in [
        (
            &["--only", "w*", "--only", "pay"][..],
            &["wait_for", "pay", "work"][..],
        ),
        (&["--only", "[pw]*", "--read-only"], &["wait_for"]),
    ] {
        let mut client = Client::initialized(flags);
        let listed = client.ask(1, "tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{flags:?}");
        let refused = client.ask(
            2,
            "tools/call",
            &json!({"name": "echo", "arguments": {"text": "a"}}),
        );
        assert_eq!(refused["error"]["code"], -32602);
    }
}

#[test]
fn what_cannot_be_served_is_an_error_before_the_first_message() {
    let dotted = "version: 1\ntools:\n  a.b: {input_schema: {type: object}, command: [date]}\n";
    for (tools, flags, problem) in [
        (TOOLS, &["--only", "nothing"][..], "no tool is left"),
        (TOOLS, &["--only", "["], "--only ["),
        (dotted, &[], "the name a.b"),
        ("version: 1\ntools: {a: 1}\n", &[], "can't be used"),
    ] {
        let sandbox = CliSandbox::new().tools(tools);
        let output = sandbox.run(&[&["serve"], flags].concat()).assert_exit(2);
        assert!(output.stderr.contains(problem), "{}", output.stderr);
        assert_eq!(output.stdout, "");
    }
}

/// Prints the configuration for a client, with a variable that the tools need.
fn print_configuration(client: &str) -> (String, String, CliSandbox) {
    let tools = "version: 1\nsecrets: [TOKEN]\ntools: {a: {input_schema: {type: object}, effect: read, command: [date]}}\n";
    let sandbox = CliSandbox::new().file("my tools/tools.yaml", tools);
    let serve = ["serve", "-c", "my tools/tools.yaml", "--print", client];
    let arguments = [&serve[..], &["--only", "a*", "--read-only"]].concat();
    let output = sandbox.command(&arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (stdout, stderr, sandbox)
}

/// The arguments that a configuration must have: clients start servers in any directory.
fn printed_arguments(sandbox: &CliSandbox) -> Value {
    let dir = fs::canonicalize(sandbox.path()).unwrap();
    let file = dir.join("my tools/tools.yaml");
    json!(["serve", "-q", "-c", file, "--only", "a*", "--read-only"])
}

/// Claude Code: <https://code.claude.com/docs/en/mcp>, `mcpServers` with `${NAME}`. Cursor:
/// <https://cursor.com/docs/mcp>, `mcpServers` with `${env:NAME}`. VS Code:
/// <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>, `servers`, whose `type` is required.
#[test]
fn the_configuration_of_a_client_starts_this_server() {
    for (client, key, reference, file) in [
        ("claude", "mcpServers", "${TOKEN}", "for .mcp.json"),
        (
            "cursor",
            "mcpServers",
            "${env:TOKEN}",
            "for .cursor/mcp.json",
        ),
        ("vscode", "servers", "${env:TOKEN}", "for .vscode/mcp.json"),
    ] {
        let (stdout, stderr, sandbox) = print_configuration(client);
        assert!(stderr.contains(file), "{client}: {stderr}");
        let printed: Value = serde_json::from_str(&stdout).unwrap();
        let server = json!({
            "type": "stdio",
            "command": fs::canonicalize(env!("CARGO_BIN_EXE_toolq")).unwrap(),
            "args": printed_arguments(&sandbox),
            "env": {"TOKEN": reference},
        });
        assert_eq!(printed, json!({key: {"my_tools": server}}), "{client}");
    }
}

/// <https://developers.openai.com/codex/mcp>: a table `mcp_servers.NAME`; `env_vars` are the variables to forward.
#[test]
fn the_configuration_of_codex_is_toml() {
    let (stdout, stderr, sandbox) = print_configuration("codex");
    assert!(stderr.contains("config.toml"), "{stderr}");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_toolq")).unwrap();
    let expected = format!(
        "[mcp_servers.my_tools]\ncommand = {}\nargs = {}\nenv_vars = [\"TOKEN\"]\n",
        json!(program),
        printed_arguments(&sandbox)
    );
    assert_eq!(stdout, expected);
}

/// Definitions before and after a signal. The tool `slow` ends when a file appears.
fn reloadable(word: &str, more: &str) -> String {
    format!(
        "version: 1
tools:
  say: {{effect: read, input_schema: {{type: object}}, command: [echo, {word}]}}
  slow:
    effect: read
    timeout: 100s
    input_schema: {{type: object, properties: {{file: {{type: string}}}}}}
    command: [sh, -c, 'echo $$ >> pids; until [ -e \"$1\" ]; do sleep 0.01; done; echo {word}', --, \"{{file}}\"]
{more}"
    )
}

const RELOADED_TOOL: &str =
    "  new: {effect: read, input_schema: {type: object}, command: [echo, fresh]}\n";

impl Client {
    /// Replaces tools.yaml, and asks the server to read it.
    fn reload(&self, tools: &str) {
        fs::write(self.dir().join("tools.yaml"), tools).unwrap();
        let server = Pid::from_child(&self.server);
        kill_process(server, Signal::USR1).unwrap();
    }

    fn listed_names(&mut self) -> Vec<String> {
        self.send("list", "tools/list", &json!({}));
        let listed = loop {
            let message = self.receive();
            if message["id"] == "list" {
                break message;
            }
        };
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn wait_until_listed(&mut self, names: &[&str]) {
        let begin = Instant::now();
        while self.listed_names() != names {
            assert!(begin.elapsed() < PATIENCE, "waiting for {names:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads stderr until a line contains `text`, and returns all of it.
    fn stderr_until(&mut self, text: &str) -> String {
        let stderr = self.server.stderr.as_mut().unwrap();
        let (mut read, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&read).contains(text) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "no {text:?} on stderr");
            read.push(byte[0]);
        }
        String::from_utf8(read).unwrap()
    }
}

fn reloading_client(tools: &str) -> Client {
    let sandbox = CliSandbox::new().tools(tools);
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    client
}

#[test]
fn a_signal_puts_new_definitions_into_force_and_running_calls_keep_theirs() {
    let old = reloadable(
        "before",
        "  old: {effect: read, input_schema: {type: object}, command: [echo, old]}\n",
    );
    let mut client = reloading_client(&old);
    assert_eq!(client.result(1, "say", &json!({})).0, "before");
    client.call(2, "slow", &json!({"file": "go"}));
    client.pids(1);
    client.reload(&reloadable("after", RELOADED_TOOL));
    client.wait_until_listed(&["say", "slow", "new"]);
    assert_eq!(client.result(3, "new", &json!({})).0, "fresh");
    assert_eq!(client.result(4, "say", &json!({})).0, "after");
    let refused = client.ask(5, "tools/call", &json!({"name": "old", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32602);
    client.create("go");
    assert_eq!(text_of(&client.receive()), ("before".to_owned(), false));
    assert_eq!(client.result(6, "slow", &json!({"file": "go"})).0, "after");
    let ended = client.leave();
    assert_eq!(ended.code, Some(0));
    let note = "tools.yaml was read again; added: new; removed: old; changed: say, slow";
    assert!(ended.stderr.contains(note), "{}", ended.stderr);
    let log = ended.log();
    let changes: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "tools_change")
        .collect();
    let [change] = changes[..] else {
        panic!("{changes:?}");
    };
    let metadata = &change["metadata"];
    assert_eq!(
        (
            &metadata["added"],
            &metadata["removed"],
            &metadata["changed"]
        ),
        (&json!(1), &json!(1), &json!(2))
    );
    assert_ne!(
        metadata["tools"]["sha256"],
        log[0]["metadata"]["tools"]["sha256"]
    );
}

#[test]
fn included_files_are_read_again() {
    let main = format!("include: [more.yaml]\n{}", reloadable("before", ""));
    let sandbox = CliSandbox::new()
        .tools(&main)
        .file("more.yaml", format!("tools:\n{RELOADED_TOOL}"));
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    assert_eq!(client.listed_names(), ["say", "slow", "new"]);
    let renamed = RELOADED_TOOL.replace("new", "newer");
    fs::write(client.dir().join("more.yaml"), format!("tools:\n{renamed}")).unwrap();
    client.reload(&main);
    client.wait_until_listed(&["say", "slow", "newer"]);
}

#[test]
fn what_cannot_come_into_force_is_said_and_changes_nothing() {
    let mut client = reloading_client(&reloadable("before", ""));
    fs::write(client.dir().join(".env"), "A=1\n").unwrap();
    client.reload("version: 1\ntools:\n  say: {timout: 5s}\n");
    let stderr = client.stderr_until("can't be used; the tools stay as they were");
    assert!(stderr.contains("tools.yaml:3:"), "{stderr}");
    assert_eq!(client.result(1, "say", &json!({})).0, "before");
    for (tools, why) in [
        (
            format!("root: /\n{}", reloadable("after", "")),
            "`root` can't change",
        ),
        (
            format!("concurrency: 99\n{}", reloadable("after", "")),
            "`concurrency` can't change",
        ),
        (
            format!("env_file: .env\n{}", reloadable("after", "")),
            "what `env_file` says can't change",
        ),
        (
            format!("secrets: [PATH]\n{}", reloadable("after", "")),
            "PATH is new",
        ),
        (
            "version: 1\ntools: {a: {input_schema: {type: object}}}\n".to_owned(),
            "no tool is left to serve",
        ),
    ] {
        client.reload(&tools);
        client.stderr_until(why);
        assert_eq!(client.result(1, "say", &json!({})).0, "before");
        assert_eq!(client.listed_names(), ["say", "slow"]);
    }
    client.reload(&reloadable("after", RELOADED_TOOL));
    client.wait_until_listed(&["say", "slow", "new"]);
}

/// A server that answers with its pid, or first waits for a file.
const PID_SERVER: &str = r#"#!/bin/sh
while read -r line; do
  rest=${line#*'"id":'}
  id=${rest%%,*}
  case $line in
  *'"method":"initialize"'*)
    result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *'"method":"tools/call"'*)
    case $line in *'"wait"'*) : > waiting; until [ -e go ]; do sleep 0.01; done ;; esac
    result='{"content":[{"type":"text","text":"'$$'"}]}' ;;
  *)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}\n' "$id"
    continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn two_servers(argument: &str, with_third: bool) -> String {
    let tool = |name: &str| {
        format!(
            "  {name}: {{effect: read, timeout: 100s, input_schema: {{type: object}}, mcp: {{server: {name}, tool: pid}}}}\n"
        )
    };
    let (mut servers, mut tools) = (String::new(), String::new());
    for (name, argument) in [("same", "x"), ("other", argument), ("gone", "x")] {
        if name != "gone" || with_third {
            let server = format!("  {name}: {{command: [./server, {argument}]}}\n");
            servers += &server;
            tools += &tool(name);
        }
    }
    format!("version: 1\nservers:\n{servers}tools:\n{tools}")
}

#[test]
fn only_servers_that_are_configured_differently_end_once_their_calls_have() {
    let sandbox = CliSandbox::new()
        .tools(&two_servers("one", true))
        .program("server", PID_SERVER);
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    let pid = |client: &mut Client, tool: &str| client.result("p", tool, &json!({})).0;
    let [same, other, gone] = ["same", "other", "gone"].map(|tool| pid(&mut client, tool));
    client.call("w", "other", &json!({"wait": true}));
    let waiting = client.dir().join("waiting");
    wait_until("the server works", || waiting.exists());
    client.reload(&two_servers("two", false));
    client.wait_until_listed(&["same", "other"]);
    wait_until_gone(&[gone]);
    assert_eq!(pid(&mut client, "same"), same);
    client.create("go");
    assert_eq!(text_of(&client.receive()), (other.clone(), false));
    let restarted = pid(&mut client, "other");
    assert_ne!(restarted, other);
    assert!(!is_running(&other) && is_running(&restarted));
    let ended = client.leave();
    ended.log();
    wait_until_gone(&[same, restarted]);
}
