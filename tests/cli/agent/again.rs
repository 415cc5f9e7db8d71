//! An agent whose run was cut off: it is in doubt if a call of it that isn't `read` had started, and runs again otherwise.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_call_input, agent_tools_file,
    killed_in_fatal_call, numbered_input,
};
use crate::support::scripted_api::{
    ApiBehavior, calls_response, message_body, ok_response, text_response, tool_use_blocks,
};
use crate::support::{full_or_short, model_response};

/// How many sandboxes run in parallel.
const WORKERS: usize = 4;
/// From one step at which toolq is killed to the next.
const STRIDE: u32 = full_or_short(1, 40);

/// Returns the response to a conversation, which depends on nothing else.
fn scripted_response(body: &Value) -> ApiBehavior {
    match agent_and_message_count(body) {
        ("lead", 1) => calls_response(&[
            ("look", numbered_input(1)),
            ("look", numbered_input(2)),
            ("pay", numbered_input(4)),
        ]),
        ("lead", 3) => calls_response(&[
            ("helper", numbered_input(0)),
            ("pay", numbered_input(5)),
            ("lok", numbered_input(0)),
        ]),
        ("helper", 1) => calls_response(&[("pay", numbered_input(6)), ("look", numbered_input(7))]),
        ("helper", _) => text_response("helped"),
        _ => {
            let mut blocks = tool_use_blocks(&[("pay", numbered_input(8))]);
            let done = json!({"result": format!("done: {}", body["messages"][4])});
            blocks.extend(tool_use_blocks(&[
                ("attempt_completion", done),
                ("pay", numbered_input(99)),
            ]));
            blocks[1]["id"] = json!("a1");
            blocks[2]["id"] = json!("a2");
            ok_response(message_body(json!(blocks), "tool_use"))
        }
    }
}

fn new_sandbox() -> AgentSandbox {
    let input = model_response(&[("lead", numbered_input(0)), ("pay", numbered_input(9))]);
    AgentSandbox::new(&agent_tools_file(), &input, scripted_response)
}

/// Runs the input again after a kill. Nothing happens twice; without a doubt, the output is that of an undisturbed run.
fn assert_runs_again(sandbox: &AgentSandbox, undisturbed: &str, history: &str) {
    let again = sandbox.run(&[], None);
    let context = format!("{history}\n{}\n{}", again.stdout, again.stderr);
    let in_doubt = again.stdout.contains("In doubt");
    assert_eq!(again.code, Some(if in_doubt { 3 } else { 0 }), "{context}");
    assert!(in_doubt || again.stdout == undisturbed, "{context}");
    for n in [4, 5, 6, 8, 9] {
        let count = sandbox.effect_count(&format!("pay {n}"));
        assert!(
            count == 1 || in_doubt && count == 0,
            "pay {n}: {count} {context}"
        );
    }
    assert_eq!(sandbox.effect_count("pay 99"), 0, "{context}");
    let effects = sandbox.cli.effects();
    let third = sandbox.run(&[], None);
    assert_eq!(
        (third.stdout, third.code),
        (again.stdout, again.code),
        "{history}"
    );
    assert_eq!(sandbox.cli.effects(), effects, "{history}");
    sandbox.cli.assert_log_sequence();
}

#[test]
fn an_agent_killed_at_any_step_repeats_nothing() {
    let undisturbed = new_sandbox().run(&[], None).assert_exit(0).stdout;
    let kill_count = run_steps_in_parallel(|at| {
        let sandbox = new_sandbox();
        let killed = sandbox.run(&[], Some(&format!("any:{at}:kill")));
        if killed.code.is_some() {
            return false;
        }
        assert_runs_again(&sandbox, &undisturbed, &format!("killed at {at}"));
        true
    });
    assert!(kill_count > 50, "{kill_count}");
}

/// An agent that has only read has changed nothing, so it starts over.
#[test]
fn an_agent_that_only_read_runs_again() {
    let file =
        agent_tools_file().replace("tools: [look, keep, pay, fatal, helper,", "tools: [look,");
    let new_sandbox = || {
        AgentSandbox::new(
            &file,
            &agent_call_input("lead"),
            |body| match agent_and_message_count(body).1 {
                1 => calls_response(&[("look", numbered_input(1)), ("look", numbered_input(2))]),
                _ => text_response("seen"),
            },
        )
    };
    let kill_count = run_steps_in_parallel(|at| {
        let sandbox = new_sandbox();
        let killed = sandbox.run(&[], Some(&format!("any:{at}:kill")));
        if killed.code.is_some() {
            return false;
        }
        let again = sandbox.run(&[], None).assert_exit(0);
        assert_eq!(again.result_texts(), ["seen"], "killed at {at}");
        sandbox.cli.assert_log_sequence();
        true
    });
    assert!(kill_count > 20, "{kill_count}");
}

#[test]
fn an_agent_that_was_killed_in_a_write_is_in_doubt_until_it_is_settled() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    for _ in 0..2 {
        let doubtful = sandbox.run(&[], None).assert_exit(3).result_texts();
        assert!(
            doubtful[0].starts_with("In doubt: lead may have done its work"),
            "{doubtful:?}"
        );
    }
    assert_eq!(sandbox.api.requests().len(), 1);
    assert_eq!(sandbox.cli.effects().len(), 2);
    let settle = ["log", "resolve", "toolu_0", "log.jsonl", "--done"];
    let settle = [&settle[..], &["--result", "never mind"]].concat();
    sandbox.cli.run_toolq(&settle).assert_exit(0);
    let settled = sandbox.run(&[], None).assert_exit(0).result_texts();
    assert_eq!(settled, ["never mind"]);
    assert_eq!(sandbox.api.requests().len(), 1);
    sandbox.cli.assert_log_sequence();
}

/// The agent starts over, and its call that may have run stays in doubt.
#[test]
fn an_agent_that_starts_over_does_not_repeat_its_calls() {
    let sandbox = killed_in_fatal_call(&agent_tools_file());
    sandbox
        .cli
        .run_toolq(&["log", "resolve", "toolu_0", "log.jsonl", "--not-done"])
        .assert_exit(0);
    let stopped = sandbox.run(&[], None).assert_exit(3).result_texts();
    assert!(
        stopped[0].starts_with("In doubt: lead stopped at a call of fatal (a1)"),
        "{stopped:?}"
    );
    let fatal = sandbox.cli.effects();
    let fatal = fatal.iter().filter(|effect| effect.starts_with("fatal"));
    assert_eq!(fatal.count(), 1);
}

/// Calls `work` with 1, 2, 3 …, or some of these, on several threads until it returns false. Returns how many steps there were.
fn run_steps_in_parallel(work: impl Fn(u32) -> bool + Sync) -> u32 {
    let (next, is_over) = (AtomicU32::new(1), AtomicBool::new(false));
    let count = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    if work(next.fetch_add(STRIDE, Ordering::SeqCst)) {
                        count.fetch_add(1, Ordering::SeqCst);
                    } else {
                        is_over.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    count.into_inner() * STRIDE
}
