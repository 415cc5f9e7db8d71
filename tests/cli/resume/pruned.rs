//! What is left of old sessions when `toolq log prune` has stripped them.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::support::model_response;
use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, shell_tools,
};
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};

fn prune(sandbox: &ResumeSandbox) -> String {
    sleep(Duration::from_millis(20));
    let pruned = sandbox.run_toolq(&["log", "prune", "--older", "1ms"]);
    pruned.assert_exit(0).stdout
}

fn run(sandbox: &ResumeSandbox) -> crate::support::resume_sandbox::ResumeRunOutput {
    sandbox.run_toolq(&["run", "-q", "input.json"])
}

/// The calls of an agent that `toolq call` runs have no names that last, but they are why it is in doubt.
#[test]
fn an_agent_in_doubt_stays_in_doubt() {
    let agent = |name: &str, keys: &str, tools: &str| {
        format!(
            "  {name}:\n    input_schema: {{type: object, properties: {{n: {{type: integer}}}}, required: [n]}}\n    {keys}\n    agent: {{endpoint: \"${{BASE}}\", model: m, tools: [{tools}]}}\n"
        )
    };
    let tools = effect_recording_tools()
        + &agent("lead", "once: [n]", "helper")
        + &agent("helper", "effect: write", "fatal");
    let sandbox = ResumeSandbox::new(&tools, "");
    let api = ScriptedApi::new(&[
        calls_response(&[("helper", json!({"n": 1}))]),
        calls_response(&[("fatal", json!({"n": 2}))]),
        text_response("unexpected"),
    ]);
    let call = || {
        let variables = [("BASE", api.url.as_str())];
        sandbox.run_with_env(&variables, &["call", "-q", "lead", r#"{"n":0}"#])
    };
    assert_eq!(call().code, None);
    let pruned = prune(&sandbox);
    assert!(pruned.starts_with("shortened "), "{pruned}");
    let again = call().assert_exit(3);
    assert!(
        again.stdout.starts_with("In doubt: lead"),
        "{}",
        again.stdout
    );
    assert_eq!((sandbox.effects().len(), api.requests().len()), (1, 2));
    let verified = sandbox.run_toolq(&["log", "verify", &log_of(&pruned)]);
    verified.assert_exit(0);
}

/// Returns the log that a line about pruning names.
fn log_of(pruned: &str) -> String {
    pruned.split(' ').nth(1).unwrap().to_owned()
}

/// Neither a call in doubt nor one that failed reads as if it was done.
#[test]
fn what_is_left_says_no_more_than_is_known() {
    let tools = shell_tools(&[
        (
            "fail",
            "on_failure: continue",
            "echo fail >> effects; exit 3",
        ),
        (
            "pay",
            "effect: write",
            r#"echo pay >> effects; kill -TERM "$(cat pid)"; sleep 60"#,
        ),
    ]);
    let calls = calls_message(&[("fail", 1), ("pay", 2)]);
    let sandbox = ResumeSandbox::new(&tools, &calls);
    let first = run(&sandbox);
    assert!(
        first.result_texts()[1].starts_with("In doubt"),
        "{}",
        first.stdout
    );
    prune(&sandbox);
    let again = run(&sandbox).assert_exit(3).result_texts();
    let failed = "This call failed. Its result is no longer on record.";
    assert_eq!(again[0], failed);
    assert!(again[1].starts_with("In doubt"), "{again:?}");
    assert_eq!(sandbox.effects(), ["fail", "pay"]);
}

/// Whoever decides about a call sees what it asks, however long that takes.
#[test]
fn what_waits_for_an_approval_is_kept() {
    let tools = shell_tools(&[("pay", "approve: true", "echo pay >> effects")]);
    let sandbox = ResumeSandbox::new(&tools, &model_response(&[("pay", json!({"n": 77}))]));
    run(&sandbox).assert_exit(6);
    assert_eq!(prune(&sandbox), "nothing to prune\n");
    let waiting = sandbox.run_toolq(&["approvals"]).assert_exit(0).stdout;
    assert!(waiting.contains(r#"{"n":77}"#), "{waiting}");
    let id = waiting.split(' ').next().unwrap();
    for verb in ["deny", "approve", "deny"] {
        sandbox.run_toolq(&["approvals", verb, id]).assert_exit(0);
    }
    assert!(prune(&sandbox).starts_with("removed "));
}
