//! `toolq call` of an agent.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::agent::expert_fixture::{CANARY, expert_tools, toolq};
use crate::support::scripted_api::{ScriptedApi, calls_response, error_response, text_response};

const INPUT: &str = r#"{"query": "why?"}"#;

fn look_then_answer() -> ScriptedApi {
    ScriptedApi::new(&[
        calls_response(&[("look", json!({"at": "home"}))]),
        text_response("It is so."),
    ])
}

#[test]
fn prints_text_messages_or_a_json_report() {
    let keys = "      tools: [look]";
    let ran = toolq(&look_then_answer(), keys)
        .stdin(INPUT)
        .run(&["call", "expert"])
        .assert_exit(0);
    assert_eq!(ran.stdout, "It is so.\n");
    let log = ran.log_records();
    assert_eq!(log.last().unwrap()["type"], "session_end");
    let ran = toolq(&look_then_answer(), keys)
        .stdin(INPUT)
        .run(&["call", "expert", "--to", "messages"])
        .assert_exit(0);
    let roles: Vec<String> = ran
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let priced = expert_tools(keys).replace(
        "version: 1\n",
        "version: 1\nprices:\n  model-1: {input: 3.00, output: 15, cache_read: 0.30, cache_write: 3.75}\n",
    );
    let report = toolq(&look_then_answer(), "")
        .tools(&priced)
        .stdin(INPUT)
        .run(&["call", "expert", "--to", "json", "--no-log"])
        .assert_exit(0)
        .json();
    assert_eq!(report["text"], "It is so.");
    assert_eq!(report["turns_used"], 2);
    assert_eq!(report["tool_calls_made"], 1);
    // (200 × 3.00 + 20 × 15 + 10 × 0.30 + 2 × 3.75) / 1,000,000.
    assert_eq!(report["estimated_cost_usd"], 0.000_910_5);
    let unpriced = toolq(&look_then_answer(), keys)
        .stdin(INPUT)
        .run(&["call", "expert", "--to", "json"])
        .assert_exit(0)
        .json();
    assert_eq!(unpriced["estimated_cost_usd"], Value::Null);
}

/// The report's `done` says whether the turns were enough, as does the log.
#[test]
fn report_says_whether_max_turns_sufficed() {
    let keys = |max_turns| format!("      tools: [look]\n      max_turns: {max_turns}");
    for (max_turns, done, exit) in [(1, false, 3), (2, true, 0)] {
        let arguments = ["call", "expert", "--to", "json", "--log", "log.jsonl"];
        let ran = toolq(&look_then_answer(), &keys(max_turns))
            .stdin(INPUT)
            .run(&arguments)
            .assert_exit(exit);
        assert_eq!(ran.json()["done"], done, "{}", ran.stdout);
        assert_eq!(ran.json()["is_error"], false);
        let log = ran.file("log.jsonl").unwrap();
        let in_log = log.contains("\"done\":false");
        assert_eq!(in_log, !done, "{log}");
    }
    let failed = toolq(&ScriptedApi::new(&[error_response(400, "", "x", "no")]), "").stdin(INPUT);
    let failed = failed
        .run(&["call", "expert", "--to", "json"])
        .assert_exit(1);
    assert_eq!(failed.json()["done"], false);
}

/// On a terminal the progress bars are cleared before the answer is printed.
#[test]
fn the_answer_is_on_its_own_line_below_the_bars() {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let tty = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let api = look_then_answer();
    let sandbox = toolq(&api, "      tools: [look]");
    let mut command = sandbox.command(&["call", "expert", "--progress", "bar"]);
    command.stdin(Stdio::piped());
    command.stdout(tty.try_clone().unwrap());
    let mut child = command.stderr(tty).spawn().unwrap();
    // `command` holds the terminal open, too.
    drop(command);
    let screen = thread::spawn(move || {
        let mut screen = Vec::new();
        let _ = File::from(controller).read_to_end(&mut screen);
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
fn failures_exit_1_and_used_up_budgets_exit_3() {
    let api = ScriptedApi::new(&[error_response(
        400,
        "",
        "invalid_request_error",
        &format!("no {CANARY}"),
    )]);
    let ran = toolq(&api, "")
        .stdin(INPUT)
        .run(&["call", "expert"])
        .assert_exit(1);
    assert!(ran.stdout.contains("no [masked]"), "{}", ran.stdout);
    assert!(!ran.stderr.contains(CANARY), "{}", ran.stderr);
    let report = toolq(&api, "")
        .stdin(INPUT)
        .run(&["call", "expert", "--to", "json"])
        .assert_exit(1)
        .json();
    assert_eq!(
        (&report["is_error"], &report["status"]),
        (&json!(true), &json!("agent_failed"))
    );
    let keys = "      tools: [look]\n      budget: {turns: 1}";
    let over_budget = toolq(&look_then_answer(), keys)
        .stdin(INPUT)
        .run(&["call", "expert"])
        .assert_exit(3);
    let lines = "expert's budget of 1 turn is used up.\nIts last text:\nLet me see.\n";
    assert!(over_budget.stdout.contains(lines), "{}", over_budget.stdout);
    let too_short = "    timeout: 1ms";
    toolq(&look_then_answer(), too_short)
        .stdin(INPUT)
        .run(&["call", "expert"])
        .assert_exit(1);
}

#[test]
fn an_agent_that_cannot_start_exits_2() {
    for (name, input, expected) in [
        ("exprt", INPUT, "did you mean expert?"),
        ("expert", "{why?", "not valid JSON"),
        ("expert", "{}", "/query: is required"),
        ("expert", "", "the input is empty"),
    ] {
        let api = look_then_answer();
        let ran = toolq(&api, "")
            .stdin(input)
            .run(&["call", name])
            .assert_exit(2);
        assert!(
            ran.stderr.contains(expected),
            "{name} {input}: {}",
            ran.stderr
        );
        assert!(api.requests().is_empty());
        assert!(!ran.dir.path().join("state").exists());
    }
}

/// A prompt may contain a secret, but the printed conversation may not.
#[test]
fn the_conversation_is_printed_without_secrets() {
    let api = ScriptedApi::new(&[text_response(&format!("You told me {CANARY}."))]);
    let ran = toolq(&api, "      prompt: \"${KEY} {query}\"")
        .stdin(INPUT)
        .run(&["call", "expert", "--to", "messages"])
        .assert_exit(0);
    assert_eq!(api.messages(0)[0]["content"], format!("{CANARY} why?"));
    let printed = ran.json();
    assert_eq!(printed[0]["content"], "[masked] why?");
    assert_eq!(printed[1]["content"][0]["text"], "You told me [masked].");
}

/// A person needn't write JSON for an agent that takes one text.
#[test]
fn a_text_is_the_input_of_an_agent_with_one_string() {
    for (stdin, query) in [
        ("fix div\n", "fix div"),
        ("12 monkeys\n", "12 monkeys"),
        ("\"quoted\"", "\"quoted\""),
        ("true", "true"),
        ("{\"query\": \"as JSON\"}", "as JSON"),
    ] {
        let api = ScriptedApi::new(&[text_response("Done.")]);
        toolq(&api, "")
            .stdin(stdin)
            .run(&["call", "expert", "--no-log"])
            .assert_exit(0);
        let request = Value::from(api.messages(0)).to_string();
        let expected = Value::from(query).to_string();
        assert!(
            request.contains(expected.trim_matches('"')),
            "{stdin}: {request}"
        );
    }
}

/// The hint has the properties of the agent, not those of an example.
#[test]
fn the_hint_shows_an_input_of_this_agent() {
    let tools = |properties: &str| {
        format!(
            "version: 1\ntools:\n  expert:\n    description: d\n    input_schema: {{type: object, {properties}}}\n    agent: {{endpoint: 'http://127.0.0.1:1', api_key: '${{KEY}}', model: m, system: s, prompt: p}}\n"
        )
    };
    let two = "properties: {from: {type: string}, n: {type: integer}}, required: [from, n]";
    for (properties, stdin, hint) in [
        (
            two,
            "a text",
            r#"echo '{"from":"…","n":…}' | toolq call expert"#,
        ),
        (
            two,
            "12",
            r#"echo '{"from":"…","n":…}' | toolq call expert"#,
        ),
        (
            "properties: {q: {type: string}}, required: [q]",
            "",
            "echo 'TEXT' | toolq call expert",
        ),
    ] {
        let ran = crate::support::CliSandbox::new()
            .tools(&tools(properties))
            .stdin(stdin);
        let ran = ran.run(&["call", "expert"]).assert_exit(2);
        assert!(ran.stderr.contains(hint), "{stdin}: {}", ran.stderr);
    }
}
