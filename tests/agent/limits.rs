//! Time, budgets, depth, and an end from outside.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::api::{Act, Api, calls, text};
use crate::scenes::{ask, asked, result, toolq, tools};
use crate::support::response;

#[test]
fn the_time_of_an_agent_is_over_all() {
    let api = Api::new(&[Act::Hang]);
    let (told, is_error) = result(&ask(&api, "    timeout: 300ms").exits(0));
    assert!(is_error && told.contains("300ms"), "{told}");
    assert!(!told.contains("a part of its work"), "{told}");
    assert_eq!(api.heard().len(), 1);
}

/// The calls of an agent whose time is over are ended, answered and logged before it is.
#[test]
fn calls_end_with_their_agent() {
    let api = Api::new(&[calls(&[
        ("sleep", json!({})),
        ("write", json!({"what": "x"})),
    ])]);
    let file = tools("    timeout: {after: 1s}\n").replace(
        "      model: model-1\n",
        "      model: model-1\n      tools: [sleep, write]\n",
    ) + "  sleep: {description: Sleeps., input_schema: {type: object}, command: [sleep, \"60\"]}\n";
    let ran = asked(toolq(&api, "").tools(&file)).exits(0);
    let (told, is_error) = result(&ran);
    assert!(
        is_error && told.contains("1s") && told.contains("Let me see."),
        "{told}"
    );
    assert!(told.contains("may have done a part of its work"), "{told}");
    let log = ran.log();
    let ends: Vec<(&str, &str)> = log
        .iter()
        .filter(|record| !record["metadata"]["status"].is_null())
        .map(|record| {
            let field = |name: &str| record["metadata"][name].as_str().unwrap();
            (field("tool_name"), field("status"))
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("write", "not_executed"),
            ("sleep", "interrupted"),
            ("expert", "timeout")
        ][..]
            .to_vec()
    );
    assert_eq!(ran.file("written"), None);
}

#[test]
fn a_budget_of_turns_or_tokens_ends_an_agent() {
    for (budget, words, asked) in [
        ("{turns: 1}", "1 turn", 1),
        ("{tokens: 200}", "200 tokens", 2),
        ("{tokens: 116}", "116 tokens", 1),
    ] {
        let api = Api::new(&[calls(&[("write", json!({"what": "x"}))])]);
        let keys = format!("      tools: [write]\n      budget: {budget}\n      max_turns: 9");
        let ran = ask(&api, &keys).exits(3);
        let (told, is_error) = result(&ran);
        assert!(
            is_error && told.contains(words) && told.contains("Let me see."),
            "{told}"
        );
        assert_eq!(api.heard().len(), asked);
        // What the last answer asked for would be read by nobody.
        let written = ran.file("written").unwrap_or_default();
        assert_eq!(written.lines().count(), asked - 1);
    }
    let api = Api::new(&[text("enough")]);
    let ran = ask(&api, "      budget: {tokens: 1}").exits(0);
    assert_eq!(result(&ran).0, "enough");
}

/// FAULTS 117: a budget that is used up is so in a run that only tells it again.
#[test]
fn a_budget_is_used_up_again_where_it_is_recalled() {
    let keys = "      tools: [look]\n      budget: {turns: 1}";
    for (command, input) in [
        ("run", response(&[("expert", json!({"query": "why?"}))])),
        ("agent expert", json!({"query": "why?"}).to_string()),
    ] {
        let api = Api::new(&[calls(&[("look", json!({"at": "x"}))])]);
        let run = format!("\"$TOOLQ\" {command} --log l.jsonl");
        let script = format!("{run} < in; echo $?; {run} --resume < in; echo $?");
        let ran = toolq(&api, keys).file("in", &input).shell(&script).exits(0);
        let exits: Vec<&str> = ran.stdout.lines().filter(|line| *line == "3").collect();
        assert_eq!(exits.len(), 2, "{command}: {}", ran.stdout);
        assert_eq!(api.heard().len(), 1);
    }
}

#[test]
fn a_budget_of_dollars_counts_by_price() {
    let api = Api::new(&[calls(&[("look", json!({"at": "x"}))])]);
    let file = tools("      tools: [look]\n      budget: {usd: 0.002}\n      max_turns: 9").replace(
        "version: 1\n",
        "version: 1\nprices:\n  model-1: {input: 3, output: 60.00, cache_read: 1, cache_write: 4}\n",
    );
    // 0.000909 dollars an answer.
    let ran = asked(toolq(&api, "").tools(&file)).exits(3);
    assert!(result(&ran).0.contains("0.002 USD"), "{}", result(&ran).0);
    assert_eq!(api.heard().len(), 3);
}

/// FAULTS 103: agents that call each other without end.
#[test]
fn agents_call_each_other_to_a_depth() {
    let api = Api::by(|_, body| {
        let messages = body["messages"].as_array().unwrap().len();
        match messages {
            1 => calls(&[("expert", json!({"query": "you do it"}))]),
            _ => text("done"),
        }
    });
    let ran = ask(&api, "      tools: [expert]").exits(0);
    assert_eq!(result(&ran), ("done".to_owned(), false));
    let heard = api.heard();
    assert_eq!(heard.len(), 6);
    let told = heard
        .iter()
        .filter(|asked| asked.body.to_string().contains("at most 3 deep"));
    assert_eq!(told.count(), 1);
    let log = ran.log();
    let reasons = log
        .iter()
        .filter(|record| record["metadata"]["status"] == "too_deep");
    assert_eq!(reasons.count(), 1);
}

#[test]
fn what_agents_below_use_counts_above() {
    let api = Api::by(|_, body| match body["messages"].as_array().unwrap().len() {
        1 => calls(&[("expert", json!({"query": "you do it"}))]),
        _ => text("done"),
    });
    let keys = "      tools: [expert]\n      budget: {tokens: 300}";
    let ran = ask(&api, keys).exits(3);
    assert!(result(&ran).0.contains("300 tokens"), "{}", result(&ran).0);
    // One answer for each of the three; then nothing more is asked for anywhere.
    assert_eq!(api.heard().len(), 3);
}

/// An interrupt drops the request, and everything is answered.
#[test]
fn an_interrupt_ends_an_agent() {
    let api = Api::new(&[Act::Hang]);
    let toolq = toolq(&api, "");
    let mut command = toolq.command(&["run"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let asked = response(&[
        ("expert", json!({"query": "why?"})),
        ("write", json!({"what": "x"})),
    ]);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(asked.as_bytes())
        .unwrap();
    while api.heard().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let message: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = message["content"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert!(
        results[0]["content"]
            .as_str()
            .unwrap()
            .starts_with("Interrupted")
    );
}

/// A tool that fails again and again is paused for the agent, and the run says so.
#[test]
fn three_failures_in_a_row_pause_a_tool() {
    let again = calls(&[("fail", json!({})), ("fail", json!({}))]);
    let api = Api::new(&[again.clone(), again.clone(), again, text("I give up.")]);
    let ran = ask(&api, "      tools: [fail]\n      max_turns: 5").exits(3);
    assert_eq!(result(&ran).0, "I give up.");
    let told = api.messages(3)[6]["content"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(told.starts_with("Paused: fail failed"), "{told}");
}

/// A tool that says 0 is never paused, also where three is the rule.
#[test]
fn a_pause_that_is_switched_off_is_off() {
    let again = calls(&[("fail", json!({})), ("fail", json!({}))]);
    let api = Api::new(&[again.clone(), again.clone(), again, text("I give up.")]);
    let file = tools("      tools: [fail]\n      max_turns: 5").replace(
        "    description: Fails.\n",
        "    description: Fails.\n    pause_after_failures: 0\n",
    );
    let ran = asked(toolq(&api, "").tools(&file)).exits(0);
    assert_eq!(result(&ran).0, "I give up.");
    assert!(
        !api.messages(3)
            .iter()
            .any(|sent| sent.to_string().contains("Paused"))
    );
}
