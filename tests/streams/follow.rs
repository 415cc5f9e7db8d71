//! `--follow`: toolq stays open, and answers line by line.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::support::Toolq;
use super::talk::{TOOLS, Talk};

fn block(id: &str, name: &str, input: &str) -> String {
    json!({"type": "tool_use", "id": id, "name": name, "input": {"name": input}}).to_string()
}

/// FAULTS 17: one line in, one line out, in the form of that line, while the input stays open.
#[test]
fn every_line_is_answered_by_a_line() {
    let mut talk = Talk::start(&["run", "--follow", "--log", "log.jsonl"]);
    let call = block("a", "look", "1");
    let chat = json!({"id": "b", "function": {"name": "look", "arguments": r#"{"name":"2"}"#}});
    for (line, answer) in [
        ("[]".to_owned(), json!([])),
        (call.clone(), json!({"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false})),
        (json!({"role": "user", "content": "hello"}).to_string(), json!([])),
        (
            format!("[{call}]"),
            json!([{"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false}]),
        ),
        (
            json!({"role": "assistant", "tool_calls": [chat]}).to_string(),
            json!([{"role": "tool", "tool_call_id": "b", "content": "saw 2"}]),
        ),
        (
            json!({"messages": [{"role": "assistant", "content": [serde_json::from_str::<Value>(&call).unwrap()]}]}).to_string(),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "saw 1", "is_error": false}]}),
        ),
        (
            json!({"output": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": r#"{"name":"3"}"#}]}).to_string(),
            json!([{"type": "function_call_output", "call_id": "c", "output": "saw 3"}]),
        ),
    ] {
        talk.say(&format!("{line}\n"));
        let said: Value = serde_json::from_str(&talk.line()).unwrap();
        assert_eq!(said, answer, "{line}");
    }
    // A line need not end where the input does.
    talk.say(&block("d", "change", "4"));
    let ended = talk.close().exits(0);
    assert_eq!(
        ended.stdout,
        "{\"type\":\"tool_result\",\"tool_use_id\":\"d\",\"content\":\"changed 4\",\"is_error\":false}\n"
    );
    let log = ended.json("log.jsonl");
    let turns: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "turn")
        .map(|turn| &turn["metadata"]["turn"])
        .collect();
    assert_eq!(turns, [1, 2, 3, 4, 5, 6]);
}

/// Calls that have their results in the line are not made again; a line gets its line all the same.
#[test]
fn an_answered_line_is_answered_by_an_empty_list() {
    let call: Value = serde_json::from_str(&block("a", "look", "1")).unwrap();
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]});
    let request = json!({"messages": [{"role": "assistant", "content": [call]}, result]});
    let run = |flags: &[&str]| {
        let toolq = Toolq::new().tools(TOOLS).stdin(format!("{request}\n"));
        toolq.run(&[&["run", "--follow"], flags].concat())
    };
    assert_eq!(run(&[]).exits(5).stdout, "[]\n");
    assert!(run(&["--all"]).exits(0).stdout.contains("saw 1"));
}

/// A line that can't be read ends it: what ran is answered.
#[test]
fn a_bad_line_is_an_end_midway() {
    let good = block("a", "look", "1");
    let later = block("b", "look", "2");
    for (bad, place) in [
        ("{\"a\":", ":2:"),
        ("nonsense", ":2:"),
        (r#"{"error":{"type":"x"}}"#, ":2:1:"),
    ] {
        let ran = Toolq::new()
            .tools(TOOLS)
            .stdin(format!("{good}\n{bad}\n{later}\n"))
            .run(&["run", "--follow"])
            .exits(3);
        assert_eq!(ran.lines().len(), 1, "{}", ran.stdout);
        assert!(
            ran.stderr.contains(&format!("error: stdin{place}")),
            "{}",
            ran.stderr
        );
        assert!(ran.file("look.2").is_none());
        let ran = Toolq::new()
            .tools(TOOLS)
            .stdin(format!("{bad}\n{later}\n"))
            .run(&["run", "--follow"])
            .exits(2);
        assert!(ran.file("look.2").is_none() && ran.file("state").is_none());
    }
    let empty = || Toolq::new().tools(TOOLS);
    empty().run(&["run", "--follow"]).exits(2);
    empty()
        .stdin("data: {}\n")
        .run(&["run", "--follow", "--from", "anthropic-sse"])
        .exits(2);
}

/// Two values on a line are two answers on two lines, in their order.
#[test]
fn values_on_one_line_are_answered_one_by_one() {
    let line = block("a", "look", "1") + " [] " + &block("b", "look", "2");
    let ran = Toolq::new()
        .tools(TOOLS)
        .stdin(line)
        .run(&["run", "--follow"])
        .exits(0);
    let ids: Vec<Value> = ran
        .lines()
        .iter()
        .map(|line| line["tool_use_id"].clone())
        .collect();
    assert_eq!(ids, [json!("a"), Value::Null, json!("b")]);
}

/// It waits as long as its input does, and a signal ends it.
#[test]
fn a_signal_ends_it_between_lines_and_in_one() {
    let mut idle = Talk::start(&["run", "--follow", "--log", "log.jsonl"]);
    idle.say(&(block("a", "look", "1") + "\n"));
    idle.line();
    idle.signal(Signal::INT);
    let ended = idle.ends().exits(130);
    assert_eq!(
        ended.json("log.jsonl").last().unwrap()["type"],
        "session_end"
    );
    let mut busy = Talk::start(&["run", "--follow"]);
    busy.say(&(block("a", "wait", "1") + "\n"));
    busy.until("wait.1");
    busy.signal(Signal::INT);
    let ended = busy.ends().exits(130);
    assert!(
        ended.stdout.contains("Interrupted while it ran"),
        "{}",
        ended.stdout
    );
}

/// A budget ends what runs, never the answering.
#[test]
fn a_budget_holds_over_all_lines() {
    let lines: String = (0..3)
        .map(|n| block(&format!("c{n}"), "look", &n.to_string()) + "\n")
        .collect();
    let ran = Toolq::new()
        .tools(TOOLS)
        .stdin(lines)
        .run(&["run", "--follow", "--max-calls", "2"])
        .exits(3);
    let errors: Vec<Value> = ran
        .lines()
        .iter()
        .map(|line| line["is_error"].clone())
        .collect();
    assert_eq!(errors, [false, false, true]);
}
