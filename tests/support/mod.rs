//! Running the real binary in a folder of its own, so that tests read like the manual.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::disallowed_methods,
    reason = "the environment of the tests themselves"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// An invocation of toolq that is being put together.
pub struct Toolq {
    dir: TempDir,
    here: Option<PathBuf>,
    stdin: Vec<u8>,
    env: Vec<(String, String)>,
}

/// What it did.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub dir: TempDir,
}

impl Toolq {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            here: None,
            stdin: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Runs in the repository, with its own tools.yaml.
    pub fn in_repository() -> Self {
        Self {
            here: Some(repository()),
            ..Self::new()
        }
    }

    /// Writes tools.yaml.
    pub fn tools(self, text: &str) -> Self {
        self.file("tools.yaml", text)
    }

    /// Writes a file of the folder.
    pub fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes a program of the folder.
    pub fn program(self, name: &str, text: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let this = self.file(name, text);
        fs::set_permissions(
            this.dir.path().join(name),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        this
    }

    pub fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = text.as_ref().to_vec();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The command with everything set, for tests that talk to it while it runs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolq"));
        command
            .args(arguments)
            .current_dir(self.here.as_deref().unwrap_or(self.dir.path()))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(self, arguments: &[&str]) -> Ran {
        let command = self.command(arguments);
        self.finish(command)
    }

    /// A line of shell in the folder, where `"$TOOLQ"` is the program.
    pub fn shell(self, script: &str) -> Ran {
        let toolq = self.command(&[]);
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(toolq.get_current_dir().unwrap())
            .env_clear()
            .envs(
                toolq
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("TOOLQ", toolq.get_program())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.finish(command)
    }

    fn finish(self, mut command: Command) -> Ran {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = self.stdin.clone();
        let writer = std::thread::spawn(move || {
            // Whoever needs no input closes it early.
            let _ = stdin.write_all(&text);
        });
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            dir: self.dir,
        }
    }
}

impl Ran {
    /// The one JSON document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        })
    }

    /// The JSON values on stdout, one a line.
    pub fn lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }

    /// The `tool_result` blocks of the one message on stdout.
    pub fn results(&self) -> Vec<Value> {
        self.json()["content"].as_array().unwrap().clone()
    }

    /// The text of each result, with whether it is an error.
    pub fn texts(&self) -> Vec<(String, bool)> {
        self.results()
            .iter()
            .map(|result| {
                (
                    result["content"].as_str().unwrap_or_default().to_owned(),
                    result["is_error"].as_bool().unwrap_or_default(),
                )
            })
            .collect()
    }

    /// The records of the newest session log.
    pub fn log(&self) -> Vec<Value> {
        let folder = self.dir.path().join("state/toolq/sessions");
        let mut logs: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stderr))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        logs.sort();
        json_lines(&fs::read_to_string(logs.last().unwrap()).unwrap())
    }

    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join(name)).ok()
    }

    /// The same run, which must have ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\nstdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }
}

/// Says what was counted or skipped, also where a test's own output is kept back.
pub fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// An Anthropic response that asks for these calls.
pub fn response(calls: &[(&str, Value)]) -> String {
    let content: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, input))| {
            serde_json::json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": input})
        })
        .collect();
    serde_json::json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"})
        .to_string()
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
