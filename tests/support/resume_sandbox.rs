//! A directory in which toolq runs several times, and tools that record each of their effects in a file.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolq_log::{RecordReader, SequenceChecker};

use crate::support::{CliSandbox, write_pid_file};

pub struct ResumeSandbox {
    sandbox: CliSandbox,
}

/// The output of a run.
pub struct ResumeRunOutput {
    /// `None` if it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Returns a tools.yaml with these tools: name, further keys, and a shell script that gets the input's `n` as `$1`.
pub fn shell_tools(tools: &[(&str, &str, &str)]) -> String {
    let tool = |(name, keys, script): &(&str, &str, &str)| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}, required: [n]}}\n    {keys}\n    command: [sh, -c, '{script}', sh, \"{{n}}\"]\n"
        )
    };
    let tools: String = tools.iter().map(tool).collect();
    format!("version: 1\ntools:\n{tools}")
}

/// Returns a tools.yaml with `read`, `idempotent` and `write` tools, each of which adds a line to the file `effects`.
pub fn effect_recording_tools() -> String {
    shell_tools(&[
        (
            "look",
            "effect: read",
            r#"echo "look $1" >> effects; echo "looked $1""#,
        ),
        (
            "keep",
            "effect: idempotent",
            r#"echo "keep $1" >> effects; echo "kept $1""#,
        ),
        (
            "pay",
            "effect: write\n    on_doubt: continue",
            r#"echo "pay $1" >> effects; echo "paid $1""#,
        ),
        // Kills toolq the first time it runs. The calls after it run all the same.
        (
            "fatal",
            "effect: write\n    on_doubt: continue",
            r#"echo "fatal $1 $TOOLQ_IDEMPOTENCY_KEY" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo "done $1""#,
        ),
    ])
}

/// Returns a message with these calls.
pub fn calls_message(calls: &[(&str, u32)]) -> String {
    let block = |(at, (name, n)): (usize, &(&str, u32))| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": {"n": n}});
    let content: Vec<Value> = calls.iter().enumerate().map(block).collect();
    json!({"role": "assistant", "content": content}).to_string()
}

/// Returns messages as consecutive streams of events.
pub fn message_stream(messages: &[String]) -> String {
    let event = |data: Value| {
        format!(
            "event: {}\ndata: {data}\n\n",
            data["type"].as_str().unwrap()
        )
    };
    let message_events = |message: &String| {
        let mut message: Value = serde_json::from_str(message).unwrap();
        let content = message["content"].take();
        message["content"] = json!([]);
        let mut text = event(json!({"type": "message_start", "message": message}));
        for (index, block) in content.as_array().unwrap().iter().enumerate() {
            let tool_use =
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            let input =
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()});
            text += &event(
                json!({"type": "content_block_start", "index": index, "content_block": tool_use}),
            );
            text += &event(json!({"type": "content_block_delta", "index": index, "delta": input}));
            text += &event(json!({"type": "content_block_stop", "index": index}));
        }
        text + &event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}))
            + &event(json!({"type": "message_stop"}))
    };
    messages.iter().map(message_events).collect()
}

impl ResumeSandbox {
    pub fn new(tools: &str, input: &str) -> Self {
        let sandbox = CliSandbox::new().tools(tools).file("input.json", input);
        Self { sandbox }
    }

    pub fn path(&self) -> &Path {
        self.sandbox.path()
    }

    pub fn write_file(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    pub fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Runs toolq. While it runs, its process ID is in the file `pid`.
    pub fn run_toolq(&self, arguments: &[&str]) -> ResumeRunOutput {
        self.run_with_env(&[], arguments)
    }

    pub fn run_with_env(&self, variables: &[(&str, &str)], arguments: &[&str]) -> ResumeRunOutput {
        self.run_with_stdin(variables, arguments, Stdio::null())
    }

    pub fn run_with_stdin(
        &self,
        variables: &[(&str, &str)],
        arguments: &[&str],
        stdin: Stdio,
    ) -> ResumeRunOutput {
        let mut command = self.sandbox.command(arguments);
        command.envs(variables.iter().copied()).stdin(stdin);
        write_pid_file(&mut command);
        let child = command.spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let killed = output.status.signal().is_some();
        ResumeRunOutput {
            code: output.status.code().filter(|_| !killed),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs toolq with this stdout. Returns its exit code.
    pub fn run_with_stdout(&self, stdout: Stdio, arguments: &[&str]) -> Option<i32> {
        let mut command = self.sandbox.command(arguments);
        command.stdin(Stdio::null()).stdout(stdout);
        command.output().unwrap().status.code()
    }

    /// Runs toolq with one file for stdout and stderr, and returns what it holds.
    pub fn run_with_joined_output(&self, arguments: &[&str]) -> String {
        let file = fs::File::create(self.path().join("joined")).unwrap();
        let mut command = self.sandbox.command(arguments);
        let (stdout, stderr) = (file.try_clone().unwrap(), file);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        command.status().unwrap();
        self.read_file("joined")
    }

    /// Runs toolq in a subdirectory.
    pub fn run_toolq_in(&self, dir: &str, arguments: &[&str]) -> ResumeRunOutput {
        let mut command = self.sandbox.command(arguments);
        command.current_dir(self.path().join(dir));
        let output = command.stdin(Stdio::null()).output().unwrap();
        ResumeRunOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts toolq and discards its output.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.sandbox.command(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    pub fn run(&self) -> ResumeRunOutput {
        self.run_toolq(&["run", "--log", "log.jsonl", "input.json"])
    }

    /// Returns the effects so far.
    pub fn effects(&self) -> Vec<String> {
        let text = self.read_file("effects");
        text.lines().map(str::to_owned).collect()
    }

    pub fn log_path(&self) -> PathBuf {
        self.path().join("log.jsonl")
    }

    /// Returns the records of the log, without a torn one at its end.
    pub fn log_records(&self) -> Vec<Value> {
        let text = self.read_file("log.jsonl");
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        crate::support::parse_json_lines(&text[..end])
    }

    /// Changes every record of the log, and seals it again.
    pub fn edit_log(&self, mut edit: impl FnMut(&mut Value)) {
        let mut text = String::new();
        for mut record in self.log_records() {
            edit(&mut record);
            record.as_object_mut().unwrap().shift_remove("crc");
            let sealed = record.to_string();
            let sealed = sealed.strip_suffix('}').unwrap();
            let crc = crc32fast::hash(sealed.as_bytes());
            writeln!(text, "{sealed},\"crc\":\"{crc:08x}\"}}").unwrap();
        }
        self.write_file("log.jsonl", &text);
    }

    /// Returns the type and the status, finding or attempt of each record of a call.
    pub fn call_records(&self, id: &str) -> Vec<String> {
        let log = self.log_records();
        let of_call = log
            .iter()
            .filter(|record| record["metadata"]["tool_use_id"] == id);
        let record_line = |record: &Value| {
            let metadata = &record["metadata"];
            let status = metadata["finding"].as_str().or(metadata["status"].as_str());
            let attempt = metadata["attempt"]
                .as_u64()
                .map(|attempt| attempt.to_string());
            let detail = status.map(str::to_owned).or(attempt).unwrap_or_default();
            format!("{} {detail}", record["type"].as_str().unwrap())
                .trim_end()
                .to_owned()
        };
        of_call.map(record_line).collect()
    }

    /// Asserts that the records are in an order that toolq can write.
    #[track_caller]
    pub fn assert_log_sequence(&self) {
        let mut checker = SequenceChecker::default();
        for record in RecordReader::open(&self.log_path()).unwrap() {
            checker.check_record(&record.unwrap()).unwrap();
        }
    }
}

impl ResumeRunOutput {
    #[track_caller]
    pub fn assert_exit(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "\nstdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Returns the text of each result in the one message on stdout.
    pub fn result_texts(&self) -> Vec<String> {
        let message: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        });
        let results = message["content"].as_array().unwrap();
        let text = |result: &Value| result["content"].as_str().unwrap_or("(blocks)").to_owned();
        results.iter().map(text).collect()
    }
}
