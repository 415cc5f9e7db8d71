//! Runs the real binary in a temporary directory.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their own environment"
)]

pub mod engine_turn;
pub mod examples;
pub mod recorded_data;
pub mod resume_sandbox;
pub mod scripted_api;
pub mod scripted_server;
pub mod shell_server;
pub mod skipped_test;
pub mod vendor_messages;
pub mod waiting;

use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, thread};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use tempfile::TempDir;

/// A temporary directory with files, and the input and environment of a toolq to run in it.
pub struct CliSandbox {
    dir: TempDir,
    working_dir: Option<PathBuf>,
    stdin: Vec<u8>,
    env: Vec<(String, String)>,
}

/// The output of a toolq, and the directory in which it ran.
pub struct CliOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub dir: TempDir,
}

impl CliSandbox {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
            working_dir: None,
            stdin: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Returns a sandbox that runs toolq in the repository instead of the temporary directory.
    pub fn in_repository() -> Self {
        Self {
            working_dir: Some(repository_root()),
            ..Self::new()
        }
    }

    /// Writes tools.yaml.
    pub fn tools(self, text: &str) -> Self {
        self.file("tools.yaml", text)
    }

    /// Writes a file. Creates its parent directories.
    pub fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Writes an executable file.
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

    /// Runs toolq in this subdirectory.
    pub fn in_dir(mut self, name: &str) -> Self {
        self.working_dir = Some(self.dir.path().join(name));
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the command, for tests that interact with it while it runs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolq"));
        command
            .args(arguments)
            .current_dir(self.working_dir.as_deref().unwrap_or(self.dir.path()))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        reset_signals(&mut command);
        command
    }

    pub fn run(self, arguments: &[&str]) -> CliOutput {
        let command = self.command(arguments);
        self.run_command(command)
    }

    /// Runs a shell script in which `"$TOOLQ"` is the program.
    pub fn run_shell(self, script: &str) -> CliOutput {
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
        reset_signals(&mut command);
        self.run_command(command)
    }

    /// Runs a command that `command` returned.
    pub fn run_command(self, mut command: Command) -> CliOutput {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = self.stdin.clone();
        let writer = thread::spawn(move || {
            // This fails if the program exits without reading its input.
            let _ = stdin.write_all(&text);
        });
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        writer.join().unwrap();
        CliOutput {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
            dir: self.dir,
        }
    }
}

impl CliOutput {
    /// Returns the one JSON document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}\nstdout: {}\nstderr: {}", self.stdout, self.stderr)
        })
    }

    /// Returns the JSON values on stdout, one per line.
    pub fn lines(&self) -> Vec<Value> {
        parse_json_lines(&self.stdout)
    }

    /// Returns the `tool_result` blocks of the one message on stdout.
    pub fn results(&self) -> Vec<Value> {
        self.json()["content"].as_array().unwrap().clone()
    }

    /// Returns the text of each result, and whether it is an error.
    pub fn result_texts(&self) -> Vec<(String, bool)> {
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

    /// Returns the records of the latest session log.
    pub fn log_records(&self) -> Vec<Value> {
        let dir = self.dir.path().join("state/toolq/sessions");
        let mut logs: Vec<PathBuf> = fs::read_dir(&dir)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stderr))
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .collect();
        logs.sort();
        parse_json_lines(&fs::read_to_string(logs.last().unwrap()).unwrap())
    }

    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.path().join(name)).ok()
    }

    /// Asserts that toolq exited with this code.
    #[track_caller]
    pub fn assert_exit(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\nstdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }
}

/// Makes a program start with the default action for every signal. Without this, it ignores SIGINT or SIGHUP if the
/// tests run as a background job of a script or under `nohup`, and toolq leaves ignored signals ignored.
pub fn reset_signals(command: &mut Command) {
    let reset = || {
        for signal in 1..32 {
            // SAFETY: the default action runs no code of ours, and `signal` is async-signal-safe. It fails for SIGKILL and
            // SIGSTOP, whose action can't be changed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the function only makes calls that are async-signal-safe.
    unsafe { command.pre_exec(reset) };
}

/// Makes a program write its process ID into the file `pid` of its working directory before it starts, so that its tools can
/// kill it even if the test itself continues late.
pub fn write_pid_file(command: &mut Command) {
    let write = || {
        let mut digits = [0; 16];
        let mut rest = &mut digits[..];
        write!(rest, "{}", std::process::id())?;
        let unused = rest.len();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file = rustix::fs::open(c"pid", flags, Mode::from_raw_mode(0o644))?;
        rustix::io::write(&file, &digits[..digits.len() - unused])?;
        Ok(())
    };
    // SAFETY: the function doesn't allocate, and only makes calls that are async-signal-safe.
    unsafe { command.pre_exec(write) };
}

/// Returns the first with the feature `slow-tests`, else the second: how much of something is tested.
pub const fn full_or_short<T: Copy>(full: T, short: T) -> T {
    if cfg!(feature = "slow-tests") {
        full
    } else {
        short
    }
}

/// Copies a program in a process of its own. If this process wrote the file, a program that another test starts at the
/// same time would have it open for writing for a moment, and it couldn't be run (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Says that the running test, or a part of it, is skipped.
pub fn skip(why: impl Display) {
    let thread = thread::current();
    skipped_test::skip_test(thread.name().unwrap_or("a test"), why);
}

/// Returns whether one of these programs isn't installed, and says that the running test is skipped.
pub fn lacks(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let command = format!("command -v {program}");
        let found = Command::new("sh").args(["-c", &command]).output();
        !found.unwrap().status.success()
    };
    let missing = programs.iter().find(is_missing);
    if let Some(program) = missing {
        skip(format_args!("{program} isn't installed"));
    }
    missing.is_some()
}

/// Prints what was counted, even if the test harness captures the output of the test.
pub fn eprint_uncaptured(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

pub fn parse_json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns an Anthropic response with these calls.
pub fn model_response(calls: &[(&str, Value)]) -> String {
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

pub fn repository_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
