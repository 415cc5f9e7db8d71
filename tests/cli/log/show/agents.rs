//! Calls of agents, below the calls of the agents.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::log::log_builder::LogBuilder;
use crate::log::show::{mask_durations, show_log};
use crate::support::CliSandbox;

/// Adds a turn of the agent that runs `call`.
fn add_agent_turn(log: &mut LogBuilder, call: u64, agent: &str, turn: usize) -> u64 {
    let metadata = json!({"turn": turn, "agent": agent});
    log.add_record("turn", Some(call), &json!(null), &metadata)
}

/// A log of a coordinator that called a librarian. The run was killed in the librarian's second turn.
fn agent_log() -> LogBuilder {
    let mut log = LogBuilder::new();
    let session = log.session();
    let turn = log.turn(session, 0);
    let coordinator = log.call(turn, "coordinator", &json!({"q": "all"}));
    log.start(coordinator, "coordinator", 1);
    let turn = add_agent_turn(&mut log, coordinator, "coordinator", 0);
    let librarian = log.call(turn, "librarian", &json!({"q": "a"}));
    let search = log.call(turn, "search", &json!({"x": "b"}));
    log.start(librarian, "librarian", 1);
    log.start(search, "search", 1);
    log.end("tool_result", search, "search", ("ok", 1, 1));
    let turn = add_agent_turn(&mut log, librarian, "librarian", 0);
    log.finished_call(turn, "read_file", "failed", 1);
    let turn = add_agent_turn(&mut log, librarian, "librarian", 1);
    let of_turn_1 = json!({"tool_use_id": "toolu_n", "turn": 1, "position": 2});
    let content = json!({"name": "note", "input": {}});
    let note = log.add_record("tool_call", Some(turn), &content, &of_turn_1);
    log.start(note, "note", 1);
    let last = log.session();
    log.session_end(last);
    log
}

/// An agent counts its own turns, so a call says whose turn it means.
#[test]
fn a_call_of_an_agent_names_the_agent_of_its_turn() {
    let log = agent_log();
    let ran = show_log(log.text(), &["--id", "toolu_n"]).assert_exit(0);
    let line = ran.stdout.lines().nth(1).unwrap();
    let place = line
        .strip_prefix("note toolu_n: in librarian (toolu_")
        .unwrap();
    assert!(place.ends_with("), its turn 1, position 2"), "{line}");
}

/// Every call is shown once, below its agent.
#[test]
fn agent_calls_are_nested() {
    let text = show_log(agent_log().text(), &[]).assert_exit(0).stdout;
    let parts: Vec<&str> = text.split("session of ").collect();
    let block = |part: &str| mask_durations(part.split_once('\n').unwrap().1);
    insta::assert_snapshot!(block(parts[1]), @r#"

    turn 0
        0  coordinator
           toolu_2  {"q":"all"}
           turn 0 of coordinator
             0  coordinator › librarian
                toolu_5  {"q":"a"}
                turn 0 of coordinator › librarian
                  0  coordinator › librarian › read_file  failed, …
                     toolu_11  {"path":"a"}
                     this is failed
                turn 1 of coordinator › librarian
                  2  coordinator › librarian › note  started, no result
                     toolu_n  {}
                coordinator › librarian  started, no result
             0  coordinator › search  ok, …
                toolu_6  {"x":"b"}
                this is ok
           coordinator           started, no result
    "#);
}

/// A call that is shown without its agent names the agent.
#[test]
fn filtered_agent_calls_name_their_agents() {
    let log = agent_log();
    let show = |arguments: &[&str]| {
        let text = show_log(log.text(), arguments).assert_exit(0).stdout;
        mask_durations(text.split_once('\n').unwrap().1)
    };
    insta::assert_snapshot!(show(&["--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           toolu_11  {"path":"a"}
           this is failed
           coordinator › librarian › note  started, no result
           toolu_n  {}
           coordinator › librarian  started, no result
           toolu_5  {"q":"a"}
        0  coordinator           started, no result
           toolu_2  {"q":"all"}
    "#);
    insta::assert_snapshot!(show(&["--tool", "read_file", "--errors"]), @r#"

    turn 0
           coordinator › librarian › read_file  failed, …
           toolu_11  {"path":"a"}
           this is failed
    "#);
    insta::assert_snapshot!(show(&["--tool", "note"]), @"

    turn 0
           coordinator › librarian › note  started, no result
           toolu_n  {}
    ");
}

/// The calls of an agent are shown while it is still running.
#[test]
fn a_running_agent_is_shown() {
    let log = agent_log();
    let lines: Vec<&str> = log
        .text()
        .lines()
        .take_while(|line| !line.contains("\"seq\":14,"))
        .collect();
    let unfinished = format!("{}\n", lines.join("\n"));
    let sandbox = CliSandbox::new().file("log.jsonl", unfinished);
    let mut command = sandbox.command(&["log", "show", "-f", "log.jsonl"]);
    let mut following = command.stdin(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let before: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.contains("coordinator › librarian › read_file"))
        .collect();
    // The writer that the log names is process 1, so it would be followed for ever.
    following.kill().unwrap();
    following.wait().unwrap();
    let is_unfinished = |line: &String| line.contains("no result") || line.contains("no end yet");
    assert!(!before.iter().any(is_unfinished), "{before:?}");
}

/// A forged log may nest agents to any depth.
#[test]
fn deeply_nested_agents_do_not_overflow_the_stack() {
    let mut log = LogBuilder::new();
    let session = log.session();
    let mut turn = log.turn(session, 0);
    for _ in 0..2_000 {
        let call = log.call(turn, "again", &json!({}));
        log.start(call, "again", 1);
        turn = add_agent_turn(&mut log, call, "again", 0);
    }
    let text = show_log(log.text(), &[]).assert_exit(0).stdout;
    assert_eq!(text.matches("started, no result").count(), 2_000);
}
