//! Runs toolq while the test is still writing its input.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::support::waiting::{PATIENCE, wait_until};
use crate::support::{CliSandbox, parse_json_lines};

/// Tools that create the file `TOOL.NAME`, where `NAME` is their input. `wait` exits when the file `NAME.go` exists.
pub const TOOLS: &str = r#"
version: 1
tools:
  look:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name], additionalProperties: false}
    effect: read
    command: {argv: [sh, -c, 'echo "saw $1"; : > "look.$1"', --, "{name}"], stdin: none}
  renew:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    effect: idempotent
    command: {argv: [sh, -c, 'echo "renewed $1"; : > "renew.$1"', --, "{name}"], stdin: none}
  change:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    command: {argv: [sh, -c, 'echo "changed $1"; : > "change.$1"', --, "{name}"], stdin: none}
  wait:
    description: d
    input_schema: {type: object, properties: {name: {type: string}}, required: [name]}
    effect: read
    command: {argv: [sh, -c, ': > "wait.$1"; until [ -e "$1.go" ]; do sleep 0.02; done; echo "waited for $1"', --, "{name}"], stdin: none}
"#;

/// A running toolq.
pub struct InteractiveRun {
    toolq: CliSandbox,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
}

/// The output of a toolq that has exited.
pub struct InteractiveRunOutput {
    pub code: i32,
    /// The output that `next_line` hasn't returned.
    pub stdout: String,
    pub stderr: String,
    toolq: CliSandbox,
}

impl InteractiveRun {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(CliSandbox::new().tools(TOOLS), arguments)
    }

    pub fn start_in(toolq: CliSandbox, arguments: &[&str]) -> Self {
        let mut child = toolq.command(arguments).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            stdout
                .lines()
                .try_for_each(|line| sender.send(line.unwrap()))
        });
        let mut errors = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        Self {
            toolq,
            stdin: child.stdin.take(),
            child,
            lines,
            stderr,
        }
    }

    pub fn send(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Waits until toolq has taken all that was sent out of the pipe.
    #[track_caller]
    pub fn wait_until_read(&self) {
        let stdin = self.stdin.as_ref().unwrap();
        wait_until("the input is read", || {
            rustix::io::ioctl_fionread(stdin).unwrap() == 0
        });
    }

    /// Returns the next line on stdout.
    #[track_caller]
    pub fn next_line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line of output")
    }

    /// Waits until a file exists.
    #[track_caller]
    pub fn wait_for_file(&self, name: &str) {
        self.wait_for_text(name, |_| true);
    }

    /// Waits until a file has the expected text.
    #[track_caller]
    pub fn wait_for_text(&self, name: &str, is_expected: impl Fn(&str) -> bool) {
        wait_until(name, || {
            fs::read_to_string(self.path_of(name)).is_ok_and(|text| is_expected(&text))
        });
    }

    pub fn has_file(&self, name: &str) -> bool {
        self.path_of(name).exists()
    }

    /// Creates an empty file.
    pub fn create_file(&self, name: &str) {
        fs::write(self.path_of(name), "").unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until toolq exits, without closing its stdin.
    pub fn wait(mut self) -> InteractiveRunOutput {
        wait_until("toolq exits", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        InteractiveRunOutput {
            code: status.code().unwrap_or(-1),
            stdout: self.lines.iter().map(|line| line + "\n").collect(),
            stderr: self.stderr.join().unwrap(),
            toolq: self.toolq,
        }
    }

    /// Closes its stdin and waits until it exits.
    pub fn close_and_wait(mut self) -> InteractiveRunOutput {
        self.stdin = None;
        self.wait()
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.toolq.path().join(name)
    }
}

impl InteractiveRunOutput {
    #[track_caller]
    pub fn assert_exit(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\nstdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// Returns the ID and the first line of each result in the one message on stdout. The line of an error begins with
    /// `!`.
    pub fn result_lines(&self) -> Vec<String> {
        let message: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        });
        result_lines(&message)
    }

    pub fn has_file(&self, name: &str) -> bool {
        self.toolq.path().join(name).exists()
    }

    /// Returns the JSON values in a file, one per line.
    pub fn read_json_lines(&self, name: &str) -> Vec<Value> {
        parse_json_lines(&fs::read_to_string(self.toolq.path().join(name)).unwrap())
    }
}

/// Returns the ID and the first line of each result in a message. The line of an error begins with `!`.
pub fn result_lines(message: &Value) -> Vec<String> {
    let result_line = |result: &Value| {
        let mark = if result["is_error"] == true { "!" } else { "" };
        let text = result["content"].as_str().unwrap();
        let id = result["tool_use_id"].as_str().unwrap();
        format!("{id} {mark}{}", text.lines().next().unwrap_or_default())
    };
    message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(result_line)
        .collect()
}
