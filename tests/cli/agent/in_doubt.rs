//! Calls of an agent that are in doubt: the agent stops there until the call is resolved.

use serde_json::json;

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_call_input, agent_tools_file,
    killed_in_fatal_call, numbered_input,
};
use crate::support::scripted_api::{ApiBehavior, calls_response, text_response};

/// The agent stops at the call in doubt, names it, and continues once it is resolved.
#[test]
fn an_agent_stops_at_a_call_in_doubt() {
    for done in [true, false] {
        let sandbox = killed_in_fatal_call(&agent_tools_file());
        let stopped = sandbox.resume().assert_exit(3);
        let result_text = &stopped.result_texts()[0];
        assert!(
            result_text.starts_with("In doubt: lead stopped at a call of fatal (a1)")
                && result_text.contains("`toolq log resolve`"),
            "{result_text}"
        );
        // The other call of the same response runs, because the model requested both at once.
        assert_eq!(sandbox.effect_count("pay 3"), 1);
        let records = sandbox.cli.log_records().len();
        for _ in 0..2 {
            assert_eq!(sandbox.resume().assert_exit(3).stdout, stopped.stdout);
        }
        assert_eq!(
            sandbox.api.requests().len(),
            1,
            "no request may be sent while the call is in doubt"
        );
        // Each of the two runs only records its session header and end.
        assert_eq!(sandbox.cli.log_records().len(), records + 4);
        let mut resolve = vec!["log", "resolve", "a1", "log.jsonl"];
        if done {
            resolve.extend(["--done", "--result", "done by hand"]);
        } else {
            resolve.push("--not-done");
        }
        sandbox.cli.run_toolq(&resolve).assert_exit(0);
        let last = sandbox.resume().assert_exit(0);
        let expected = if done { "done by hand" } else { "done 2" };
        assert!(last.result_texts()[0].contains(expected), "{}", last.stdout);
        assert_eq!(sandbox.resume().assert_exit(0).stdout, last.stdout);
        assert_eq!(sandbox.api.requests().len(), 3);
        let effects = sandbox.cli.effects();
        let fatal_effects: Vec<&String> = effects
            .iter()
            .filter(|effect| effect.starts_with("fatal"))
            .collect();
        assert_eq!(fatal_effects.len(), if done { 1 } else { 2 }, "{effects:?}");
        assert!(
            fatal_effects
                .iter()
                .all(|effect| *effect == fatal_effects[0]),
            "the idempotency key changed: {effects:?}"
        );
        assert_eq!(sandbox.effect_count("look 1"), 1);
        assert_eq!(sandbox.last_usage("lead")["turns_used"], 3);
        sandbox.cli.assert_log_sequence();
    }
}

/// The agent's own call can be resolved instead of the call in doubt.
#[test]
fn an_agents_own_call_can_be_resolved() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let resolve = ["log", "resolve", "toolu_0", "log.jsonl", "--done"];
    let resolve = [&resolve[..], &["--result", "never mind"]].concat();
    sandbox.cli.run_toolq(&resolve).assert_exit(0);
    assert_eq!(
        sandbox.resume().assert_exit(0).result_texts(),
        ["never mind"]
    );
    assert_eq!(sandbox.api.requests().len(), 1);
}

/// Probes also run for the calls of agents.
#[test]
fn a_probe_resolves_a_call_in_doubt_within_an_agent() {
    let probed = agent_tools_file().replace(
        "  fatal:\n",
        "  fatal:\n    probe: [sh, -c, 'echo \"probed $1\"', sh, \"{n}\"]\n",
    );
    let sandbox = killed_in_fatal_call(&probed);
    let done = sandbox.resume().assert_exit(0);
    assert!(
        done.result_texts()[0].contains("probed 2"),
        "{}",
        done.stdout
    );
    assert_eq!(
        sandbox.cli.call_records("a1")[..4],
        [
            "tool_call ",
            "tool_start 1",
            "probe_start ",
            "probe_end done"
        ]
        .map(str::trim_end)
    );
    sandbox.cli.assert_log_sequence();
}

/// A request that was sent but got no response stops the agent at once: its model could only guess what happened.
#[test]
fn a_call_left_in_doubt_by_this_run_stops_the_agent() {
    let send = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";
    let file =
        (agent_tools_file() + send).replace("tools: [look, keep,", "tools: [send, look, keep,");
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
    assert_eq!(sandbox.resume().assert_exit(3).stdout, stopped.stdout);
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
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["sent"]);
    assert_eq!(sandbox.api.requests().len(), 3);
    sandbox.cli.assert_log_sequence();
}

/// An agent that a resumed run doesn't reach is in doubt, not just skipped, as long as one of its calls is in doubt.
#[test]
fn an_agent_that_is_not_reached_stays_in_doubt() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let skipped = sandbox
        .run(&["--resume", "--max-calls", "0"], None)
        .assert_exit(3);
    assert!(
        skipped.result_texts()[0].starts_with("In doubt: lead may have done its work"),
        "{}",
        skipped.stdout
    );
    let reached = sandbox.resume().assert_exit(3);
    assert!(
        reached.result_texts()[0].starts_with("In doubt: lead stopped at a call of fatal"),
        "{}",
        reached.stdout
    );
    sandbox.cli.assert_log_sequence();
}

/// An agent that got its task through `new_task` resumes like any other.
#[test]
fn an_agent_called_by_new_task_resumes() {
    let file = agent_tools_file()
        .replace("[attempt_completion]", "[attempt_completion, new_task]")
        .replace(
            "tools: [look, keep, pay, fatal, helper,",
            "tools: [new_task,",
        );
    let sandbox =
        AgentSandbox::new(
            &file,
            &agent_call_input("lead"),
            |body| match agent_and_message_count(body) {
                ("lead", 1) => {
                    calls_response(&[("new_task", json!({"agent": "helper", "task": "help"}))])
                }
                ("helper", 1) => {
                    calls_response(&[("pay", numbered_input(1)), ("fatal", numbered_input(2))])
                }
                ("helper", _) => text_response("helped"),
                _ => text_response("done"),
            },
        );
    assert_eq!(sandbox.run(&[], None).code, None);
    assert!(
        sandbox.resume().assert_exit(3).result_texts()[0]
            .contains("stopped at a call of fatal (a1)")
    );
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .assert_exit(0);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["done"]);
    assert_eq!(
        (sandbox.effect_count("pay 1"), sandbox.api.requests().len()),
        (1, 4)
    );
    assert_eq!(sandbox.last_usage("helper")["turns_used"], 2);
    sandbox.cli.assert_log_sequence();
}

/// An agent that times out during a call that ends in doubt is in doubt, too: its caller must not mistake this for a plain
/// timeout and retry.
#[test]
fn a_timed_out_agent_may_be_in_doubt() {
    let send = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";
    let file =
        (agent_tools_file() + send).replace("tools: [look, keep,", "tools: [send, look, keep,");
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
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["sent it"]);
    sandbox.cli.assert_log_sequence();
}

/// A new run in the same log warns about the call in doubt, not about its agent: only the call may have had an effect.
#[test]
fn a_new_run_reports_the_call_in_doubt_and_not_its_agent() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let arguments = ["run", "--new", "--log", "log.jsonl", "input.json"];
    let base = [("BASE", sandbox.api.url.as_str())];
    let stderr = sandbox
        .cli
        .run_with_env(&base, &arguments)
        .assert_exit(0)
        .stderr;
    assert!(
        stderr.contains("a1 (fatal)") && !stderr.contains("(lead)"),
        "{stderr}"
    );
}
