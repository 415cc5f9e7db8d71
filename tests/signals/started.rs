//! A toolq that was started, and all that it started itself, found by a mark in the environment.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::support::{Toolq, json_lines};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long after its end something of toolq's may still be alive.
const GONE: Duration = Duration::from_secs(2);

/// A toolq with tools that never end, unless they are made to.
pub struct Marked {
    pub toolq: Toolq,
    mark: String,
}

/// One that runs.
pub struct Started {
    pub child: Child,
    marked: Marked,
}

/// One that ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub log: Vec<Value>,
}

impl Marked {
    pub fn new() -> Self {
        let mark = format!("{}-{}", std::process::id(), fastrand::u64(..));
        let tools = format!(
            r#"
version: 1
concurrency: 3
tools:
  hang:
    description: Never end.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: [sh, -c, 'echo begun; sleep 600 & wait'], stdin: none, env: {{MARK: "{mark}"}}}}
  deaf:
    description: Never end, nor listen.
    input_schema: {{type: object}}
    concurrency_safe: true
    timeout: {{after: 300s, grace: 60s}}
    command: {{argv: [sh, -c, 'trap "" TERM; echo begun; while :; do sleep 0.1; done'], stdin: none, env: {{MARK: "{mark}"}}}}
  late:
    description: Never end, nor listen, and be late.
    input_schema: {{type: object}}
    effect: read
    timeout: {{after: 300ms, grace: 100ms}}
    command: {{argv: [sh, -c, 'trap "" TERM; echo begun; sleep 600 & wait'], stdin: none, env: {{MARK: "{mark}"}}}}
  tidy:
    description: Never end, but tidy up when asked to.
    input_schema: {{type: object}}
    effect: read
    timeout: {{after: 100ms, grace: 3s}}
    command:
      argv: [sh, -c, 'trap "touch asked; sleep 0.2; sleep 0.2; echo tidied; exit" TERM; while :; do sleep 0.05; done']
      stdin: none
      env: {{MARK: "{mark}"}}
  shy:
    description: Never end to describe itself.
    describe: [sh, -c, 'sleep 600 & wait']
    effect: read
    timeout: 300s
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  stubborn:
    description: Never end to describe itself, nor listen.
    describe: [sh, -c, 'trap "" TERM; while :; do sleep 0.1; done']
    effect: read
    timeout: {{after: 300s, grace: 60s}}
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  echo:
    description: Answer with the input.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: [cat], env: {{MARK: "{mark}"}}}}
  flood:
    description: Write without end.
    input_schema: {{type: object}}
    effect: read
    command: {{argv: ["yes"], stdin: none, env: {{MARK: "{mark}"}}}}
  doze:
    description: End after a second.
    input_schema: {{type: object}}
    effect: read
    timeout: 2s
    command: {{argv: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo rested'], stdin: none, env: {{MARK: "{mark}"}}}}
"#
        );
        Self {
            toolq: Toolq::new().tools(&tools),
            mark,
        }
    }

    pub fn stdin(self, text: String) -> Self {
        Self {
            toolq: self.toolq.file("input", text),
            ..self
        }
    }

    /// `toolq run` on its input, with a log.
    pub fn command(&self, flags: &[&str]) -> Command {
        let always = ["run", "--log", "log.jsonl"];
        let mut command = self.toolq.command(&[&always, flags].concat());
        command.stdin(fs::File::open(self.file("input")).unwrap());
        command
    }

    pub fn start(self, flags: &[&str]) -> Started {
        let child = self.command(flags).spawn().unwrap();
        self.started(child)
    }

    pub fn started(self, child: Child) -> Started {
        Started {
            child,
            marked: self,
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.toolq.path().join(name)
    }

    /// The records of the log so far, but for a line that is being written.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("log.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        json_lines(&text[..whole])
    }

    /// The processes that carry the mark.
    pub fn alive(&self) -> Vec<Pid> {
        let mark = format!("MARK={}", self.mark);
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            let environment = fs::read(path.join("environ")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes());
            marked.then_some(Pid::from_raw(pid)?)
        });
        processes.collect()
    }
}

impl Started {
    pub fn marked(&self) -> &Marked {
        &self.marked
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the log is begun.
    pub fn wait_for_log(&self) {
        until("a log", || !self.marked.log().is_empty());
    }

    /// Waits until so many calls have said that they run.
    pub fn wait_for_calls(&self, calls: usize) {
        until("calls run", || {
            let starts = |record: &&Value| record["type"] == "tool_start";
            self.marked.log().iter().filter(starts).count() >= calls
                && self.marked.alive().len() >= calls
        });
    }

    /// Waits until the log has a record of this type.
    pub fn wait_for_record(&self, kind: &str) {
        until(kind, || {
            self.marked
                .log()
                .iter()
                .any(|record| record["type"] == kind)
        });
    }

    /// Sends `signal` again and again until the end, without reading anything.
    pub fn insist_unread(&mut self, signal: Signal) {
        until("toolq ends", || {
            let ended = self.child.try_wait().unwrap().is_some();
            if !ended {
                self.signal(signal);
                // Signals that come together count as one.
                sleep(Duration::from_millis(200));
            }
            ended
        });
    }

    /// Reads everything and waits for the end; by then nobody is left, and every call of the log has its end.
    pub fn end(self) -> Ended {
        let Self { child, marked } = self;
        let (done, output) = mpsc::channel();
        spawn(move || done.send(child.wait_with_output()));
        let output = output.recv_timeout(PATIENCE).expect("toolq ends");
        let Output {
            status,
            stdout,
            stderr,
        } = output.unwrap();
        let over = Instant::now();
        while !marked.alive().is_empty() {
            assert!(over.elapsed() < GONE, "left: {:?}", marked.alive());
            sleep(Duration::from_millis(10));
        }
        Ended {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            log: marked.log(),
        }
    }
}

impl Ended {
    /// The words of the log by which calls ended, in the order of their ends.
    pub fn statuses(&self) -> Vec<&str> {
        let ends = self.log.iter().filter(|record| {
            ["tool_result", "tool_skipped"].contains(&record["type"].as_str().unwrap())
        });
        ends.map(|end| end["metadata"]["status"].as_str().unwrap())
            .collect()
    }

    pub fn count(&self, status: &str) -> usize {
        let mut statuses = self.statuses();
        statuses.retain(|other| *other == status);
        statuses.len()
    }

    /// Every call on record has one end, and the session has its own.
    pub fn assert_log_is_whole(&self) {
        let calls = self.log.iter();
        let calls = calls.filter(|record| record["type"] == "tool_call").count();
        assert_eq!(self.statuses().len(), calls);
        let last = self.log.last().unwrap();
        assert_eq!(last["type"], "session_end");
        assert_eq!(last["metadata"]["exit_code"], self.code.unwrap());
    }
}

/// Waits for what must come to pass.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// A model's answer that makes these calls, `prefix` before their ids.
pub fn answer(prefix: &str, names: &[&str]) -> String {
    let calls = names.iter().enumerate().map(|(at, name)| {
        json!({"type": "tool_use", "id": format!("{prefix}{at}"), "name": name, "input": {}})
    });
    let content: Vec<Value> = calls.collect();
    json!({"type": "message", "role": "assistant", "content": content}).to_string()
}

/// The ids of all results on stdout, in whatever form.
pub fn ids(stdout: &str) -> Vec<String> {
    let values = json_lines(stdout);
    let blocks = values.iter().flat_map(|value| match value.get("content") {
        Some(Value::Array(blocks)) if value.get("role").is_some() => blocks.clone(),
        _ => vec![value.clone()],
    });
    blocks
        .map(|block| block["tool_use_id"].as_str().unwrap().to_owned())
        .collect()
}
