//! An agent that was killed or interrupted continues when its run is resumed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_call_input, agent_tools_file, fatal_call_script,
    killed_in_fatal_call, numbered_input,
};
use crate::support::scripted_api::{
    ApiBehavior, calls_response, chat_response, message_body, ok_response, text_response,
};

/// An interrupted agent resumes like a killed one: a read that was running is run again.
#[test]
fn an_interrupted_agent_resumes() {
    let slow = agent_tools_file().replace(
        "echo \"look $1\" >> effects;",
        "echo \"look $1\" >> effects; test -e quick || sleep 60;",
    );
    let sandbox =
        AgentSandbox::new(
            &slow,
            &agent_call_input("lead"),
            |body| match agent_and_message_count(body).1 {
                1 => calls_response(&[("pay", numbered_input(1)), ("look", numbered_input(2))]),
                _ => text_response("done"),
            },
        );
    let interrupted = interrupt_when(&sandbox, || sandbox.effect_count("look 2") == 1);
    assert!(interrupted.contains("\"is_error\":true"), "{interrupted}");
    sandbox.cli.write_file("quick", "");
    let variables = [("BASE", sandbox.api.url.as_str())];
    let arguments = ["run", "--resume", "--log", "log.jsonl", "input.json"];
    let done = sandbox
        .cli
        .run_with_env(&variables, &arguments)
        .assert_exit(0);
    assert_eq!(done.result_texts(), ["done"]);
    // The summary counts only this run's turn and call.
    assert!(done.stderr.contains("agents: 1 turn;"), "{}", done.stderr);
    assert_eq!(
        (
            sandbox.effect_count("pay 1"),
            sandbox.effect_count("look 2")
        ),
        (1, 2)
    );
    assert_eq!(sandbox.api.requests().len(), 2);
    assert_eq!(
        sandbox.cli.call_records("toolu_0")[1..4],
        ["tool_start 1", "model_response", "tool_result interrupted"]
    );
    sandbox.cli.assert_log_sequence();
}

/// Runs the input, sends SIGINT once `is_ready`, and returns what was printed.
fn interrupt_when(sandbox: &AgentSandbox, is_ready: impl Fn() -> bool) -> String {
    thread::scope(|scope| {
        let run = scope.spawn(|| sandbox.run(&[], None));
        let started_at = Instant::now();
        while !is_ready() {
            assert!(started_at.elapsed() < Duration::from_mins(1));
            thread::sleep(Duration::from_millis(5));
        }
        let pid = sandbox.cli.read_file("pid");
        let kill_status = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(kill_status.unwrap().success());
        run.join().unwrap().assert_exit(130).stdout
    })
}

#[test]
fn an_agent_interrupted_while_waiting_for_its_model_resumes() {
    let may_respond = Arc::new(AtomicBool::new(false));
    let shared_flag = Arc::clone(&may_respond);
    let sandbox = AgentSandbox::new(
        &agent_tools_file(),
        &agent_call_input("lead"),
        move |body| match agent_and_message_count(body).1 {
            1 => calls_response(&[("pay", numbered_input(1))]),
            _ if !shared_flag.load(Ordering::SeqCst) => ApiBehavior::Hang,
            _ => text_response("done"),
        },
    );
    interrupt_when(&sandbox, || sandbox.api.requests().len() == 2);
    may_respond.store(true, Ordering::SeqCst);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["done"]);
    assert_eq!(
        (sandbox.effect_count("pay 1"), sandbox.api.requests().len()),
        (1, 3)
    );
    sandbox.cli.assert_log_sequence();
}

/// An unfinished agent counts as a call that still has to run, so changes to its tools must be accepted.
#[test]
fn changed_tools_need_accept_changes_to_resume_an_agent() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let changed = agent_tools_file().replace("looked $1", "saw $1");
    sandbox.cli.write_file("tools.yaml", &changed);
    let before = sandbox.cli.read_file("log.jsonl");
    let refused = sandbox.resume().assert_exit(2).stderr;
    assert!(
        refused.contains("still have to run (lead)") && refused.contains("changed: look"),
        "{refused}"
    );
    assert_eq!(sandbox.cli.read_file("log.jsonl"), before);
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .assert_exit(0);
    let done = sandbox
        .run(&["--resume", "--accept-changes"], None)
        .assert_exit(0);
    // The finished call keeps its result from before the change.
    assert!(
        done.result_texts()[0].contains("looked 1"),
        "{}",
        done.stdout
    );
    assert_eq!(
        (
            sandbox.effect_count("look 1"),
            sandbox.effect_count("look 4")
        ),
        (1, 1)
    );
    assert_eq!(sandbox.api.requests().len(), 3);
}

/// A recorded response that can't be used any more isn't silently requested again, because its calls have already run.
#[test]
fn a_response_of_another_api_cannot_be_resumed() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let changed = agent_tools_file().replace("model: lead,", "model: lead, api: openai-chat,");
    sandbox.cli.write_file("tools.yaml", &changed);
    let stuck = sandbox.run(&["--resume", "--accept-changes"], None);
    assert!(
        stuck.result_texts()[0].starts_with(
            "Not executed: the session log has a response in the format of a different API"
        ),
        "{}",
        stuck.stdout
    );
    assert_eq!((stuck.code, sandbox.api.requests().len()), (Some(3), 1));
    sandbox.cli.write_file("tools.yaml", &agent_tools_file());
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .assert_exit(0);
    sandbox
        .run(&["--resume", "--accept-changes"], None)
        .assert_exit(0);
    sandbox.cli.assert_log_sequence();
}

/// An agent can't continue from a response that is masked in the log.
#[test]
fn a_masked_response_cannot_be_resumed() {
    let secret = agent_tools_file().replace("version: 1", "version: 1\nsecrets: [BASE]");
    let sandbox = AgentSandbox::new(&secret, &agent_call_input("lead"), |body| {
        let mut answer = message_body(json!([]), "tool_use");
        answer["content"] =
            json!([{"type": "tool_use", "id": "a0", "name": "fatal", "input": {"n": 1}}]);
        answer["id"] = format!("http://{}", body["model"].as_str().unwrap()).into();
        ok_response(answer)
    });
    // This response has no secret, so the agent resumes.
    assert_eq!(sandbox.run(&[], None).code, None);
    assert!(
        sandbox.resume().assert_exit(3).result_texts()[0].contains("stopped at a call of fatal")
    );
    let url = Arc::new(OnceLock::<String>::new());
    let shared_url = Arc::clone(&url);
    let sandbox = AgentSandbox::new(&secret, &agent_call_input("lead"), move |_| {
        let mut answer = message_body(json!([]), "tool_use");
        answer["content"] =
            json!([{"type": "tool_use", "id": "a0", "name": "fatal", "input": {"n": 1}}]);
        answer["id"] = shared_url.get().unwrap().as_str().into();
        ok_response(answer)
    });
    url.set(sandbox.api.url.clone()).unwrap();
    assert_eq!(sandbox.run(&[], None).code, None);
    let stuck = sandbox.resume().assert_exit(3);
    assert!(
        stuck.result_texts()[0].starts_with("Not executed: the agent can't resume"),
        "{}",
        stuck.stdout
    );
    for remedy in [
        "Start over with `--new`",
        "`toolq log resolve toolu_0`, adding `--done --result TEXT`",
    ] {
        assert!(stuck.result_texts()[0].contains(remedy), "{}", stuck.stdout);
    }
    assert_eq!(sandbox.api.requests().len(), 1);
    let resolve = [
        "log",
        "resolve",
        "toolu_0",
        "log.jsonl",
        "--done",
        "--result",
        "so be it",
    ];
    sandbox.cli.run_toolq(&resolve).assert_exit(0);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["so be it"]);
    sandbox.cli.assert_log_sequence();
}

/// Each response is counted once, even if its agent hasn't finished.
#[test]
fn responses_are_counted_once_across_runs() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    let turns_and_tokens = || {
        let cost = sandbox
            .cli
            .run_toolq(&["log", "cost", "--format", "json", "log.jsonl"])
            .assert_exit(0);
        let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
        (
            cost["total"]["turns_used"].as_u64(),
            cost["total"]["input_tokens"].as_u64(),
        )
    };
    assert_eq!(turns_and_tokens(), (Some(1), Some(100)));
    sandbox.resume().assert_exit(3);
    assert_eq!(turns_and_tokens(), (Some(1), Some(100)));
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .assert_exit(0);
    sandbox.resume().assert_exit(0);
    assert_eq!(turns_and_tokens(), (Some(3), Some(300)));
    let used = sandbox.last_usage("lead");
    assert_eq!(used["tokens_used"], 3 * 116);
    assert_eq!(used["tool_calls_made"], 4);
}

/// A budget covers all runs of an agent, including the usage of nested agents that have already finished.
#[test]
fn a_budget_covers_all_runs() {
    let budget = agent_tools_file().replace("model: lead,", "model: lead, budget: {turns: 4},");
    let script = |body: &Value| match agent_and_message_count(body) {
        ("helper", 1) => calls_response(&[("look", numbered_input(1))]),
        ("helper", _) => text_response("helped"),
        (_, 1) => calls_response(&[("helper", numbered_input(0)), ("fatal", numbered_input(1))]),
        _ => calls_response(&[("look", numbered_input(2))]),
    };
    let sandbox = AgentSandbox::new(&budget, &agent_call_input("lead"), script);
    assert_eq!(sandbox.run(&[], None).code, None);
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
        .assert_exit(0);
    let done = sandbox.resume().assert_exit(3);
    assert!(
        done.result_texts()[0].contains("lead's budget of 4 turns is used up"),
        "{}",
        done.stdout
    );
    assert_eq!(sandbox.api.requests().len(), 4);
    // The used-up budget is a final result, so a further resume runs nothing.
    let records = sandbox.cli.log_records().len();
    assert_eq!(sandbox.resume().assert_exit(3).stdout, done.stdout);
    assert_eq!(sandbox.cli.log_records().len(), records + 2);
    sandbox.cli.assert_log_sequence();
}

/// Recorded responses are read back in any layout: on several lines, larger than a record, from another API.
#[test]
fn logged_responses_are_read_in_any_layout() {
    let pretty = |body: &Value| match fatal_call_script(body) {
        ApiBehavior::Respond(status, headers, text) => {
            let value: Value = serde_json::from_str(&text).unwrap();
            let padded = json!({"padding": "é\u{2028}".repeat(30_000), "answer": 0});
            let mut value = value;
            value["padding"] = padded["padding"].clone();
            ApiBehavior::Respond(
                status,
                headers,
                serde_json::to_string_pretty(&value).unwrap(),
            )
        }
        other => other,
    };
    let openai = |body: &Value| {
        let call = |at: u32, name: &str, number: u32| json!({"id": format!("a{at}"), "type": "function", "function": {"name": name, "arguments": format!("{{\n \"n\": {number} }}")}});
        match agent_and_message_count(body).1 {
            1 => chat_response(
                json!({"role": "assistant", "content": null, "tool_calls": [call(0, "look", 1), call(1, "fatal", 2)]}),
                "tool_calls",
            ),
            _ => chat_response(json!({"role": "assistant", "content": "well"}), "stop"),
        }
    };
    let other = agent_tools_file().replace("model: lead,", "model: lead, api: openai-chat,");
    for (sandbox, expected_start) in [
        (
            AgentSandbox::new(&agent_tools_file(), &agent_call_input("lead"), pretty),
            "so: ",
        ),
        (
            AgentSandbox::new(&other, &agent_call_input("lead"), openai),
            "well",
        ),
    ] {
        assert_eq!(sandbox.run(&[], None).code, None);
        sandbox
            .cli
            .run_toolq(&["log", "resolve", "a1", "log.jsonl", "--not-done"])
            .assert_exit(0);
        let done = sandbox.resume().assert_exit(0);
        assert!(
            done.result_texts()[0].starts_with(expected_start),
            "{}",
            done.stdout
        );
        assert_eq!(sandbox.effect_count("look 1"), 1);
        sandbox.cli.assert_log_sequence();
    }
}

/// `toolq call` has the same flags as `toolq run`.
#[test]
fn toolq_agent_resumes() {
    let sandbox = AgentSandbox::new(&agent_tools_file(), &agent_call_input("lead"), |body| {
        match agent_and_message_count(body) {
            ("helper", _) => text_response("helped"),
            ("lead", 1) => calls_response(&[
                ("look", numbered_input(1)),
                ("fatal", numbered_input(2)),
                ("helper", numbered_input(3)),
            ]),
            ("lead", 3) => calls_response(&[("look", numbered_input(4))]),
            _ => text_response("so it is"),
        }
    });
    let base = [("BASE", sandbox.api.url.as_str())];
    sandbox.cli.write_file("task.json", "{\"n\": 0}");
    let agent = |flags: &[&str]| {
        let arguments = [&["call", "-q", "lead", "--to", "json"], flags].concat();
        let input = std::fs::File::open(sandbox.cli.path().join("task.json")).unwrap();
        sandbox.cli.run_with_stdin(&base, &arguments, input.into())
    };
    assert_eq!(agent(&[]).code, None);
    agent(&["--resume", "--new"]).assert_exit(2);
    let in_doubt = agent(&["--resume"]).assert_exit(3);
    let report: Value = serde_json::from_str(&in_doubt.stdout).unwrap();
    assert_eq!(
        (&report["status"], &report["turns_used"]),
        (&json!("in_doubt"), &json!(1))
    );
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "a1", "--not-done"])
        .assert_exit(0);
    let report = |ran: crate::support::resume_sandbox::ResumeRunOutput| {
        let mut report: Value = serde_json::from_str(&ran.assert_exit(0).stdout).unwrap();
        report.as_object_mut().unwrap().remove("duration_ms");
        report
    };
    let first = report(agent(&["--resume"]));
    assert_eq!(
        (&first["turns_used"], &first["tool_calls_made"]),
        (&json!(3), &json!(4))
    );
    // Four responses of 100 tokens. One is the helper's, which arrived in the run that ended in doubt.
    assert_eq!(first["usage"]["model-1-20260101"]["input"], 400);
    assert_eq!(report(agent(&["--resume"])), first);
    assert_eq!(sandbox.api.requests().len(), 4);
}
