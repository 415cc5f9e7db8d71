//! `toolq log list`, and the ids by which the other verbs find a session.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::log::log_builder::LogBuilder;
use crate::support::{CliOutput, CliSandbox, model_response};
use toolq_core::os::ProcessIdentity;

const SESSIONS: &str = "state/toolq/sessions";

/// A process of this system that began at another time than the one that has its pid now.
pub(super) fn process_that_is_gone() -> ProcessIdentity {
    ProcessIdentity {
        start_ticks: Some(1),
        ..ProcessIdentity::current()
    }
}

/// A session that finished, one that was killed before its call was claimed, one that was killed between two calls, one that still runs, and one
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
    let mut unclaimed = LogBuilder::new();
    let session = unclaimed.session_of_process(&process_that_is_gone());
    let turn = unclaimed.turn(session, 0);
    let call = unclaimed.call(turn, "pay", &json!({}));
    unclaimed.start(call, "pay", 1);
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
            unclaimed.text(),
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
        ["finished", "killed", "killed", "running", "damaged"]
    );
    assert_eq!(rows["00000001"]["calls"], 2);
    assert_eq!(rows["00000001"]["errors"], 1);
    let took = |id: &str| rows[id]["duration_ms"].as_u64().unwrap();
    assert!(
        took("00000004") > 60_000 && took("00000003") == 0,
        "until now, or the last record"
    );
    assert!(rows["00000001"]["bytes"].as_u64() > Some(500));
}

#[test]
fn a_session_whose_last_run_left_calls_open_says_why() {
    let tools =
        "tools: {deploy: {input_schema: {type: object}, approve: true, command: [echo, deployed]}}";
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("deploy", json!({}))]))
        .run_shell(
            r#"cat > in; "$TOOLQ" run -q in > out; test $? = 6
            "$TOOLQ" run -q --new --max-calls 0 --approve all in > out; test $? = 3
            "$TOOLQ" log list --format json
            TOOLQ_LOG_FILE=own.jsonl "$TOOLQ" run -q --approve all in > out
            TOOLQ_LOG_FILE=own.jsonl "$TOOLQ" log stats --format json"#,
        )
        .assert_exit(0);
    let rows = ran.lines();
    // Both may have begun in the same millisecond.
    let mut states = [rows[0]["state"].as_str(), rows[1]["state"].as_str()];
    states.sort_unstable();
    assert_eq!(states, [Some("incomplete"), Some("waiting")]);
    assert_eq!(rows[2]["tools"][0]["runs"], 1, "the log that is named");
}

/// A start that was never claimed did nothing, so only what the memory knows makes a session one in doubt.
#[test]
fn a_session_that_was_killed_in_a_write_is_in_doubt_until_that_is_settled() {
    let tools = "tools: {pay: {input_schema: {type: object}, command: [sh, -c, 'kill -9 $(cat pid); sleep 60']}}";
    let ran = CliSandbox::new()
        .tools(tools)
        .stdin(model_response(&[("pay", json!({}))]))
        .run_shell(
            r#"cat > in; sh -c 'echo $$ > pid; exec "$TOOLQ" run -q in'
            # The tool of a killed run is ended soon, and only then its log is free.
            while "$TOOLQ" log list --format json | grep -q '"running"'; do sleep 0.02; done
            "$TOOLQ" log list --format json && "$TOOLQ" log resolve -q toolu_0 --not-done && "$TOOLQ" log list --format json"#,
        )
        .assert_exit(0);
    let rows = ran.lines();
    let states: Vec<&Value> = rows.iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["in_doubt", "killed"]);
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
