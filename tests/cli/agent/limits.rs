//! Limits of agents: timeouts, budgets, depth, interrupts and repeated failures.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::agent::expert_fixture::{expert_tools, run_expert, run_expert_in, single_result, toolq};
use crate::support::model_response;
use crate::support::scripted_api::{ApiBehavior, ScriptedApi, calls_response, text_response};

/// An agent that never finishes ends all the same.
#[test]
fn an_agents_timeout_covers_its_requests() {
    let api = ScriptedApi::new(&[ApiBehavior::Hang]);
    let (result_text, is_error) =
        single_result(&run_expert(&api, "    timeout: 3s").assert_exit(0));
    assert!(is_error && result_text.contains("3s"), "{result_text}");
    assert!(!result_text.contains("part of its work"), "{result_text}");
    assert_eq!(api.requests().len(), 1);
}

/// When an agent times out, its calls are stopped and their results recorded before its own.
#[test]
fn calls_end_with_their_agent() {
    let api = ScriptedApi::new(&[calls_response(&[
        ("sleep", json!({})),
        ("write", json!({"what": "x"})),
    ])]);
    let file = expert_tools("    timeout: {after: 1s}\n").replace(
        "      model: model-1\n",
        "      model: model-1\n      tools: [sleep, write]\n",
    ) + "  sleep: {description: Sleeps., input_schema: {type: object}, command: [sleep, \"60\"]}\n";
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    let (result_text, is_error) = single_result(&ran);
    assert!(
        is_error && result_text.contains("1s") && result_text.contains("Let me see."),
        "{result_text}"
    );
    assert!(
        result_text.contains("may have done part of its work"),
        "{result_text}"
    );
    let log = ran.log_records();
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

/// An agent that never finishes ends all the same.
#[test]
fn a_budget_of_turns_or_tokens_ends_an_agent() {
    for (budget, expected, expected_requests) in [
        ("{turns: 1}", "1 turn", 1),
        ("{tokens: 200}", "200 tokens", 2),
        ("{tokens: 116}", "116 tokens", 1),
    ] {
        let api = ScriptedApi::new(&[calls_response(&[("write", json!({"what": "x"}))])]);
        let keys = format!("      tools: [write]\n      budget: {budget}\n      max_turns: 9");
        let ran = run_expert(&api, &keys).assert_exit(3);
        let (result_text, is_error) = single_result(&ran);
        assert!(
            is_error && result_text.contains(expected) && result_text.contains("Let me see."),
            "{result_text}"
        );
        assert_eq!(api.requests().len(), expected_requests);
        // The calls of the last response don't run, because their results would never be sent to the model.
        let written = ran.file("written").unwrap_or_default();
        assert_eq!(written.lines().count(), expected_requests - 1);
    }
    let api = ScriptedApi::new(&[text_response("enough")]);
    let ran = run_expert(&api, "      budget: {tokens: 1}").assert_exit(0);
    assert_eq!(single_result(&ran).0, "enough");
}

/// A run that is answered from the log still reports that the budget is used up.
#[test]
fn an_exhausted_budget_stays_exhausted_when_restored() {
    let keys = "      tools: [look]\n      budget: {turns: 1}";
    let input = model_response(&[("expert", json!({"query": "why?"}))]);
    let api = ScriptedApi::new(&[calls_response(&[("look", json!({"at": "x"}))])]);
    let run = "\"$TOOLQ\" run --log l.jsonl < in; echo $?";
    let ran = toolq(&api, keys)
        .file("in", &input)
        .run_shell(&format!("{run}; {run}"))
        .assert_exit(0);
    let exit_codes = ran.stdout.lines().filter(|line| *line == "3");
    assert_eq!(exit_codes.count(), 2, "{}", ran.stdout);
    assert_eq!(api.requests().len(), 1);
}

/// An agent that spends too much ends.
#[test]
fn a_budget_of_dollars_counts_by_price() {
    let api = ScriptedApi::new(&[calls_response(&[("look", json!({"at": "x"}))])]);
    let file = expert_tools("      tools: [look]\n      budget: {usd: 0.002}\n      max_turns: 9").replace(
        "version: 1\n",
        "version: 1\nprices:\n  model-1: {input: 3, output: 60.00, cache_read: 1, cache_write: 4}\n",
    );
    // Each response costs $0.000909.
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(3);
    assert!(
        single_result(&ran).0.contains("0.002 USD"),
        "{}",
        single_result(&ran).0
    );
    assert_eq!(api.requests().len(), 3);
}

/// Agents that call each other endlessly are stopped at `max_depth`.
#[test]
fn agents_call_each_other_up_to_max_depth() {
    let api = ScriptedApi::with_script(|_, body| {
        let messages = body["messages"].as_array().unwrap().len();
        match messages {
            1 => calls_response(&[("expert", json!({"query": "you do it"}))]),
            _ => text_response("done"),
        }
    });
    let ran = run_expert(&api, "      tools: [expert]").assert_exit(0);
    assert_eq!(single_result(&ran), ("done".to_owned(), false));
    let requests = api.requests();
    assert_eq!(requests.len(), 6);
    let rejections = requests
        .iter()
        .filter(|request| request.body.to_string().contains("at most 3 deep"));
    assert_eq!(rejections.count(), 1);
    let log = ran.log_records();
    let reasons = log
        .iter()
        .filter(|record| record["metadata"]["status"] == "too_deep");
    assert_eq!(reasons.count(), 1);
}

/// An agent can't spend more by letting others spend it.
#[test]
fn usage_of_nested_agents_counts_for_their_parents() {
    let api =
        ScriptedApi::with_script(|_, body| match body["messages"].as_array().unwrap().len() {
            1 => calls_response(&[("expert", json!({"query": "you do it"}))]),
            _ => text_response("done"),
        });
    let keys = "      tools: [expert]\n      budget: {tokens: 300}";
    let ran = run_expert(&api, keys).assert_exit(3);
    assert!(
        single_result(&ran).0.contains("300 tokens"),
        "{}",
        single_result(&ran).0
    );
    // Each of the three agents gets one response; then no agent sends another request.
    assert_eq!(api.requests().len(), 3);
}

/// An interrupt drops the pending request, and every call gets its result.
#[test]
fn an_interrupt_ends_an_agent() {
    let api = ScriptedApi::new(&[ApiBehavior::Hang]);
    let toolq = toolq(&api, "");
    let mut command = toolq.command(&["run"]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let input = model_response(&[
        ("expert", json!({"query": "why?"})),
        ("write", json!({"what": "x"})),
    ]);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    while api.requests().is_empty() {
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

/// A tool that keeps failing is paused within the agent, and the run exits with code 3.
#[test]
fn three_failures_in_a_row_pause_a_tool() {
    let failing_calls = calls_response(&[("fail", json!({})), ("fail", json!({}))]);
    let api = ScriptedApi::new(&[
        failing_calls.clone(),
        failing_calls.clone(),
        failing_calls,
        text_response("I give up."),
    ]);
    let ran = run_expert(&api, "      tools: [fail]\n      max_turns: 5").assert_exit(3);
    assert_eq!(single_result(&ran).0, "I give up.");
    let result_text = api.messages(3)[6]["content"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        result_text.starts_with("Paused: fail failed"),
        "{result_text}"
    );
}

/// `pause_after_failures: 0` turns pausing off, even within agents, where the default is 3.
#[test]
fn pause_after_failures_0_never_pauses() {
    let failing_calls = calls_response(&[("fail", json!({})), ("fail", json!({}))]);
    let api = ScriptedApi::new(&[
        failing_calls.clone(),
        failing_calls.clone(),
        failing_calls,
        text_response("I give up."),
    ]);
    let file = expert_tools("      tools: [fail]\n      max_turns: 5").replace(
        "    description: Fails.\n",
        "    description: Fails.\n    pause_after_failures: 0\n",
    );
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert_eq!(single_result(&ran).0, "I give up.");
    assert!(
        !api.messages(3)
            .iter()
            .any(|message| message.to_string().contains("Paused"))
    );
}
