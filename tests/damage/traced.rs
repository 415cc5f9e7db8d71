//! What reaches the disk before what, as the system saw it.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::{Toolq, response, say};
use crate::toolq;

/// What toolq printed under strace, and what it traced; none where nobody may trace.
fn traced(toolq: &Toolq, expressions: &[&str], arguments: &[&str]) -> Option<(String, String)> {
    let run = toolq.command(arguments);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-o", "trace", "-s", "100000"]);
    for expression in expressions {
        traced.args(["-e", expression]);
    }
    traced
        .arg(run.get_program())
        .args(run.get_args())
        .current_dir(toolq.path());
    let output = traced.output();
    let trace = fs::read_to_string(toolq.path().join("trace")).unwrap_or_default();
    let Some(output) = output.ok().filter(|_| !trace.is_empty()) else {
        say(format_args!("skipped: there is no strace that may trace"));
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some((String::from_utf8(output.stdout).unwrap(), trace))
}

/// FAULTS 108, 112: the start of what has effects is durable before it starts, and its result before it is printed.
#[test]
fn the_disk_is_told_first() {
    let calls = [
        ("pay", json!({})),
        ("blob", json!({"bytes": 3})),
        ("look", json!({})),
    ];
    let toolq = toolq().file("input", response(&calls));
    let run = ["run", "-q", "--log", "log", "--to", "block-lines", "input"];
    let what = ["trace=write,sendmsg,sendto,fdatasync"];
    let Some((_, trace)) = traced(&toolq, &what, &run) else {
        return;
    };
    // The lines of one thread or another; a call that waits for another thread's is on two lines.
    let lines: Vec<&str> = trace
        .lines()
        .filter(|line| !line.contains(" resumed>"))
        .collect();
    let find = |from: usize, what: &dyn Fn(&str) -> bool| {
        let found = lines[from..].iter().position(|line| what(line));
        from + found.unwrap_or_else(|| panic!("{}", lines[from..].join("\n")))
    };
    let synced = |from| find(from, &|line| line.contains("fdatasync("));
    for (tool, id) in [("pay", "toolu_0"), ("blob", "toolu_1")] {
        let record = |kind: &str| {
            let (kind, id) = (format!("\\\"{kind}\\\""), format!("\\\"{id}\\\""));
            find(0, &|line| line.contains(&kind) && line.contains(&id))
        };
        let started = record("tool_start");
        // A program is started by a message to its keeper.
        let message = find(started, &|line| {
            line.contains("sendmsg(") || line.contains("sendto(")
        });
        assert!(synced(started) < message, "{tool} started too early");
        let ended = record("tool_result");
        let id = format!("\\\"tool_use_id\\\":\\\"{id}\\\"");
        let printed = find(ended + 1, &|line| {
            line.contains("write(1,") && line.contains(&id)
        });
        assert!(synced(ended) < printed, "{tool} was printed too early");
    }
    let syncs = lines
        .iter()
        .filter(|line| line.contains("fdatasync("))
        .count();
    // The session and its end, two for each call but the one that only reads.
    assert_eq!(syncs, 2 + 2 + 2);
    say(format_args!("{syncs} syncs in their places"));
}

/// FAULTS 73: where the system has no room for one more process, the call was not started, and the log says so.
#[test]
fn no_room_to_start() {
    let toolq = toolq().file(
        "input",
        response(&[("pay", json!({})), ("look", json!({}))]),
    );
    let full = ["trace=clone", "inject=clone:error=ENOMEM"];
    let Some((stdout, _)) = traced(&toolq, &full, &["run", "-q", "--log", "log", "input"]) else {
        return;
    };
    assert_eq!(
        stdout.matches("has no room to start").count(),
        2,
        "{stdout}"
    );
    let log = fs::read_to_string(toolq.path().join("log")).unwrap();
    assert!(log.contains(r#""status":"not_started""#), "{log}");
    assert!(log.contains("session_end"), "{log}");
}

/// FAULTS 136: a plan starts nothing, asks nobody, and leaves no log.
#[test]
fn a_plan_does_nothing() {
    let toolq = toolq().file(
        "input",
        response(&[("pay", json!({})), ("look", json!({}))]),
    );
    let what = ["trace=execve,socket,connect,openat"];
    let Some((_, trace)) = traced(&toolq, &what, &["plan", "input"]) else {
        return;
    };
    assert_eq!(trace.matches("execve(").count(), 1, "{trace}");
    assert!(!trace.contains("socket("), "{trace}");
    let makes = |line: &&str| line.contains("O_CREAT");
    assert_eq!(trace.lines().find(makes), None);
}
