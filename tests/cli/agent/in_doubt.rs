//! Agents in doubt: those that may have changed something, and can't say what.

use serde_json::json;

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_call_input, agent_tools_file,
    killed_in_fatal_call, numbered_input,
};
use crate::support::scripted_api::{ApiBehavior, calls_response, text_response};

/// A tool whose request is sent and never answered.
const SEND_TOOL: &str = "  send:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    effect: write\n    http: {method: POST, url: \"${BASE}/send\"}\n";

impl AgentSandbox {
    /// Settles the call of the input that an agent works on.
    fn resolve_agent(&self, finding: &[&str]) {
        let resolve = [&["log", "resolve", "toolu_0", "log.jsonl"], finding].concat();
        self.cli.run_toolq(&resolve).assert_exit(0);
    }
}

/// It isn't continued: nothing is requested and no call of it runs until a person has settled it. Then it is done, or runs
/// again from its beginning.
#[test]
fn an_agent_that_was_killed_after_a_write_is_in_doubt() {
    for done in [true, false] {
        let sandbox = killed_in_fatal_call(&agent_tools_file());
        let stopped = sandbox.resume().assert_exit(3);
        let result_text = &stopped.result_texts()[0];
        assert!(
            result_text.starts_with("In doubt: lead may have done its work"),
            "{result_text}"
        );
        assert_eq!(sandbox.effect_count("pay 3"), 0);
        for _ in 0..2 {
            assert_eq!(sandbox.resume().assert_exit(3).stdout, stopped.stdout);
        }
        assert_eq!(sandbox.api.requests().len(), 1);
        let inner = sandbox
            .cli
            .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
            .assert_exit(2);
        assert!(inner.stderr.contains("toolu_0 (lead)"), "{}", inner.stderr);
        let (expected, requests, fatal_effects) = if done {
            sandbox.resolve_agent(&["--done", "--result", "done by hand"]);
            ("done by hand", 1, 1)
        } else {
            sandbox.resolve_agent(&["--not-done"]);
            ("done 2", 4, 2)
        };
        let last = sandbox.resume().assert_exit(0);
        assert!(last.result_texts()[0].contains(expected), "{}", last.stdout);
        assert_eq!(sandbox.resume().assert_exit(0).stdout, last.stdout);
        assert_eq!(sandbox.api.requests().len(), requests);
        let mut effects = sandbox.cli.effects();
        effects.retain(|effect| effect.starts_with("fatal"));
        assert_eq!(effects.len(), fatal_effects, "{effects:?}");
        effects.dedup();
        assert_eq!(effects.len(), 1, "the idempotency key changed: {effects:?}");
        sandbox.cli.assert_log_sequence();
    }
}

#[test]
fn a_probe_settles_an_agent_in_doubt() {
    let probed = agent_tools_file().replace(
        "  lead:\n",
        "  lead:\n    probe: [sh, -c, 'echo \"probed $1\"', sh, \"{n}\"]\n",
    );
    let sandbox = killed_in_fatal_call(&probed);
    let done = sandbox.resume().assert_exit(0);
    assert_eq!(done.result_texts(), ["probed 0"]);
    assert_eq!(sandbox.api.requests().len(), 1);
    sandbox.cli.assert_log_sequence();
}

/// A request that was sent but got no response stops the agent at once: its model could only guess what happened.
#[test]
fn a_call_left_in_doubt_by_this_run_stops_the_agent() {
    let file = (agent_tools_file() + SEND_TOOL)
        .replace("tools: [look, keep,", "tools: [send, look, keep,");
    let sandbox = AgentSandbox::new(
        &file,
        &agent_call_input("lead"),
        |body| match body["messages"].as_array() {
            None => ApiBehavior::Close,
            Some(_) => calls_response(&[("send", numbered_input(1))]),
        },
    );
    let stopped = sandbox.run(&[], None).assert_exit(3);
    assert!(
        stopped.result_texts()[0].starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{}",
        stopped.stdout
    );
    assert_eq!(sandbox.resume().assert_exit(3).stdout, stopped.stdout);
    sandbox.resolve_agent(&["--done", "--result", "sent"]);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["sent"]);
    assert_eq!(sandbox.api.requests().len(), 2);
    sandbox.cli.assert_log_sequence();
}

/// What an agent does through another one counts, too.
#[test]
fn an_agent_is_in_doubt_because_of_an_agent_that_it_called() {
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
                    calls_response(&[("look", numbered_input(1)), ("fatal", numbered_input(2))])
                }
                ("helper", _) => text_response("helped"),
                _ => text_response("done"),
            },
        );
    assert_eq!(sandbox.run(&[], None).code, None);
    sandbox.resume().assert_exit(3);
    assert_eq!(sandbox.api.requests().len(), 2);
    sandbox.resolve_agent(&["--not-done"]);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["done"]);
    assert_eq!(
        (sandbox.effect_count("look 1"), sandbox.api.requests().len()),
        (2, 6)
    );
    assert_eq!(sandbox.last_usage("helper")["turns_used"], 2);
    sandbox.cli.assert_log_sequence();
}

/// An agent that times out during a call that ends in doubt is in doubt, too: its caller must not mistake this for a plain
/// timeout and retry.
#[test]
fn a_timed_out_agent_may_be_in_doubt() {
    let file = (agent_tools_file() + SEND_TOOL)
        .replace("tools: [look, keep,", "tools: [send, look, keep,")
        .replace("  lead:\n", "  lead:\n    timeout: 500ms\n");
    let sandbox = AgentSandbox::new(
        &file,
        &agent_call_input("lead"),
        |body| match body["messages"].as_array() {
            None => ApiBehavior::Hang,
            Some(_) => calls_response(&[("send", numbered_input(1))]),
        },
    );
    let timed_out = sandbox.run(&[], None).assert_exit(3);
    let result_text = &timed_out.result_texts()[0];
    assert!(
        result_text.starts_with("In doubt: lead stopped at a call of send (a0)"),
        "{result_text}"
    );
    sandbox.resolve_agent(&["--done", "--result", "sent it"]);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["sent it"]);
    sandbox.cli.assert_log_sequence();
}

/// A new run in the same log warns about the agent, which can be settled, and not about its call.
#[test]
fn a_new_run_reports_the_agent_in_doubt() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let arguments = ["run", "--new", "--log", "log.jsonl", "input.json"];
    let base = [("BASE", sandbox.api.url.as_str())];
    let stderr = sandbox
        .cli
        .run_with_env(&base, &arguments)
        .assert_exit(0)
        .stderr;
    assert!(
        stderr.contains("toolu_0 (lead)") && !stderr.contains("(fatal)"),
        "{stderr}"
    );
}
