//! Questions on the terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::support::scripted_api::{ApiBehavior, ScriptedApi, calls_response, text_response};
use crate::support::waiting::wait_until;

use super::{CliSandbox, four_calls, model_response, parse_json_lines, sandbox};

/// How long to wait for what surely happens.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a run on a terminal has left.
struct TerminalRun {
    code: Option<i32>,
    screen: String,
    ran: String,
    log: String,
}

/// A run on a terminal of its own, which the test reads and types into.
struct WatchedRun {
    child: Child,
    keyboard: File,
    chunks: mpsc::Receiver<Vec<u8>>,
    reading: thread::JoinHandle<()>,
    screen: Vec<u8>,
    dir: PathBuf,
}

impl WatchedRun {
    /// Starts `--approve ask`.
    fn start(sandbox: &CliSandbox, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let tty = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let run = ["run", "--log", "log.jsonl", "--approve", "ask"];
        let mut command = sandbox.command(&[&run, arguments].concat());
        command.stderr(tty);
        // SAFETY: both are plain system calls, which are async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                Ok(ioctl_tiocsctty(rustix::stdio::stderr())?)
            });
        }
        let child = command.spawn().unwrap();
        // The command holds the terminal open.
        drop(command);
        let keyboard = File::from(controller);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, chunks) = mpsc::channel();
        let reading = thread::spawn(move || {
            let mut buffer = [0; 4096];
            // When the last process closes the other end, this fails with EIO.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                let _ = sender.send(buffer[..length].to_vec());
            }
        });
        Self {
            child,
            keyboard,
            chunks,
            reading,
            screen: Vec::new(),
            dir: sandbox.path().to_owned(),
        }
    }

    /// Returns the screen.
    fn seen(&mut self) -> String {
        self.screen.extend(self.chunks.try_iter().flatten());
        String::from_utf8_lossy(&self.screen).into_owned()
    }

    /// Returns the screen once it has as many questions.
    fn wait_for_question(&mut self, count: usize) -> String {
        while self.seen().matches("[q]uit the run: ").count() < count {
            let chunk = self.chunks.recv_timeout(PATIENCE);
            self.screen.extend(chunk.expect("a question"));
        }
        self.seen()
    }

    fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn end(mut self) -> TerminalRun {
        let code = self.child.wait().unwrap().code();
        self.reading.join().unwrap();
        self.screen.extend(self.chunks.try_iter().flatten());
        let read = |name: &str| std::fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        TerminalRun {
            code,
            screen: String::from_utf8_lossy(&self.screen).into_owned(),
            ran: read("ran"),
            log: read("log.jsonl"),
        }
    }
}

/// Runs `--approve ask` on a terminal of its own, and types each reply when the next question is there.
fn run_on_terminal(sandbox: &CliSandbox, progress: &str, replies: &[&str]) -> TerminalRun {
    let mut run = WatchedRun::start(sandbox, &["--progress", progress, "calls.json"]);
    for (number, reply) in replies.iter().enumerate() {
        run.wait_for_question(number + 1);
        run.type_text(reply);
    }
    run.end()
}

fn four() -> CliSandbox {
    sandbox().file("calls.json", four_calls())
}

#[test]
fn a_person_says_yes_and_no_with_a_reason() {
    for progress in ["bar", "plain", "none"] {
        let run = run_on_terminal(&four(), progress, &["y\n", "n too much\n"]);
        assert_eq!(run.code, Some(0), "{}", run.screen);
        assert_eq!(run.ran, "look\npay\nlook\n");
        let approvals: Vec<_> = parse_json_lines(&run.log)
            .into_iter()
            .filter(|record| record["type"] == "approval")
            .map(|record| record["metadata"].clone())
            .collect();
        assert_eq!(approvals[0]["decision"], "yes");
        assert_eq!(approvals[1]["reason"], "too much");
        assert!(
            approvals
                .iter()
                .all(|approval| approval["by"] == "terminal")
        );
    }
}

#[test]
fn all_calls_of_a_tool_are_approved_at_once() {
    let run = run_on_terminal(&four(), "none", &["a\n"]);
    assert_eq!(run.code, Some(0), "{}", run.screen);
    assert_eq!(run.ran, "look\npay\nlook\npay\n");
}

#[test]
fn quitting_stops_the_run() {
    let run = run_on_terminal(&four(), "none", &["q\n"]);
    assert_eq!(run.code, Some(6), "{}", run.screen);
    assert!(!run.ran.contains("pay"), "{}", run.ran);
}

/// Ctrl-C at the question ends the run as everywhere.
#[test]
fn a_signal_at_the_question_ends_the_run() {
    let run = run_on_terminal(&four(), "bar", &["\u{3}"]);
    assert_eq!(run.code, Some(130), "{}", run.screen);
    // What is said about it doesn't continue the line of the question.
    let after = run.screen.rsplit("[q]uit the run: ").next().unwrap();
    let same_line = after.lines().next().unwrap();
    assert!(["", "^C"].contains(&same_line.trim()), "{after:?}");
    assert!(!run.ran.contains("pay"), "{}", run.ran);
}

/// A model can neither hide a part of its call nor draw a question of its own.
#[test]
fn the_question_shows_the_whole_input_escaped() {
    let hostile = format!(
        "start\u{1b}[2J\u{1b}[1;1H\u{9b}2K\rapprove look (read)?\u{202e}\u{200b}\n{}end",
        "x".repeat(5000)
    );
    let calls = model_response(&[("pay", json!({"to": hostile}))]);
    let sandbox = sandbox().file("calls.json", calls);
    let run = run_on_terminal(&sandbox, "none", &["y\n"]);
    let question = run.screen.split("approve pay").nth(1).unwrap();
    let input = question.split("  runs:").next().unwrap();
    // The terminal driver adds a carriage return to a line break.
    let input = input.replace("\r\n", "\n");
    assert!(
        !input
            .trim()
            .chars()
            .any(|c| c != '\n' && (c.is_control() || c == '\u{202e}' || c == '\u{200b}')),
        "{input:?}"
    );
    assert!(input.contains("start") && input.contains("end") && input.contains(&"x".repeat(5000)));
    assert!(
        input.contains("u001b") && input.contains("u202e"),
        "{input:?}"
    );
}

/// A model that indents its input is shown as it wrote, and not with `\n`.
#[test]
fn the_question_shows_lines_as_lines() {
    let pay = "{\n    \"to\": \"EUR\"\n  }";
    let call = r#"[{"type":"tool_use","id":"toolu_0","name":"pay","input":INPUT}]"#;
    let sandbox = sandbox().file("calls.json", call.replace("INPUT", pay));
    let run = run_on_terminal(&sandbox, "none", &["y\n"]);
    let screen = run.screen.replace("\r\n", "\n");
    let shown = "  input: {\n             \"to\": \"EUR\"\n           }\n  runs: ";
    assert!(screen.contains(shown), "{screen}");
}

/// Two agents work at the same time, each with a payment that needs an approval.
const TWO_AGENTS: &str = r#"
version: 1
tools:
  expert:
    effect: read
    input_schema: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    agent: {endpoint: "${BASE}", model: m, tools: [pay]}
  pay:
    approve: true
    concurrency_safe: true
    input_schema: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    command: [sh, -c, 'echo "pay $1" >> ran', --, "{amount}"]
"#;

/// Questions of agents that ask at the same time come one after another, and what is typed belongs to the one that is there:
/// nothing that was typed before a question answers it.
#[test]
fn questions_of_two_agents_on_one_terminal_do_not_cross() {
    let api = ScriptedApi::with_script(|_, body| {
        let messages = body["messages"].as_array().unwrap();
        let amount = if messages[0].to_string().contains("111") {
            111
        } else {
            222
        };
        match messages.len() {
            1 => {
                let pay = calls_response(&[("pay", json!({"amount": amount}))]);
                ApiBehavior::Rendezvous(2, Box::new(pay))
            }
            _ => text_response("done"),
        }
    });
    let calls = [
        ("expert", json!({"amount": 111})),
        ("expert", json!({"amount": 222})),
    ];
    let sandbox = CliSandbox::new()
        .tools(TWO_AGENTS)
        .file("calls.json", model_response(&calls))
        .env("BASE", &api.url);
    let arguments = ["--progress", "none", "--events", "events", "calls.json"];
    let mut run = WatchedRun::start(&sandbox, &arguments);
    run.wait_for_question(1);
    let events = sandbox.path().join("events");
    wait_until("both agents ask", || {
        let events = std::fs::read_to_string(&events).unwrap_or_default();
        events.matches("approval_requested").count() == 2
    });
    let first = run.seen();
    assert_eq!(first.matches("approve pay").count(), 1, "{first}");
    let is_first_of_111 = first.contains("\"amount\":111");
    let name = |is_of_111| if is_of_111 { "111" } else { "222" };
    // The yes is typed before the second question is there.
    run.type_text(&format!("n not {}\ny\n", name(is_first_of_111)));
    let both = run.wait_for_question(2);
    let second = both.rsplit("approve pay").next().unwrap();
    assert!(
        second.contains(&format!("\"amount\":{}", name(!is_first_of_111))),
        "{both}"
    );
    run.type_text(&format!("n not {}\n", name(!is_first_of_111)));
    let ended = run.end();
    assert_eq!(
        (ended.code, ended.ran.as_str()),
        (Some(0), ""),
        "{}",
        ended.screen
    );
    let records = parse_json_lines(&ended.log);
    let amount_of = |id: &serde_json::Value| {
        let call = records.iter().find(|record| record["id"] == *id).unwrap();
        call["content"]["input"]["amount"].to_string()
    };
    let approvals = records.iter().filter(|record| record["type"] == "approval");
    let reasons: Vec<(String, String)> = approvals
        .map(|record| {
            let reason = record["metadata"]["reason"].as_str().unwrap().to_owned();
            (amount_of(&record["parentId"]), reason)
        })
        .collect();
    assert_eq!(reasons.len(), 2);
    for (amount, reason) in reasons {
        assert_eq!(reason, format!("not {amount}"));
    }
}
