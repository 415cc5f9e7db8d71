//! The order of system calls, as traced by strace: what is synced to the disk before what.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::log_durability::toolq;
use crate::support::{CliSandbox, model_response, skip};

/// Runs toolq under strace. Returns its stdout and the trace, or `None` if tracing isn't possible.
fn run_traced(
    toolq: &CliSandbox,
    expressions: &[&str],
    arguments: &[&str],
) -> Option<(String, String)> {
    if !rustix::process::geteuid().is_root() {
        skip("only a superuser can read what toolq, which isn't dumpable, writes");
        return None;
    }
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
        skip("strace isn't installed or can't trace");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some((String::from_utf8(output.stdout).unwrap(), trace))
}

/// The start record of a call with side effects is durable before it starts, and its result before it is printed.
#[test]
fn records_are_synced_before_starts_and_output() {
    let calls = [
        ("pay", json!({})),
        ("blob", json!({"bytes": 3})),
        ("look", json!({})),
    ];
    let toolq = toolq().file("input", model_response(&calls));
    let run = ["run", "-q", "--log", "log", "--to", "block-lines", "input"];
    let filter = ["trace=write,pwritev2,sendmsg,sendto,fdatasync"];
    let Some((_, trace)) = run_traced(&toolq, &filter, &run) else {
        return;
    };
    // strace splits a system call during which another thread makes one. Keep only the first part.
    let lines: Vec<&str> = trace
        .lines()
        .filter(|line| !line.contains(" resumed>"))
        .collect();
    let find = |from: usize, filter: &dyn Fn(&str) -> bool| {
        let found = lines[from..].iter().position(|line| filter(line));
        from + found.unwrap_or_else(|| panic!("{}", lines[from..].join("\n")))
    };
    let synced = |from| find(from, &|line| line.contains("fdatasync("));
    for (tool, id) in [("pay", "toolu_0"), ("blob", "toolu_1")] {
        let record = |kind: &str| {
            let (kind, id) = (format!("\\\"{kind}\\\""), format!("\\\"{id}\\\""));
            find(0, &|line| line.contains(&kind) && line.contains(&id))
        };
        let start_line = record("tool_start");
        // A program is started by a message to its reaper.
        let message = find(start_line, &|line| {
            line.contains("sendmsg(") || line.contains("sendto(")
        });
        assert!(synced(start_line) < message, "{tool} started too early");
        let result_line = record("tool_result");
        let id = format!("\\\"tool_use_id\\\":\\\"{id}\\\"");
        let printed = find(result_line + 1, &|line| {
            (line.contains("write(1,") || line.contains("pwritev2(1,")) && line.contains(&id)
        });
        assert!(
            synced(result_line) < printed,
            "{tool} was printed too early"
        );
    }
    let syncs = lines
        .iter()
        .filter(|line| line.contains("fdatasync("))
        .count();
    // One for the end of the session, and two for each call that isn't read-only. A result may share one with the next start.
    assert!(syncs <= 1 + 2 + 2, "{syncs} syncs");
}

/// If the system can't create another process, the call isn't started, and the log says so.
#[test]
fn a_failed_clone_is_not_started() {
    let toolq = toolq().file(
        "input",
        model_response(&[("pay", json!({})), ("look", json!({}))]),
    );
    let inject = ["trace=clone", "inject=clone:error=ENOMEM"];
    let Some((stdout, _)) = run_traced(&toolq, &inject, &["run", "-q", "--log", "log", "input"])
    else {
        return;
    };
    assert_eq!(
        stdout
            .matches("doesn't have the resources to start")
            .count(),
        2,
        "{stdout}"
    );
    let log = fs::read_to_string(toolq.path().join("log")).unwrap();
    assert!(log.contains(r#""status":"not_started""#), "{log}");
    assert!(log.contains("session_end"), "{log}");
}

/// `plan` starts no program, opens no connection, and creates no file.
#[test]
fn a_plan_starts_and_writes_nothing() {
    let toolq = toolq().file(
        "input",
        model_response(&[("pay", json!({})), ("look", json!({}))]),
    );
    let filter = ["trace=execve,socket,connect,openat"];
    let Some((_, trace)) = run_traced(&toolq, &filter, &["plan", "input"]) else {
        return;
    };
    assert_eq!(trace.matches("execve(").count(), 1, "{trace}");
    assert!(!trace.contains("socket("), "{trace}");
    let creates = |line: &&str| line.contains("O_CREAT");
    assert_eq!(trace.lines().find(creates), None);
}
