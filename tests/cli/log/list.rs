//! `toolq log list`, and the ids by which the other verbs find a session.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox};
use toolq_core::os::ProcessIdentity;

const SESSIONS: &str = "state/toolq/sessions";

/// A process of this system that began at another time than the one that has its pid now.
fn process_that_is_gone() -> ProcessIdentity {
    ProcessIdentity {
        start_ticks: Some(1),
        ..ProcessIdentity::current()
    }
}

/// A session that finished, one with a call in doubt, one that was killed between two calls, one that still runs, and one
/// that was overwritten.
fn sandbox_with_five_sessions() -> CliSandbox {
    let finished = |log: &mut LogBuilder| {
        let session = log.session_of_process(&process_that_is_gone());
        let turn = log.turn(session, 0);
        log.finished_call(turn, "read", "ok", 12);
        log.finished_call(turn, "read", "failed", 30);
        session
    };
    let mut ended = LogBuilder::new();
    let session = finished(&mut ended);
    ended.session_end(session);
    let mut in_doubt = LogBuilder::new();
    let session = in_doubt.session_of_process(&process_that_is_gone());
    let turn = in_doubt.turn(session, 0);
    let call = in_doubt.call(turn, "pay", &json!({}));
    in_doubt.start(call, "pay", 1);
    let mut killed = LogBuilder::new();
    finished(&mut killed);
    let mut running = LogBuilder::new();
    running.session_of_process(&ProcessIdentity::current());
    let broken = ended.text().replace("\"ok\"", "\"no\"");
    CliSandbox::new()
        .file(
            &format!("{SESSIONS}/20260101T000001Z-00000001.jsonl"),
            ended.text(),
        )
        .file(
            &format!("{SESSIONS}/20260101T000002Z-00000002.jsonl"),
            in_doubt.text(),
        )
        .file(
            &format!("{SESSIONS}/20260101T000003Z-00000003.jsonl"),
            killed.text(),
        )
        .file(
            &format!("{SESSIONS}/20260101T000004Z-00000004.jsonl"),
            running.text(),
        )
        .file(
            &format!("{SESSIONS}/20260101T000005Z-00000005.jsonl"),
            broken,
        )
}

fn rows(ran: &CliOutput) -> BTreeMap<String, Value> {
    let rows = ran.lines().into_iter();
    rows.map(|row| (row["id"].as_str().unwrap().to_owned(), row))
        .collect()
}

#[test]
fn each_session_says_how_it_stands() {
    let ran = sandbox_with_five_sessions()
        .run(&["log", "list", "--format", "json"])
        .assert_exit(0);
    let ids: Vec<Value> = ran.lines().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(
        ids,
        ["00000005", "00000004", "00000003", "00000002", "00000001"],
        "the latest first"
    );
    let rows = rows(&ran);
    let states: Vec<&str> = rows
        .values()
        .map(|row| row["state"].as_str().unwrap())
        .collect();
    assert_eq!(
        states,
        ["finished", "in_doubt", "killed", "running", "damaged"]
    );
    assert_eq!(rows["00000001"]["calls"], 2);
    assert_eq!(rows["00000001"]["errors"], 1);
    assert!(rows["00000001"]["bytes"].as_u64() > Some(500));
}

#[test]
fn the_list_can_be_cut_and_says_so() {
    let ran = sandbox_with_five_sessions()
        .run(&["log", "list", "-n", "2"])
        .assert_exit(0);
    assert_eq!(
        ran.stdout.lines().count(),
        3,
        "a title and two rows: {}",
        ran.stdout
    );
    assert!(
        ran.stderr.contains("the latest 2 of 5 sessions"),
        "{}",
        ran.stderr
    );
    let ran = CliSandbox::new().run(&["log", "list"]).assert_exit(0);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("no sessions in "), "{}", ran.stderr);
}

/// A file in the current directory comes first, so that a name never means something else than it says.
#[test]
fn other_verbs_find_a_session_by_its_id() {
    let ran = sandbox_with_five_sessions()
        .run(&["log", "show", "00000001"])
        .assert_exit(0);
    assert!(ran.stdout.contains("read"), "{}", ran.stdout);
    let ran = sandbox_with_five_sessions()
        .run(&["log", "show", "00000009"])
        .assert_exit(4);
    assert!(
        ran.stderr.contains("00000009 doesn't exist"),
        "{}",
        ran.stderr
    );
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    log.finished_call(turn, "from_the_file", "ok", 1);
    let sandbox = sandbox_with_five_sessions().file("00000001", log.text());
    let ran = sandbox.run(&["log", "show", "00000001"]).assert_exit(0);
    assert!(ran.stdout.contains("from_the_file"), "{}", ran.stdout);
}
