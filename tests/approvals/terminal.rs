//! Questions on the terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

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

/// Runs `--approve ask` on a terminal of its own, and types each reply when the next question is there.
fn run_on_terminal(sandbox: &CliSandbox, progress: &str, replies: &[&str]) -> TerminalRun {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let tty = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let dir = sandbox.path().to_owned();
    let mut command = sandbox.command(&[
        "run",
        "--log",
        "log.jsonl",
        "--approve",
        "ask",
        "--progress",
        progress,
        "calls.json",
    ]);
    command.stderr(tty);
    // SAFETY: both are plain system calls, which are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(ioctl_tiocsctty(rustix::stdio::stderr())?)
        });
    }
    let mut child = command.spawn().unwrap();
    // The command holds the terminal open.
    drop(command);
    let mut controller = File::from(controller);
    let mut reader = controller.try_clone().unwrap();
    let (sender, chunks) = mpsc::channel();
    let reading = thread::spawn(move || {
        let mut buffer = [0; 4096];
        // When the last process closes the other end, this fails with EIO.
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            let _ = sender.send(buffer[..length].to_vec());
        }
    });
    let mut screen = Vec::new();
    for (number, reply) in replies.iter().enumerate() {
        let prompts = |screen: &[u8]| {
            String::from_utf8_lossy(screen)
                .matches("[q]uit the run: ")
                .count()
        };
        while prompts(&screen) <= number {
            screen.extend(chunks.recv_timeout(PATIENCE).expect("a question"));
        }
        controller.write_all(reply.as_bytes()).unwrap();
    }
    let code = child.wait().unwrap().code();
    reading.join().unwrap();
    screen.extend(chunks.try_iter().flatten());
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    TerminalRun {
        code,
        screen: String::from_utf8_lossy(&screen).into_owned(),
        ran: read("ran"),
        log: read("log.jsonl"),
    }
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
    assert_eq!(run.code, Some(3), "{}", run.screen);
    assert!(!run.ran.contains("pay"), "{}", run.ran);
}

/// Ctrl-C at the question ends the run as everywhere.
#[test]
fn a_signal_at_the_question_ends_the_run() {
    let run = run_on_terminal(&four(), "bar", &["\u{3}"]);
    assert_eq!(run.code, Some(130), "{}", run.screen);
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
