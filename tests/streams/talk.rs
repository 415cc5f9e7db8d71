//! A toolq whose input is still being written.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::support::{Toolq, json_lines};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// `look` and `change` make a file of their name and input; `wait` does, and ends when there is `NAME.go`.
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

/// One that runs.
pub struct Talk {
    toolq: Toolq,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
}

/// One that ended.
pub struct Ended {
    pub code: i32,
    /// What was not read before.
    pub stdout: String,
    pub stderr: String,
    toolq: Toolq,
}

impl Talk {
    pub fn start(arguments: &[&str]) -> Self {
        Self::with(Toolq::new().tools(TOOLS), arguments)
    }

    pub fn with(toolq: Toolq, arguments: &[&str]) -> Self {
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

    pub fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line on stdout.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("no line came")
    }

    /// Waits for a file.
    #[track_caller]
    pub fn until(&self, name: &str) {
        self.until_text(name, |_| true);
    }

    /// Waits until a file says so.
    #[track_caller]
    pub fn until_text(&self, name: &str, says: impl Fn(&str) -> bool) {
        let since = Instant::now();
        while !fs::read_to_string(self.file(name)).is_ok_and(|text| says(&text)) {
            assert!(since.elapsed() < PATIENCE, "{name} never came");
            sleep(Duration::from_millis(5));
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Makes a file.
    pub fn touch(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, without ending its input.
    pub fn ends(mut self) -> Ended {
        let since = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            assert!(since.elapsed() < PATIENCE, "it never ended");
            sleep(Duration::from_millis(5));
        };
        Ended {
            code,
            stdout: self.lines.iter().map(|line| line + "\n").collect(),
            stderr: self.stderr.join().unwrap(),
            toolq: self.toolq,
        }
    }

    /// Ends its input, and waits for the end.
    pub fn close(mut self) -> Ended {
        self.stdin = None;
        self.ends()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.toolq.path().join(name)
    }
}

impl Ended {
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\nstdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// The id and the first line of each result of the one message on stdout; `!` before that of an error.
    pub fn results(&self) -> Vec<String> {
        let message: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        });
        results(&message)
    }

    pub fn has(&self, name: &str) -> bool {
        self.toolq.path().join(name).exists()
    }

    /// The lines of a file.
    pub fn json(&self, name: &str) -> Vec<Value> {
        json_lines(&fs::read_to_string(self.toolq.path().join(name)).unwrap())
    }
}

/// The id and the first line of each result of a message; `!` before that of an error.
pub fn results(message: &Value) -> Vec<String> {
    let words = |result: &Value| {
        let mark = if result["is_error"] == true { "!" } else { "" };
        let text = result["content"].as_str().unwrap();
        let id = result["tool_use_id"].as_str().unwrap();
        format!("{id} {mark}{}", text.lines().next().unwrap_or_default())
    };
    message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(words)
        .collect()
}
