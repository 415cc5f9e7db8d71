//! An agent that was killed or interrupted, and had only read, runs again from its beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_call_input, agent_tools_file, fatal_call_script,
    killed_in_fatal_call, numbered_input,
};
use crate::support::resume_sandbox::ResumeRunOutput;
use crate::support::scripted_api::{ApiBehavior, calls_response, text_response};

#[test]
fn an_interrupted_agent_that_had_only_read_runs_again() {
    let slow = agent_tools_file().replace(
        "echo \"look $1\" >> effects;",
        "echo \"look $1\" >> effects; test $1 = 1 || test -e quick || sleep 60;",
    );
    let sandbox =
        AgentSandbox::new(
            &slow,
            &agent_call_input("lead"),
            |body| match agent_and_message_count(body).1 {
                1 => calls_response(&[("look", numbered_input(1))]),
                3 => calls_response(&[("look", numbered_input(2))]),
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
    assert!(done.stderr.contains("agents: 3 turns;"), "{}", done.stderr);
    assert_eq!(
        ["look 1", "look 2"].map(|what| sandbox.effect_count(what)),
        [2, 2]
    );
    assert_eq!(sandbox.api.requests().len(), 5);
    assert_eq!(
        sandbox.cli.call_records("toolu_0")[1..5],
        [
            "tool_start 1",
            "model_response",
            "model_response",
            "tool_result interrupted"
        ]
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
fn an_agent_interrupted_while_waiting_for_its_model_runs_again() {
    let may_respond = Arc::new(AtomicBool::new(false));
    let shared_flag = Arc::clone(&may_respond);
    let sandbox = AgentSandbox::new(
        &agent_tools_file(),
        &agent_call_input("lead"),
        move |body| match agent_and_message_count(body).1 {
            1 => calls_response(&[("look", numbered_input(1))]),
            _ if !shared_flag.load(Ordering::SeqCst) => ApiBehavior::Hang,
            _ => text_response("done"),
        },
    );
    interrupt_when(&sandbox, || sandbox.api.requests().len() == 2);
    may_respond.store(true, Ordering::SeqCst);
    assert_eq!(sandbox.resume().assert_exit(0).result_texts(), ["done"]);
    assert_eq!(sandbox.api.requests().len(), 4);
    sandbox.cli.assert_log_sequence();
}

/// An agent that has to run again counts as a call that still has to run, so changes to its tools must be accepted.
#[test]
fn changed_tools_need_accept_changes_to_run_an_agent_again() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "toolu_0", "log.jsonl", "--not-done"])
        .assert_exit(0);
    let changed = agent_tools_file().replace("looked $1", "saw $1");
    sandbox.cli.write_file("tools.yaml", &changed);
    let before = sandbox.cli.read_file("log.jsonl");
    let refused = sandbox.resume().assert_exit(2).stderr;
    assert!(
        refused.contains("still have to run (lead)") && refused.contains("changed: look"),
        "{refused}"
    );
    assert_eq!(sandbox.cli.read_file("log.jsonl"), before);
    let done = sandbox
        .run(&["--resume", "--accept-changes"], None)
        .assert_exit(0);
    assert!(done.result_texts()[0].contains("saw 1"), "{}", done.stdout);
}

/// Both attempts were paid for.
#[test]
fn responses_of_all_attempts_are_counted() {
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
        .run_toolq(&["log", "resolve", "toolu_0", "log.jsonl", "--not-done"])
        .assert_exit(0);
    sandbox.resume().assert_exit(0);
    assert_eq!(turns_and_tokens(), (Some(4), Some(400)));
    let used = sandbox.last_usage("lead");
    assert_eq!(used["tokens_used"], 3 * 116);
    assert_eq!(used["tool_calls_made"], 4);
}

/// `toolq call` has the same flags as `toolq run`.
#[test]
fn toolq_agent_resumes() {
    let sandbox = AgentSandbox::new(
        &agent_tools_file(),
        &agent_call_input("lead"),
        fatal_call_script,
    );
    let base = [("BASE", sandbox.api.url.as_str())];
    sandbox.cli.write_file("task.json", "{\"n\": 0}");
    let agent = |flags: &[&str]| {
        let arguments = [&["call", "-q", "lead", "--to", "json"], flags].concat();
        let input = std::fs::File::open(sandbox.cli.path().join("task.json")).unwrap();
        sandbox.cli.run_with_stdin(&base, &arguments, input.into())
    };
    assert_eq!(agent(&[]).code, None);
    agent(&["--resume", "--new"]).assert_exit(2);
    let report = |ran: &ResumeRunOutput| {
        let mut report: Value = serde_json::from_str(&ran.stdout).unwrap();
        report.as_object_mut().unwrap().remove("duration_ms");
        report
    };
    let in_doubt = agent(&["--resume"]).assert_exit(3);
    assert_eq!(report(&in_doubt)["status"], "in_doubt");
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "toolq_lead", "--not-done"])
        .assert_exit(0);
    let first = report(&agent(&["--resume"]).assert_exit(0));
    assert_eq!(
        (&first["turns_used"], &first["tool_calls_made"]),
        (&json!(3), &json!(4))
    );
    assert_eq!(report(&agent(&["--resume"]).assert_exit(0)), first);
    assert_eq!(sandbox.api.requests().len(), 4);
}
