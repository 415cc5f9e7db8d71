//! `toolq agent`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::api::{Api, calls, error, text};
use crate::scenes::{CANARY, toolq, tools};

const INPUT: &str = r#"{"query": "why?"}"#;

fn script() -> Api {
    Api::new(&[calls(&[("look", json!({"at": "home"}))]), text("It is so.")])
}

#[test]
fn its_text_its_messages_and_its_report() {
    let keys = "      tools: [look]";
    let ran = toolq(&script(), keys)
        .stdin(INPUT)
        .run(&["agent", "expert"])
        .exits(0);
    assert_eq!(ran.stdout, "It is so.\n");
    let log = ran.log();
    assert_eq!(log.last().unwrap()["type"], "session_end");
    let ran = toolq(&script(), keys)
        .stdin(INPUT)
        .run(&["agent", "expert", "--to", "messages"])
        .exits(0);
    let roles: Vec<String> = ran
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let priced = tools(keys).replace(
        "version: 1\n",
        "version: 1\nprices:\n  model-1: {input: 3.00, output: 15, cache_read: 0.30, cache_write: 3.75}\n",
    );
    let report = toolq(&script(), "")
        .tools(&priced)
        .stdin(INPUT)
        .run(&["agent", "expert", "--to", "json", "--no-log"])
        .exits(0)
        .json();
    assert_eq!(report["text"], "It is so.");
    assert_eq!(report["turns_used"], 2);
    assert_eq!(report["tool_calls_made"], 1);
    // 200 × 3.00 + 20 × 15 + 10 × 0.30 + 2 × 3.75 for a million.
    assert_eq!(report["estimated_cost_usd"], 0.000_910_5);
    let unpriced = toolq(&script(), keys)
        .stdin(INPUT)
        .run(&["agent", "expert", "--to", "json"])
        .exits(0)
        .json();
    assert_eq!(unpriced["estimated_cost_usd"], Value::Null);
}

/// A script sees whether the turns were enough, also when the answer is told from the log.
#[test]
fn whether_it_was_done_within_its_turns() {
    let keys = |turns| format!("      tools: [look]\n      max_turns: {turns}");
    for (turns, done) in [(1, false), (2, true)] {
        let arguments = ["agent", "expert", "--to", "json", "--log", "log.jsonl"];
        let mut ran = toolq(&script(), &keys(turns))
            .stdin(INPUT)
            .run(&arguments)
            .exits(0);
        assert_eq!(ran.json()["done"], done, "{}", ran.stdout);
        assert_eq!(ran.json()["is_error"], false);
        let log = ran.file("log.jsonl").unwrap();
        let in_log = log.contains("\"done\":false");
        assert_eq!(in_log, !done, "{log}");
        let again = toolq(&script(), &keys(turns))
            .file("log.jsonl", &log)
            .stdin(INPUT);
        ran = again
            .run(&[&arguments[..], &["--resume"]].concat())
            .exits(0);
        assert_eq!(ran.json()["done"], done, "{}", ran.stdout);
    }
    let failed = toolq(&Api::new(&[error(400, "", "x", "no")]), "").stdin(INPUT);
    let failed = failed.run(&["agent", "expert", "--to", "json"]).exits(1);
    assert_eq!(failed.json()["done"], false);
}

/// On a terminal the bars are gone before the answer comes.
#[test]
fn the_answer_stands_on_a_line_of_its_own() {
    let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    let name = ptsname(&keys, Vec::new()).unwrap();
    let end = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let api = script();
    let folder = toolq(&api, "      tools: [look]");
    let mut command = folder.command(&["agent", "expert", "--progress", "bar"]);
    command.stdin(Stdio::piped());
    command.stdout(end.try_clone().unwrap());
    let mut child = command.stderr(end).spawn().unwrap();
    // It holds the other end as well.
    drop(command);
    let screen = thread::spawn(move || {
        let mut screen = Vec::new();
        let _ = File::from(keys).read_to_end(&mut screen);
        String::from_utf8_lossy(&screen).into_owned()
    });
    let mut input = child.stdin.take().unwrap();
    input.write_all(INPUT.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let screen = screen.join().unwrap();
    let (before, after) = screen.split_once("It is so.").unwrap();
    let bar = before.rfind(['━', '─', '╸']).unwrap();
    let cleared = before.rfind("\x1b[2K").unwrap();
    assert!(bar < cleared && !after.contains('━'), "{screen:?}");
    assert!(before.ends_with(['\r', 'K']), "{screen:?}");
}

#[test]
fn a_failure_is_exit_1_and_a_budget_3() {
    let api = Api::new(&[error(
        400,
        "",
        "invalid_request_error",
        &format!("no {CANARY}"),
    )]);
    let ran = toolq(&api, "")
        .stdin(INPUT)
        .run(&["agent", "expert"])
        .exits(1);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("no [masked]"), "{}", ran.stderr);
    // What stands there for a model is none of a person's.
    for hidden in ["\\n", "Hint:", "Tell the user"] {
        assert!(!ran.stderr.contains(hidden), "{}", ran.stderr);
    }
    let report = toolq(&api, "")
        .stdin(INPUT)
        .run(&["agent", "expert", "--to", "json"])
        .exits(1)
        .json();
    assert_eq!(
        (&report["is_error"], &report["status"]),
        (&json!(true), &json!("agent_failed"))
    );
    let keys = "      tools: [look]\n      budget: {turns: 1}";
    let over = toolq(&script(), keys)
        .stdin(INPUT)
        .run(&["agent", "expert"])
        .exits(3);
    let lines = "budget of expert, 1 turn, is used up\n  Its last words:\n  Let me see.\n";
    assert!(over.stderr.contains(lines), "{}", over.stderr);
    let broken = "    timeout: 1ms";
    toolq(&script(), broken)
        .stdin(INPUT)
        .run(&["agent", "expert"])
        .exits(1);
}

#[test]
fn what_can_not_begin_is_exit_2() {
    for (name, input, words) in [
        ("exprt", INPUT, "did you mean expert?"),
        ("look", INPUT, "is a tool, but no agent"),
        ("expert", "why?", "no JSON"),
        ("expert", "{}", "/query: is required"),
        ("expert", "", "no JSON"),
    ] {
        let api = script();
        let ran = toolq(&api, "").stdin(input).run(&["agent", name]).exits(2);
        assert!(ran.stderr.contains(words), "{name} {input}: {}", ran.stderr);
        assert!(api.heard().is_empty());
        assert!(!ran.dir.path().join("state").exists());
    }
}

/// FAULTS 131: what the model is told may hold a secret; what is printed of it may not.
#[test]
fn the_conversation_is_printed_without_secrets() {
    let api = Api::new(&[text(&format!("You told me {CANARY}."))]);
    let ran = toolq(&api, "      prompt: \"${KEY} {query}\"")
        .stdin(INPUT)
        .run(&["agent", "expert", "--to", "messages"])
        .exits(0);
    assert_eq!(api.messages(0)[0]["content"], format!("{CANARY} why?"));
    let printed = ran.json();
    assert_eq!(printed[0]["content"], "[masked] why?");
    assert_eq!(printed[1]["content"][0]["text"], "You told me [masked].");
}
