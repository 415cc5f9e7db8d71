//! The server's side of a connection over stdin and stdout, and what a decent server does.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Stdin, Write as _};
use std::process::exit;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::servers::script::Script;

/// A message of the client.
pub struct Request(pub Value);

impl Request {
    pub fn id(&self) -> &Value {
        &self.0["id"]
    }

    pub fn method(&self) -> &str {
        self.0["method"].as_str().unwrap_or_default()
    }

    /// The name of the tool that is called.
    pub fn tool(&self) -> &str {
        self.0["params"]["name"].as_str().unwrap_or_default()
    }

    /// The number of the call that is made.
    pub fn number(&self) -> u64 {
        self.0["params"]["arguments"]["n"]
            .as_u64()
            .unwrap_or_default()
    }

    pub fn has_effect(&self) -> bool {
        self.0["params"]["arguments"]["pays"] == true
    }

    /// What the call has to be answered with.
    pub fn text(&self) -> String {
        format!("done {}", self.number())
    }

    pub fn result(&self) -> Value {
        text_result(&self.text())
    }

    /// Does what the call asks for: adds a line to a file.
    pub fn apply(&self) {
        if self.has_effect() {
            append("effects", &self.text());
        }
    }
}

/// A connection.
pub struct Wire {
    script: Script,
    input: BufReader<Stdin>,
    pub line_end: &'static str,
    /// What a row remembers from one step to another.
    pub kept: Vec<Value>,
    /// How often the server was started before.
    pub earlier_starts: usize,
}

impl Wire {
    /// Is the server until its stdin ends.
    pub fn serve(script: Script) {
        let earlier_starts = fs::read_to_string("starts").unwrap_or_default();
        append("starts", "start");
        let mut wire = Self {
            script,
            input: BufReader::new(io::stdin()),
            line_end: "\n",
            kept: Vec::new(),
            earlier_starts: earlier_starts.lines().count(),
        };
        (script.at_start)(&mut wire);
        while let Some(request) = wire.read() {
            wire.dispatch(&request);
        }
        (script.at_end)(&mut wire);
    }

    /// Waits for the next message.
    pub fn read(&mut self) -> Option<Request> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).unwrap_or_default();
        (read > 0).then(|| Request(serde_json::from_str(&line).unwrap_or_default()))
    }

    /// Returns whether the client has sent something more.
    pub fn has_message(&self) -> bool {
        if !self.input.buffer().is_empty() {
            return true;
        }
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    pub fn dispatch(&mut self, request: &Request) {
        let script = self.script;
        let action = match request.method() {
            "server/discover" => script.on_discover,
            "initialize" => script.on_initialize,
            "tools/list" => script.on_list,
            "tools/call" if request.tool() == "act" => script.on_call,
            "tools/call" => Self::answer_call,
            _ => script.on_other,
        };
        action(self, request);
    }

    /// Writes bytes at once. Ends with the client.
    #[allow(
        clippy::unused_self,
        reason = "a method, like everything that a row does"
    )]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut stdout = io::stdout();
        if stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .is_err()
        {
            exit(0);
        }
    }

    /// Writes a line.
    pub fn line(&mut self, text: &str) {
        let line = format!("{text}{}", self.line_end);
        self.bytes(line.as_bytes());
    }

    pub fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// Sends an answer. `members` are those beside `jsonrpc`.
    pub fn respond(&mut self, id: &Value, mut members: Value) {
        members["jsonrpc"] = json!("2.0");
        members["id"] = id.clone();
        self.send(&members);
    }

    pub fn answer(&mut self, request: &Request, result: Value) {
        let mut result = result;
        if self.script.is_modern && result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        self.respond(request.id(), json!({ "result": result }));
    }

    pub fn refuse(&mut self, request: &Request, code: i64, message: &str) {
        self.respond(
            request.id(),
            json!({"error": {"code": code, "message": message}}),
        );
    }

    /// Sends a request, and waits for its answer. Serves other messages meanwhile.
    pub fn ask(&mut self, id: &Value, method: &str) -> Request {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}));
        loop {
            let Some(message) = self.read() else { exit(0) };
            if message.id() == id && message.method().is_empty() {
                return message;
            }
            self.dispatch(&message);
        }
    }

    pub fn answer_discover(&mut self, request: &Request) {
        if self.script.is_modern {
            self.answer(request, discovery());
        } else {
            self.refuse(request, -32601, "Method not found");
        }
    }

    pub fn answer_initialize(&mut self, request: &Request) {
        self.answer(request, initialization("2025-11-25"));
    }

    pub fn answer_list(&mut self, request: &Request) {
        self.answer(request, json!({ "tools": tools() }));
    }

    /// Does what the call asks for, and answers it.
    pub fn answer_call(&mut self, request: &Request) {
        request.apply();
        self.answer(request, request.result());
    }

    /// Does what the call asks for, and answers it with this line, in which `ID` and `TEXT` are replaced by those of the
    /// call.
    pub fn answer_call_with_line(&mut self, request: &Request, line: &str) {
        request.apply();
        let line = line.replace("ID", &request.id().to_string());
        self.line(&line.replace("TEXT", &request.text()));
    }
}

pub fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// What a server of the modern era says about itself.
pub fn discovery() -> Value {
    json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "hostile", "version": "1"}}})
}

/// What a server of the legacy era says about itself.
pub fn initialization(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}})
}

/// The tools of every server.
pub fn tools() -> Vec<Value> {
    ["hello", "act"]
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .to_vec()
}

fn append(file: &str, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Reads stdin to its end, and throws it away.
pub fn drain_stdin() {
    let _ = io::stdin().read_to_end(&mut Vec::new());
}
