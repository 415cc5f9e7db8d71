//! A server in a sandbox, and its end.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::serve_http::http_client::{HttpClient, HttpRequest, HttpResponse};
use crate::serve_http::{TOOLS, legacy, wait_until};
use crate::support::{CliSandbox, parse_json_lines, reset_signals};

/// A process that ends with its test.
struct ServerProcess(Child);

/// A running server.
pub struct HttpServer {
    process: ServerProcess,
    stderr: BufReader<ChildStderr>,
    pub address: SocketAddr,
    sandbox: CliSandbox,
}

/// The output and the files of a server that has ended.
pub struct EndedServer {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    sandbox: CliSandbox,
}

/// A session of the legacy era.
pub struct LegacySession {
    pub client: HttpClient,
    pub id: String,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl HttpServer {
    /// Starts a server on any free port.
    pub fn start(arguments: &[&str]) -> Self {
        let sandbox = CliSandbox::new().tools(TOOLS).env("TOKEN", "s3cr3t-canary");
        Self::start_in(sandbox, arguments)
    }

    pub fn start_in(sandbox: CliSandbox, arguments: &[&str]) -> Self {
        let http = ["serve", "--http", "127.0.0.1:0"];
        let has_address = arguments.contains(&"--http");
        let arguments = [&http[..if has_address { 1 } else { 3 }], arguments].concat();
        let process = sandbox.command(&arguments).spawn().unwrap();
        Self::wait_for_address(process, sandbox)
    }

    /// Starts a server that may open at most `count` files.
    pub fn with_open_files(count: u32) -> Self {
        let sandbox = CliSandbox::new().tools(TOOLS);
        let toolq = sandbox.command(&["serve", "--http", "127.0.0.1:0"]);
        let limit = format!("ulimit -n {count}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limit, "--"]).arg(toolq.get_program());
        command.args(toolq.get_args()).current_dir(sandbox.path());
        command.envs(
            toolq
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        reset_signals(&mut command);
        Self::wait_for_address(command.spawn().unwrap(), sandbox)
    }

    fn wait_for_address(mut process: Child, sandbox: CliSandbox) -> Self {
        drop(process.stdin.take());
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("serving on http://");
        let address = address.and_then(|line| line.strip_suffix("/mcp"));
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            stderr.read_to_string(&mut line).unwrap();
            panic!("{line}");
        };
        Self {
            process: ServerProcess(process),
            stderr,
            address,
            sandbox,
        }
    }

    pub fn connect(&self) -> HttpClient {
        HttpClient::connect(self.address)
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn ask(&self, request: &HttpRequest) -> HttpResponse {
        self.connect().ask(request)
    }

    /// Begins a session of the legacy era.
    #[track_caller]
    pub fn initialize(&self, version: &str) -> LegacySession {
        self.initialize_with(version, &json!({}))
    }

    /// Begins a session of a client with these capabilities.
    #[track_caller]
    pub fn initialize_with(&self, version: &str, capabilities: &Value) -> LegacySession {
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        let mut client = self.connect();
        let answer = client.ask(&HttpRequest::post(&legacy("init", "initialize", &params)));
        assert_eq!(answer.json()["result"]["protocolVersion"], version);
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        LegacySession { client, id }
    }

    /// Returns the pids that tools have noted, once there are as many.
    pub fn pids(&self, count: usize) -> Vec<String> {
        let read = || fs::read_to_string(self.sandbox.path().join("pids")).unwrap_or_default();
        wait_until("the tools have started", || read().lines().count() == count);
        read().lines().map(str::to_owned).collect()
    }

    pub fn dir(&self) -> &Path {
        self.sandbox.path()
    }

    pub fn create(&self, name: &str) {
        fs::write(self.sandbox.path().join(name), "").unwrap();
    }

    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn end(self) -> EndedServer {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub fn wait(mut self) -> EndedServer {
        let code = self.process.0.wait().unwrap().code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let mut pipe = self.process.0.stdout.take().unwrap();
        pipe.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        EndedServer {
            code,
            stdout,
            stderr,
            sandbox: self.sandbox,
        }
    }
}

impl LegacySession {
    /// Returns a POST of a message in this session.
    pub fn post(&self, message: &Value) -> HttpRequest {
        HttpRequest::post(message).with("mcp-session-id", &self.id)
    }

    #[track_caller]
    pub fn ask(&mut self, message: &Value) -> HttpResponse {
        let request = self.post(message);
        self.client.ask(&request)
    }
}

impl EndedServer {
    /// Returns the text of a file, or an empty text if there is no such file.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path().join(name)).unwrap_or_default()
    }

    /// Returns the records of the only log, which must be valid. There is no log if there was no call.
    pub fn log(&self) -> Vec<Value> {
        let dir = self.sandbox.path().join("state/toolq/sessions");
        let mut logs = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let log = logs.find(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let Some(log) = log else {
            return Vec::new();
        };
        let verify = ["log", "verify", log.to_str().unwrap()];
        let verified = self.sandbox.command(&verify).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
        parse_json_lines(&fs::read_to_string(log).unwrap())
    }

    /// Returns the statuses of all results in the log, in order.
    pub fn statuses(&self) -> Vec<String> {
        let log = self.log();
        let results = log.iter().filter(|record| record["type"] == "tool_result");
        let statuses = results.map(|record| record["metadata"]["status"].as_str().unwrap());
        statuses.map(str::to_owned).collect()
    }
}
