//! Calls of an agent that are in doubt: the agent stops there until the call is resolved.

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_call_input, agent_tools_file, numbered_input,
};
use crate::support::scripted_api::{ApiBehavior, calls_response, text_response};

/// A request whose response may never come.
const SEND_TOOL: &str = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";

/// A request that was sent but got no response stops the agent at once: its model could only guess what happened.
#[test]
fn a_call_left_in_doubt_by_this_run_stops_the_agent() {
    let file = (agent_tools_file() + SEND_TOOL)
        .replace("tools: [look, keep,", "tools: [send, look, keep,");
    let sandbox = AgentSandbox::new(
        &file,
        &agent_call_input("lead"),
        |body| match body["messages"].as_array().map(Vec::len) {
            None => ApiBehavior::Close,
            Some(1) => calls_response(&[("send", numbered_input(1))]),
            Some(_) => text_response(
                body["messages"][2]["content"][0]["content"]
                    .as_str()
                    .unwrap(),
            ),
        },
    );
    let stopped = sandbox.run(&[], None).assert_exit(3);
    assert!(
        stopped.result_texts()[0].starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{}",
        stopped.stdout
    );
    let again = sandbox.run(&[], None).assert_exit(3).result_texts();
    assert!(again[0].starts_with("In doubt: lead"), "{again:?}");
    let resolve = [
        "log",
        "resolve",
        "a0",
        "log.jsonl",
        "--done",
        "--result",
        "sent",
    ];
    sandbox.cli.run_toolq(&resolve).assert_exit(0);
    // The agent itself is in doubt, too. It starts over, and its call has the result that was settled.
    let starts_over = ["log", "resolve", "toolu_0", "log.jsonl", "--not-done"];
    sandbox.cli.run_toolq(&starts_over).assert_exit(0);
    assert_eq!(
        sandbox.run(&[], None).assert_exit(0).result_texts(),
        ["sent"]
    );
    assert_eq!(sandbox.api.requests().len(), 4);
    sandbox.cli.assert_log_sequence();
}

/// An agent that times out during a call that ends in doubt is in doubt, too: its caller must not mistake this for a plain
/// timeout and retry.
#[test]
fn a_timed_out_agent_may_be_in_doubt() {
    let file = (agent_tools_file() + SEND_TOOL)
        .replace("tools: [look, keep,", "tools: [send, look, keep,");
    let file = file.replace("  lead:\n", "  lead:\n    timeout: 500ms\n");
    let sandbox = AgentSandbox::new(
        &file,
        &agent_call_input("lead"),
        |body| match body["messages"].as_array().map(Vec::len) {
            None => ApiBehavior::Hang,
            Some(1) => calls_response(&[("send", numbered_input(1))]),
            Some(_) => text_response("sent it"),
        },
    );
    let timed_out = sandbox.run(&[], None).assert_exit(3);
    let result_text = &timed_out.result_texts()[0];
    assert!(
        result_text.starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{result_text}"
    );
    let resolve = [
        "log",
        "resolve",
        "a0",
        "log.jsonl",
        "--done",
        "--result",
        "sent",
    ];
    sandbox.cli.run_toolq(&resolve).assert_exit(0);
    // The agent itself is in doubt, too. It starts over, and its call has the result that was settled.
    let starts_over = ["log", "resolve", "toolu_0", "log.jsonl", "--not-done"];
    sandbox.cli.run_toolq(&starts_over).assert_exit(0);
    assert_eq!(
        sandbox.run(&[], None).assert_exit(0).result_texts(),
        ["sent it"]
    );
    sandbox.cli.assert_log_sequence();
}
