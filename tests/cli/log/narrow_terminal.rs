//! `toolq log show` on terminals of all widths: words and commands stay whole.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use toolq_core::os::ProcessIdentity;

use crate::log::log_builder::LogBuilder;
use crate::support::CliSandbox;

/// Returns what a terminal of this width is sent.
fn show_on_terminal(log: &str, columns: u16) -> String {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let tty = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize {
        ws_col: columns,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&tty, size).unwrap();
    let sandbox = CliSandbox::new().file("log.jsonl", log);
    let mut command = sandbox.command(&["log", "show", "--color", "never", "log.jsonl"]);
    command
        .stdin(Stdio::null())
        .stdout(tty)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The command holds the terminal open.
    drop(command);
    let mut reader = File::from(controller);
    let reading = thread::spawn(move || {
        let mut screen = Vec::new();
        // When the last process closes the other end, this fails with EIO.
        let _ = reader.read_to_end(&mut screen);
        String::from_utf8(screen).unwrap()
    });
    assert!(child.wait().unwrap().success());
    reading.join().unwrap().replace("\r\n", "\n")
}

/// A run that was killed, with failed calls, those of an agent, and one in doubt.
fn killed_run() -> String {
    let mut log = LogBuilder::new();
    let gone = ProcessIdentity {
        pid: 1,
        start_ticks: Some(u64::MAX),
        ..ProcessIdentity::current()
    };
    let session = log.session_of_process(&gone);
    let turn = json!({"turn": 0, "input": "-"});
    let turn = log.add_record("turn", Some(session), &Value::Null, &turn);
    let failed = log.call(turn, "lint", &json!({"file": "src/main.rs"}));
    log.start(failed, "lint", 1);
    log.end("tool_result", failed, "lint", ("timeout", 30_000, 2));
    let agent = log.call(
        turn,
        "researcher",
        &json!({"question": "How did rents change?"}),
    );
    log.start(agent, "researcher", 1);
    let agent_turn = json!({"turn": 0, "agent": "researcher"});
    let agent_turn = log.add_record("turn", Some(agent), &Value::Null, &agent_turn);
    log.finished_call(agent_turn, "search", "ok", 5);
    log.end(
        "tool_result",
        agent,
        "researcher",
        ("agent_failed", 12_000, 1),
    );
    log.text().to_owned()
}

#[test]
fn words_stay_whole_on_a_narrow_terminal() {
    let log = killed_run();
    for columns in [120, 80, 50] {
        let screen = show_on_terminal(&log, columns);
        for line in screen.lines() {
            assert!(
                line.chars().count() <= usize::from(columns),
                "{columns}: {line}"
            );
        }
        for whole in [
            "failed: timeout, 30s",
            "2 attempts",
            "failed: agent failed",
            "researcher › search",
        ] {
            // A word may be followed by a comma.
            let shown = || {
                screen
                    .split([' ', '\n'])
                    .map(|word| word.trim_end_matches(','))
            };
            let mut words = whole.split(' ').map(|word| word.trim_end_matches(','));
            let words = words.all(|word| shown().any(|shown| shown == word));
            assert!(words, "{columns}: {whole}: {screen}");
        }
    }
}

/// Each call has its id: positions begin anew with each turn.
#[test]
fn each_call_has_its_id_beside_its_input() {
    let log = killed_run();
    let screen = show_on_terminal(&log, 80);
    let ids = screen.matches("toolu_").count();
    assert_eq!(ids, 3, "{screen}");
    assert!(screen.contains(r#"  {"file":"src/main.rs"}"#), "{screen}");
}
