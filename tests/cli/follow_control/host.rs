//! The host process that a test plays.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout};
use std::rc::Rc;

use serde_json::{Value, json};

use crate::support::CliSandbox;

/// The value of the secret TOKEN.
pub(crate) const SECRET: &str = "s3cr3t-value-of-mine";

/// A toolq, and the host's ends of its pipes.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(crate) dir: PathBuf,
    sandbox: Rc<CliSandbox>,
}

/// How a toolq ended.
pub(crate) struct HostEnd {
    /// -1 if it was killed.
    pub(crate) code: i32,
    /// The lines that it wrote after the end of its stdin.
    pub(crate) lines: Vec<Value>,
    pub(crate) stderr: String,
    pub(crate) dir: PathBuf,
    _sandbox: Rc<CliSandbox>,
}

impl Host {
    /// Starts toolq with this tools.yaml; an empty text is no file.
    pub(crate) fn start(tools: &str, flags: &[&str]) -> Self {
        let sandbox = match tools {
            "" => CliSandbox::new(),
            tools => CliSandbox::new().tools(tools),
        };
        Self::start_in(&Rc::new(sandbox), flags, &[])
    }

    /// Starts toolq in the directory of `sandbox`, with these variables.
    pub(crate) fn start_in(
        sandbox: &Rc<CliSandbox>,
        flags: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let arguments = ["run", "--follow", "--control", "--log", "log.jsonl"];
        let mut command = sandbox.command(&[&arguments[..], flags].concat());
        command.env("TOKEN", SECRET).envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            dir: sandbox.path().to_owned(),
            sandbox: Rc::clone(sandbox),
        }
    }

    /// Where it runs.
    pub(crate) fn sandbox(&self) -> &CliSandbox {
        &self.sandbox
    }

    pub(crate) fn send(&mut self, line: &str) {
        assert!(self.try_send(line), "toolq is gone");
    }

    /// Returns whether toolq is there to read it.
    pub(crate) fn try_send(&mut self, line: &str) -> bool {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").is_ok()
    }

    pub(crate) fn send_json(&mut self, line: &Value) {
        self.send(&line.to_string());
    }

    /// Announces tools, each with `backing: host`, and an input that is any object if it has no schema.
    pub(crate) fn announce(&mut self, mut tools: Value) {
        for (_, tool) in tools.as_object_mut().unwrap() {
            tool["backing"] = json!("host");
            if tool.get("input_schema").is_none() {
                tool["input_schema"] = json!({"type": "object"});
            }
        }
        self.send_json(&json!({"type": "tools", "tools": tools}));
        assert_eq!(self.read(), json!({"type": "ready"}));
    }

    /// Sends a turn whose calls have the ids t0, t1 and so on.
    pub(crate) fn turn(&mut self, id: &str, calls: &[(&str, Value)]) {
        let blocks = calls.iter().enumerate().map(|(at, (name, input))| {
            json!({"type": "tool_use", "id": format!("t{at}"), "name": name, "input": input})
        });
        let blocks: Vec<Value> = blocks.collect();
        self.send_json(&json!({"type": "turn", "id": id, "message": blocks}));
    }

    /// Sends the result of a call, which `read` returned.
    pub(crate) fn answer_call(&mut self, call: &Value, content: &Value) {
        self.send_json(&json!({
            "type": "result",
            "id": call["id"],
            "number": call["number"],
            "tool_use_id": call["call"]["tool_use_id"],
            "content": content,
        }));
    }

    pub(crate) fn read(&mut self) -> Value {
        self.try_read().expect("a line")
    }

    /// Returns `None` if toolq is gone.
    pub(crate) fn try_read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if !line.ends_with('\n') {
            return None;
        }
        let json = serde_json::from_str(&line);
        Some(json.unwrap_or_else(|_| panic!("{line:?}")))
    }

    /// Reads a line, which must be of this type.
    pub(crate) fn read_type(&mut self, kind: &str) -> Value {
        let line = self.read();
        assert_eq!(line["type"], kind, "{line}");
        line
    }

    /// Closes stdin, and waits for the end.
    pub(crate) fn end(mut self) -> HostEnd {
        drop(self.stdin.take());
        let mut lines = Vec::new();
        while let Some(line) = self.stdout.by_ref().lines().next() {
            lines.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        let output = self.child.wait_with_output().unwrap();
        HostEnd {
            code: output.status.code().unwrap_or(-1),
            lines,
            stderr: String::from_utf8(output.stderr).unwrap(),
            dir: self.dir,
            _sandbox: self.sandbox,
        }
    }
}
