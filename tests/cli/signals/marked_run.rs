//! Runs toolq, and finds all processes that it starts by a mark in their environment.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::waiting::{PATIENCE, wait_until};
use crate::support::{CliSandbox, parse_json_lines};

/// How long processes may still be alive after toolq has exited. On an idle machine, it is an instant; what was killed needs
/// its turn on the processor to end.
const MAX_CLEANUP_TIME: Duration = Duration::from_secs(20);

/// A sandbox with tools that don't exit on their own.
pub struct MarkedSandbox {
    pub toolq: CliSandbox,
    mark: String,
}

/// A running toolq.
pub struct MarkedRun {
    pub child: Child,
    sandbox: MarkedSandbox,
}

/// The output of a toolq that has exited.
pub struct MarkedRunOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub log: Vec<Value>,
}

impl MarkedSandbox {
    pub fn new() -> Self {
        let mark = format!("{}-{}", std::process::id(), fastrand::u64(..));
        let tools = format!(
            r#"
version: 1
concurrency: 3
tools:
  hang:
    description: Never exit.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: [sh, -c, 'echo begun; : > "begun-$$"; sleep 600 & wait'], stdin: none, env: {{MARK: "{mark}"}}}}
  ignores_term:
    description: Never exit, and ignore SIGTERM.
    input_schema: {{type: object}}
    concurrency_safe: true
    timeout: {{after: 300s, grace: 60s}}
    command: {{argv: [sh, -c, 'trap "" TERM; echo begun; : > "begun-$$"; while :; do sleep 0.1; done'], stdin: none, env: {{MARK: "{mark}"}}}}
  holds_lock:
    description: Never exit, and remove a lock file on SIGTERM.
    input_schema: {{type: object}}
    effect: read
    timeout: {{after: 300s, grace: 60s}}
    command:
      argv: [sh, -c, 'trap "sleep 0.2; rm lock; exit" TERM; echo >lock; while :; do sleep 0.05; done']
      stdin: none
      env: {{MARK: "{mark}"}}
  times_out:
    description: Never exit, ignore SIGTERM, and time out.
    input_schema: {{type: object}}
    effect: read
    timeout: {{after: 300ms, grace: 100ms}}
    command: {{argv: [sh, -c, 'trap "" TERM; echo begun; sleep 600 & wait'], stdin: none, env: {{MARK: "{mark}"}}}}
  cleans_up:
    description: Never exit, but clean up on SIGTERM.
    input_schema: {{type: object}}
    effect: read
    timeout: {{after: 100ms, grace: 3s}}
    command:
      argv: [sh, -c, 'trap "touch terminating; sleep 0.2; sleep 0.2; echo cleaned; exit" TERM; while :; do sleep 0.05; done']
      stdin: none
      env: {{MARK: "{mark}"}}
  describe_hangs:
    description: Never finish describing itself.
    describe: [sh, -c, 'sleep 600 & wait']
    effect: read
    timeout: 300s
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  describe_ignores_term:
    description: Never finish describing itself, and ignore SIGTERM.
    describe: [sh, -c, 'trap "" TERM; while :; do sleep 0.1; done']
    effect: read
    timeout: {{after: 300s, grace: 60s}}
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  echo:
    description: Print the input.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  flood:
    description: Write endlessly.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: ["yes"], stdin: none, env: {{MARK: "{mark}"}}}}
  flood_stderr:
    description: Write endlessly to stderr.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: [sh, -c, "exec yes >&2"], stdin: none, env: {{MARK: "{mark}"}}}}
  one_second:
    description: Exit after a second.
    input_schema: {{type: object}}
    effect: read
    timeout: 2s
    command: {{argv: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo finished'], stdin: none, env: {{MARK: "{mark}"}}}}
"#
        );
        Self {
            toolq: CliSandbox::new().tools(&tools),
            mark,
        }
    }

    pub fn stdin(self, text: String) -> Self {
        Self {
            toolq: self.toolq.file("input", text),
            ..self
        }
    }

    /// Returns the command `toolq run` on the input, with a log.
    pub fn command(&self, flags: &[&str]) -> Command {
        let common = ["run", "--log", "log.jsonl"];
        let mut command = self.toolq.command(&[&common, flags].concat());
        command.stdin(fs::File::open(self.path_of("input")).unwrap());
        command
    }

    pub fn start(self, flags: &[&str]) -> MarkedRun {
        let child = self.command(flags).spawn().unwrap();
        self.into_run(child)
    }

    pub fn into_run(self, child: Child) -> MarkedRun {
        MarkedRun {
            child,
            sandbox: self,
        }
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.toolq.path().join(name)
    }

    /// Returns the records of the log so far, without a line that is still being written.
    pub fn log_records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path_of("log.jsonl")).unwrap_or_default();
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        parse_json_lines(&text[..end])
    }

    /// Returns the processes that have the mark in their environment.
    pub fn marked_processes(&self) -> Vec<Pid> {
        let mark = format!("MARK={}", self.mark);
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let environment = fs::read(path.join("environ")).ok()?;
            let has_mark = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes());
            has_mark.then_some(Pid::from_raw(pid)?)
        });
        processes.collect()
    }
}

impl MarkedRun {
    pub fn sandbox(&self) -> &MarkedSandbox {
        &self.sandbox
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the log has a record.
    pub fn wait_for_log(&self) {
        wait_until("the log has a record", || {
            !self.sandbox.log_records().is_empty()
        });
    }

    /// Waits until this many calls are running.
    pub fn wait_for_calls(&self, calls: usize) {
        wait_until("the calls are running", || {
            let starts = |record: &&Value| record["type"] == "tool_start";
            self.sandbox.log_records().iter().filter(starts).count() >= calls
                && self.sandbox.marked_processes().len() >= calls
        });
    }

    /// Waits until this many programs that never exit have written their first line.
    pub fn wait_for_first_lines(&self, programs: usize) {
        wait_until("the programs have written their first line", || {
            let files = fs::read_dir(self.sandbox.toolq.path()).unwrap().flatten();
            let is_mark =
                |file: &fs::DirEntry| file.file_name().as_encoded_bytes().starts_with(b"begun-");
            files.filter(is_mark).count() >= programs
        });
    }

    /// Waits until the log has a record of this type.
    pub fn wait_for_record(&self, kind: &str) {
        wait_until(kind, || {
            self.sandbox
                .log_records()
                .iter()
                .any(|record| record["type"] == kind)
        });
    }

    /// Sends `signal` repeatedly until toolq exits, without reading its output.
    pub fn signal_until_exit(&mut self, signal: Signal) {
        wait_until("toolq exits", || {
            let ended = self.child.try_wait().unwrap().is_some();
            if !ended {
                self.signal(signal);
                // Signals in quick succession count as one.
                sleep(Duration::from_millis(200));
            }
            ended
        });
    }

    /// Reads all output and waits until toolq exits. Asserts that no marked process is left soon afterwards.
    pub fn wait_for_output(self) -> MarkedRunOutput {
        let Self { child, sandbox } = self;
        let (done, output) = mpsc::channel();
        spawn(move || done.send(child.wait_with_output()));
        let output = output.recv_timeout(PATIENCE).expect("toolq exits");
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap();
        let ended_at = Instant::now();
        while !sandbox.marked_processes().is_empty() {
            assert!(
                ended_at.elapsed() < MAX_CLEANUP_TIME,
                "still running: {:?}",
                sandbox.marked_processes()
            );
            sleep(Duration::from_millis(10));
        }
        MarkedRunOutput {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            log: sandbox.log_records(),
        }
    }
}

impl MarkedRunOutput {
    /// Returns the status of each finished or skipped call, in log order.
    pub fn statuses(&self) -> Vec<&str> {
        let ends = self.log.iter().filter(|record| {
            ["tool_result", "tool_skipped", "tool_in_doubt"]
                .contains(&record["type"].as_str().unwrap())
        });
        ends.map(|end| end["metadata"]["status"].as_str().unwrap())
            .collect()
    }

    pub fn count_status(&self, status: &str) -> usize {
        let mut statuses = self.statuses();
        statuses.retain(|other| *other == status);
        statuses.len()
    }

    /// Asserts that every call in the log has a result or was skipped, and that the session has its end.
    pub fn assert_log_complete(&self) {
        let calls = self.log.iter();
        let calls = calls.filter(|record| record["type"] == "tool_call").count();
        assert_eq!(self.statuses().len(), calls);
        let last = self.log.last().unwrap();
        assert_eq!(last["type"], "session_end");
        assert_eq!(last["metadata"]["exit_code"], self.code.unwrap());
    }
}

/// Returns a model response with calls of these tools, with IDs that begin with `prefix`.
pub fn response_with_calls(prefix: &str, names: &[&str]) -> String {
    let calls = names.iter().enumerate().map(|(at, name)| {
        json!({"type": "tool_use", "id": format!("{prefix}{at}"), "name": name, "input": {}})
    });
    let content: Vec<Value> = calls.collect();
    json!({"type": "message", "role": "assistant", "content": content}).to_string()
}

/// Returns the IDs of all results on stdout, in any output form.
pub fn result_ids(stdout: &str) -> Vec<String> {
    let values = parse_json_lines(stdout);
    let blocks = values.iter().flat_map(|value| match value.get("content") {
        Some(Value::Array(blocks)) if value.get("role").is_some() => blocks.clone(),
        _ => vec![value.clone()],
    });
    blocks
        .map(|block| block["tool_use_id"].as_str().unwrap().to_owned())
        .collect()
}
