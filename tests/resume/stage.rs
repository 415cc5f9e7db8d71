//! A folder in which toolq runs several times, and callees that note each of their effects in a file.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolq_log::{Order, Records};

use crate::support::Toolq;

pub struct Stage {
    toolq: Toolq,
}

/// What a run did.
pub struct Done {
    /// None where it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// tools.yaml with these tools: name, effect, and what a shell does with `$1`, the input's `n`.
pub fn tools(tools: &[(&str, &str, &str)]) -> String {
    let tool = |(name, more, script): &(&str, &str, &str)| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}, required: [n]}}\n    {more}\n    command: [sh, -c, '{script}', sh, \"{{n}}\"]\n"
        )
    };
    let tools: String = tools.iter().map(tool).collect();
    format!("version: 1\ntools:\n{tools}")
}

/// Reads, an idempotent tool and one that writes, each with a line in `effects` for what it did.
pub fn callees() -> String {
    tools(&[
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
            "effect: write",
            r#"echo "pay $1" >> effects; echo "paid $1""#,
        ),
        // toolq is killed while it runs, once.
        (
            "fatal",
            "effect: write",
            r#"echo "fatal $1 $TOOLQ_IDEMPOTENCY_KEY" >> effects; test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo "done $1""#,
        ),
    ])
}

/// A message that asks for these calls.
pub fn message(calls: &[(&str, u32)]) -> String {
    let block = |(at, (name, n)): (usize, &(&str, u32))| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": {"n": n}});
    let content: Vec<Value> = calls.iter().enumerate().map(block).collect();
    json!({"role": "assistant", "content": content}).to_string()
}

/// Messages as the events of one stream after another.
pub fn stream(messages: &[String]) -> String {
    let event = |data: Value| {
        format!(
            "event: {}\ndata: {data}\n\n",
            data["type"].as_str().unwrap()
        )
    };
    let spoken = |message: &String| {
        let mut message: Value = serde_json::from_str(message).unwrap();
        let content = message["content"].take();
        message["content"] = json!([]);
        let mut text = event(json!({"type": "message_start", "message": message}));
        for (index, block) in content.as_array().unwrap().iter().enumerate() {
            let begun =
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            let input =
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()});
            text += &event(
                json!({"type": "content_block_start", "index": index, "content_block": begun}),
            );
            text += &event(json!({"type": "content_block_delta", "index": index, "delta": input}));
            text += &event(json!({"type": "content_block_stop", "index": index}));
        }
        text + &event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}))
            + &event(json!({"type": "message_stop"}))
    };
    messages.iter().map(spoken).collect()
}

impl Stage {
    pub fn new(tools: &str, input: &str) -> Self {
        let toolq = Toolq::new().tools(tools).file("input.json", input);
        Self { toolq }
    }

    pub fn path(&self) -> &Path {
        self.toolq.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Runs toolq; its number is in the file `pid` meanwhile.
    pub fn toolq(&self, arguments: &[&str]) -> Done {
        self.with(&[], arguments)
    }

    pub fn with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Done {
        self.fed(variables, arguments, Stdio::null())
    }

    pub fn fed(&self, variables: &[(&str, &str)], arguments: &[&str], stdin: Stdio) -> Done {
        let mut command = self.toolq.command(arguments);
        command.envs(variables.iter().copied()).stdin(stdin);
        let child = command.spawn().unwrap();
        self.write("pid", &child.id().to_string());
        let output = child.wait_with_output().unwrap();
        let killed = output.status.signal().is_some();
        Done {
            code: output.status.code().filter(|_| !killed),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs toolq, whose results go to `stdout`: its exit code.
    pub fn printing_to(&self, stdout: Stdio, arguments: &[&str]) -> Option<i32> {
        let mut command = self.toolq.command(arguments);
        command.stdin(Stdio::null()).stdout(stdout);
        command.output().unwrap().status.code()
    }

    /// Runs toolq in a folder below.
    pub fn toolq_in(&self, folder: &str, arguments: &[&str]) -> Done {
        let mut command = self.toolq.command(arguments);
        command.current_dir(self.path().join(folder));
        let output = command.stdin(Stdio::null()).output().unwrap();
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts toolq, and reads nothing of it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.toolq.command(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    pub fn run(&self) -> Done {
        self.toolq(&["run", "--log", "log.jsonl", "input.json"])
    }

    pub fn resume(&self) -> Done {
        self.toolq(&["run", "--resume", "--log", "log.jsonl", "input.json"])
    }

    /// The effects so far, one a line.
    pub fn effects(&self) -> Vec<String> {
        let text = self.read("effects");
        text.lines().map(str::to_owned).collect()
    }

    pub fn log_path(&self) -> PathBuf {
        self.path().join("log.jsonl")
    }

    /// The records of the log; a torn end is left out.
    pub fn log(&self) -> Vec<Value> {
        let text = self.read("log.jsonl");
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        crate::support::json_lines(&text[..whole])
    }

    /// `type status` of the records of one call.
    pub fn story(&self, id: &str) -> Vec<String> {
        let log = self.log();
        let of_call = log
            .iter()
            .filter(|record| record["metadata"]["tool_use_id"] == id);
        let said = |record: &Value| {
            let metadata = &record["metadata"];
            let word = metadata["finding"].as_str().or(metadata["status"].as_str());
            let attempt = metadata["attempt"]
                .as_u64()
                .map(|attempt| attempt.to_string());
            let word = word.map(str::to_owned).or(attempt).unwrap_or_default();
            format!("{} {word}", record["type"].as_str().unwrap())
                .trim_end()
                .to_owned()
        };
        of_call.map(said).collect()
    }

    /// Checks that every record may stand where it stands.
    #[track_caller]
    pub fn log_is_in_order(&self) {
        let mut order = Order::default();
        for record in Records::open(&self.log_path()).unwrap() {
            order.take(&record.unwrap()).unwrap();
        }
    }
}

impl Done {
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "\nstdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// The text of each result of the one message on stdout.
    pub fn texts(&self) -> Vec<String> {
        let message: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        });
        let results = message["content"].as_array().unwrap();
        let text = |result: &Value| result["content"].as_str().unwrap_or("(blocks)").to_owned();
        results.iter().map(text).collect()
    }
}
