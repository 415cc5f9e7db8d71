//! A directory with tools, and the commands of a queue on a server of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::nats_server::NatsServer;
use crate::support::waiting::wait_until;
use crate::support::{CliSandbox, parse_json_lines};

/// `write` adds its text to the file `effects`, one line for each time that it runs. `slow_write` and `slow_read` then wait
/// until there is a file `go`.
const TOOLS: &str = r#"
version: 1
defaults: {timeout: 90s}
tools:
  write:
    input_schema: &text {type: object, properties: {text: {type: string}}, required: [text]}
    effect: write
    command: {argv: [sh, -c, 'echo "$TEXT" >> effects; echo "wrote $TEXT"'], env: {TEXT: "{text}"}}
  slow_write:
    input_schema: *text
    effect: write
    command: {argv: [sh, -c, &slow 'echo "$TEXT" >> effects; until [ -e go ]; do sleep 0.01; done; echo "did $TEXT"'], env: {TEXT: "{text}"}}
  slow_read:
    input_schema: *text
    effect: read
    command: {argv: [sh, -c, *slow], env: {TEXT: "{text}"}}
"#;

/// The queue that all tests use.
pub const QUEUE: &str = "jobs";

pub struct QueueSandbox {
    server: NatsServer,
    files: CliSandbox,
}

impl QueueSandbox {
    /// Returns `None` where there is no nats-server.
    pub fn new() -> Option<Self> {
        Self::with_tools(TOOLS)
    }

    /// Has other tools.
    pub fn with_tools(tools: &str) -> Option<Self> {
        let server = NatsServer::start()?;
        let files = CliSandbox::new().tools(tools).env("NATS_URL", &server.url);
        Some(Self { server, files })
    }

    /// Returns the address of the server.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// Kills the server.
    pub fn stop_server(&mut self) {
        self.server.kill();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes an input with one turn a line. Each has one call.
    pub fn write_turns(&self, name: &str, calls: &[(&str, &str)]) {
        let lines = calls.iter().enumerate().map(|(number, (tool, text))| {
            let call = json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": {"text": text}});
            let message = json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant", "content": [call], "stop_reason": "tool_use"});
            format!("{message}\n")
        });
        self.write(name, &lines.collect::<String>());
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.files.command(arguments);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> QueueOutput {
        self.command(arguments).output().unwrap().into()
    }

    /// Submits a file.
    #[track_caller]
    pub fn submit(&self, file: &str) -> QueueOutput {
        self.run(&["queue", "submit", QUEUE, file]).assert_exit(0)
    }

    /// Starts a command in the background.
    pub fn start(&self, arguments: &[&str]) -> QueueProcess {
        QueueProcess(Some(self.command(arguments).spawn().unwrap()))
    }

    /// Starts a command in the background whose output goes to a file.
    pub fn start_into(&self, file: &str, arguments: &[&str]) -> QueueProcess {
        let file = fs::File::create(self.path(file)).unwrap();
        QueueProcess(Some(self.command(arguments).stdout(file).spawn().unwrap()))
    }

    /// Starts a worker.
    pub fn start_worker(&self, flags: &[&str]) -> QueueProcess {
        self.start(&[&["queue", "work", QUEUE], flags].concat())
    }

    /// Runs a shell script in which `toolq` is the program.
    pub fn run_shell(&self, script: &str) -> QueueOutput {
        let script = format!("toolq() {{ \"$TOOLQ\" \"$@\"; }}\n{script}");
        self.shell(&script).output().unwrap().into()
    }

    /// Starts a worker in the background after what a shell has prepared.
    pub fn start_worker_after(&self, preparation: &str, flags: &str) -> QueueProcess {
        let script = format!("{preparation}\nexec \"$TOOLQ\" queue work {QUEUE} {flags}");
        QueueProcess(Some(self.shell(&script).spawn().unwrap()))
    }

    /// Returns a shell that runs this script, in which `TOOLQ` is the path of the program.
    fn shell(&self, script: &str) -> Command {
        let toolq = self.command(&[]);
        let mut command = Command::new("sh");
        command
            .args(["-euc", script])
            .current_dir(toolq.get_current_dir().unwrap())
            .env_clear()
            .envs(
                toolq
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("TOOLQ", toolq.get_program())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns what `queue status` says.
    #[track_caller]
    pub fn status(&self) -> Value {
        let status = self.run(&["queue", "status", QUEUE, "--format", "json"]);
        serde_json::from_str(&status.assert_exit(0).stdout).unwrap()
    }

    /// Collects until everything that was submitted is answered.
    pub fn collect(&self) -> QueueOutput {
        self.run(&["queue", "collect", QUEUE, "--until-empty"])
    }

    /// Returns the effects so far, in their order.
    pub fn effects(&self) -> Vec<String> {
        let effects = fs::read_to_string(self.path("effects")).unwrap_or_default();
        effects.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn wait_for_effects(&self, count: usize) {
        wait_until("the calls run", || self.effects().len() >= count);
    }

    /// Lets slow calls end.
    pub fn go(&self) {
        self.write("go", "");
    }
}

/// The output of a command.
pub struct QueueOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for QueueOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl QueueOutput {
    #[track_caller]
    pub fn assert_exit(self, code: i32) -> Self {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(
            self.code,
            Some(code),
            "\nstdout: {stdout}\nstderr: {stderr}"
        );
        self
    }

    /// Returns the text of the one result in each line.
    pub fn texts(&self) -> Vec<String> {
        let lines = parse_json_lines(&self.stdout);
        let texts = lines
            .iter()
            .map(|line| result_of(line)["content"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    }
}

/// Returns the result in the answer of a turn with one call.
fn result_of(answer: &Value) -> &Value {
    match &answer["content"] {
        Value::Array(results) => &results[0],
        _ => answer,
    }
}

/// A command that runs until it is stopped. It is killed when it is dropped.
pub struct QueueProcess(Option<Child>);

impl QueueProcess {
    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Sends a signal and waits for the end.
    pub fn end(mut self, signal: Signal) -> QueueOutput {
        self.signal(signal);
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }

    /// Waits for the end.
    pub fn wait(mut self) -> QueueOutput {
        self.0.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for QueueProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
