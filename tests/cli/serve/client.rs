//! A client of `toolq serve` on pipes, and the tools that it calls.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc;
use std::{fs, thread};

use crate::support::waiting::{PATIENCE, wait_until};
use crate::support::{CliSandbox, parse_json_lines};
use serde_json::{Value, json};

pub(crate) const TOOLS: &str = r#"
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

/// A client and the server that it has started.
pub(crate) struct Client {
    pub(crate) server: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) messages: mpsc::Receiver<String>,
    pub(crate) sandbox: CliSandbox,
}

impl Client {
    pub(crate) fn start(sandbox: CliSandbox, arguments: &[&str]) -> Self {
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

    pub(crate) fn serve(arguments: &[&str]) -> Self {
        let sandbox = CliSandbox::new().tools(TOOLS).env("TOKEN", "s3cr3t-canary");
        Self::start(sandbox, &[&["serve"], arguments].concat())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.sandbox.path()
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Returns the next message of the server.
    #[track_caller]
    pub(crate) fn receive(&self) -> Value {
        let line = self.messages.recv_timeout(PATIENCE).expect("a message");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    pub(crate) fn send(&mut self, id: impl Into<Value>, method: &str, params: &Value) {
        let id: Value = id.into();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(&request.to_string());
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, id: impl Into<Value>, method: &str, params: &Value) -> Value {
        let id: Value = id.into();
        self.send(id.clone(), method, params);
        let answer = self.receive();
        assert_eq!(answer["id"], id);
        answer
    }

    /// Agrees on a version, as clients of the legacy era do.
    pub(crate) fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask("init", "initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        self.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub(crate) fn initialized(arguments: &[&str]) -> Self {
        let mut client = Self::serve(arguments);
        client.initialize();
        client
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(id, "tools/call", &params);
    }

    /// Makes a call, and returns the text of its result and whether it is an error.
    #[track_caller]
    pub(crate) fn result(
        &mut self,
        id: impl Into<Value>,
        tool: &str,
        arguments: &Value,
    ) -> (String, bool) {
        self.call(id, tool, arguments);
        text_of(&self.receive())
    }

    /// Returns the pids that tools have noted, once there are as many.
    pub(crate) fn pids(&self, count: usize) -> Vec<String> {
        let read = || fs::read_to_string(self.dir().join("pids")).unwrap_or_default();
        wait_until("the tool has started", || read().lines().count() == count);
        read().lines().map(str::to_owned).collect()
    }

    pub(crate) fn create(&self, name: &str) {
        fs::write(self.dir().join(name), "").unwrap();
    }

    /// Closes stdin and returns the exit code, what is left on stdout, and stderr.
    pub(crate) fn leave(mut self) -> EndedServer {
        self.stdin = None;
        self.wait()
    }

    pub(crate) fn wait(mut self) -> EndedServer {
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

pub(crate) struct EndedServer {
    pub(crate) code: Option<i32>,
    /// The messages that weren't received yet.
    pub(crate) rest: Vec<String>,
    pub(crate) stderr: String,
    pub(crate) sandbox: CliSandbox,
}

impl EndedServer {
    /// Returns the records of the only log, which must be valid.
    pub(crate) fn log(&self) -> Vec<Value> {
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
    pub(crate) fn record_types(&self) -> Vec<String> {
        let of_calls = |record: &Value| {
            let tool = record["metadata"]["tool_name"].as_str()?;
            Some(format!("{} {tool}", record["type"].as_str()?))
        };
        self.log().iter().filter_map(of_calls).collect()
    }
}

pub(crate) fn text_of(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"].as_bool().unwrap())
}

pub(crate) fn modern(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

pub(crate) fn listed_output_schema(listed: &Value, name: &str) -> Option<Value> {
    let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == name).unwrap();
    tool.get("outputSchema").cloned()
}
