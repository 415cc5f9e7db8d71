//! toolq is killed at every step of an agent's run and then resumed. The tests count the effects of the tools and the
//! requests to the API: no write may happen twice, and an agent that may have written does nothing more.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::agent::agent_sandbox::{
    AgentSandbox, agent_and_message_count, agent_tools_file, numbered_input,
};
use crate::support::resume_sandbox::ResumeRunOutput;
use crate::support::scripted_api::{
    ApiBehavior, calls_response, message_body, ok_response, text_response, tool_use_blocks,
};
use crate::support::{full_or_short, model_response};

/// How many sandboxes run in parallel.
const WORKERS: usize = 4;
/// From one step at which something goes wrong to the next.
const STRIDE: u32 = full_or_short(1, 40);

/// Returns the response to a conversation, which depends on nothing else.
fn scripted_response(body: &Value) -> ApiBehavior {
    match agent_and_message_count(body) {
        ("lead", 1) => calls_response(&[
            ("look", numbered_input(1)),
            ("look", numbered_input(2)),
            ("keep", numbered_input(3)),
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
    AgentSandbox::new(&agent_tools_file(), &input(), scripted_response)
}

fn input() -> String {
    model_response(&[("lead", numbered_input(0)), ("pay", numbered_input(9))])
}

impl AgentSandbox {
    /// Returns the ids of the calls that a record of this type is about.
    fn ids_of(&self, kind: &str) -> Vec<String> {
        let records = self.cli.log_records();
        let records = records.iter().filter(|record| record["type"] == kind);
        records
            .filter_map(|record| record["metadata"]["tool_use_id"].as_str())
            .map(str::to_owned)
            .collect()
    }

    /// Returns whether an agent has started a call that isn't `read`.
    fn has_changed_something(&self) -> bool {
        let records = self.cli.log_records();
        records.iter().any(|record| {
            let start = &record["metadata"];
            let is_of_agent = start["tool_use_id"]
                .as_str()
                .is_some_and(|id| id.starts_with('a'));
            record["type"] == "tool_start"
                && is_of_agent
                && start["agent"].is_null()
                && start["effect"] != "read"
        })
    }

    /// Settles calls of the input in doubt, as an operator would.
    fn settle(&self, id: &str, is_done: bool, result: &str) {
        let mut arguments = vec!["log", "resolve", id, "log.jsonl"];
        if is_done {
            arguments.extend(["--done", "--result", result]);
        } else {
            arguments.push("--not-done");
        }
        self.cli.run_toolq(&arguments).assert_exit(0);
    }

    /// Resumes until the run is complete, and compares output, effects and requests with an undisturbed run.
    fn assert_resumes_to(&self, undisturbed: &str, what: &str) {
        let has_result = |id: &str| self.ids_of("tool_result").iter().any(|found| found == id);
        let has_started = |id: &str| self.ids_of("tool_start").iter().any(|found| found == id);
        let agent_in_doubt = self.has_changed_something() && !has_result("toolu_0");
        let payment_in_doubt = has_started("toolu_1") && !has_result("toolu_1");
        let requests = self.api.requests().len();
        let mut resumed = self.resume();
        let context = |ran: &ResumeRunOutput| format!("{what}\n{}\n{}", ran.stdout, ran.stderr);
        if agent_in_doubt || payment_in_doubt {
            assert_eq!(resumed.code, Some(3), "{}", context(&resumed));
            assert!(resumed.stdout.contains("In doubt"), "{}", context(&resumed));
            let again = self.resume();
            assert_eq!(
                (&again.stdout, again.code),
                (&resumed.stdout, Some(3)),
                "{what}"
            );
            if agent_in_doubt {
                self.settle("toolu_0", true, "so be it");
            }
            if payment_in_doubt {
                self.settle("toolu_1", self.effect_count("pay 9") == 1, "paid 9");
            }
            resumed = self.resume();
        }
        assert_eq!(resumed.code, Some(0), "{}", context(&resumed));
        if agent_in_doubt {
            assert_eq!(resumed.result_texts()[0], "so be it", "{what}");
            assert_eq!(self.api.requests().len(), requests, "{what}");
        } else {
            assert_eq!(resumed.stdout, undisturbed, "{}", context(&resumed));
        }
        for (n, at_least) in [(4, 1), (5, 1), (6, 1), (8, 1), (9, 1), (99, 0)] {
            let count = self.effect_count(&format!("pay {n}"));
            let at_least = if agent_in_doubt && n != 9 {
                0
            } else {
                at_least
            };
            assert!(
                (at_least..=usize::from(n != 99)).contains(&count),
                "pay {n}: {count}, {}",
                context(&resumed)
            );
        }
        self.cli.assert_log_sequence();
    }
}

/// Returns what an undisturbed run prints.
fn undisturbed_stdout() -> String {
    let sandbox = new_sandbox();
    let printed = sandbox.run(&[], None).assert_exit(0).stdout;
    assert_eq!(sandbox.api.requests().len(), 5);
    printed
}

#[test]
fn an_agent_killed_at_any_step_resumes() {
    let undisturbed = undisturbed_stdout();
    let kill_count = run_steps_in_parallel(|at| {
        let sandbox = new_sandbox();
        if sandbox
            .run(&[], Some(&format!("any:{at}:kill")))
            .code
            .is_some()
        {
            return false;
        }
        sandbox.assert_resumes_to(&undisturbed, &format!("killed at {at}"));
        true
    });
    assert!(kill_count > 150, "{kill_count}");
}

/// The first kill comes when the agent has only read; the second comes at every step of the resumed run.
#[test]
fn an_agent_that_runs_again_may_be_killed_again() {
    let undisturbed = undisturbed_stdout();
    let kill = |sandbox: &AgentSandbox, at: u32, flags: &[&str]| {
        let killed = sandbox.run(flags, Some(&format!("any:{at}:kill")));
        killed.code.is_none()
    };
    let has_only_read = |at: &u32| {
        let sandbox = new_sandbox();
        assert!(kill(&sandbox, *at, &[]), "there is no such step");
        sandbox.effect_count("look 2") == 1 && !sandbox.has_changed_something()
    };
    let first = (1..500).find(has_only_read).unwrap();
    let kill_count = run_steps_in_parallel(|at| {
        let sandbox = new_sandbox();
        kill(&sandbox, first, &[]);
        if !kill(&sandbox, at, &["--resume"]) {
            return false;
        }
        sandbox.assert_resumes_to(&undisturbed, &format!("killed at {first}, then at {at}"));
        true
    });
    assert!(kill_count > 150, "{kill_count}");
}

/// If the log can't be written, no further call with side effects starts; a panic loses nothing that was recorded.
#[test]
fn an_agent_whose_log_failed_resumes() {
    let undisturbed = undisturbed_stdout();
    for action in ["error", "panic"] {
        run_steps_in_parallel(|at| {
            let sandbox = new_sandbox();
            sandbox.run(&[], Some(&format!("any:{}:{action}", at * 7)));
            if sandbox.cli.log_path().exists() {
                sandbox.assert_resumes_to(&undisturbed, &format!("{action} at {at}"));
            }
            at < 30
        });
    }
}

/// Agents that run in parallel run again independently of each other.
#[test]
fn concurrent_agents_resume() {
    let scout = "  scout:\n    input_schema: {type: object, properties: {n: {type: integer}}}\n    concurrency_safe: true\n    agent: {endpoint: \"${BASE}\", model: scout, tools: [look]}\n";
    let make_sandbox = || {
        let input = model_response(&[
            ("scout", numbered_input(1)),
            ("scout", numbered_input(2)),
            ("pay", numbered_input(3)),
        ]);
        AgentSandbox::new(&(agent_tools_file() + scout), &input, |body| {
            match agent_and_message_count(body).1 {
                1 => calls_response(&[("look", numbered_input(1)), ("look", numbered_input(2))]),
                _ => text_response(&format!("to {}", body["messages"][0]["content"])),
            }
        })
    };
    let undisturbed = make_sandbox().run(&[], None).assert_exit(0).stdout;
    let kill_count = run_steps_in_parallel(|at| {
        let sandbox = make_sandbox();
        if sandbox
            .run(&[], Some(&format!("any:{at}:kill")))
            .code
            .is_some()
        {
            return false;
        }
        let mut resumed = sandbox.resume();
        if resumed.code == Some(3) {
            sandbox.settle("toolu_2", sandbox.effect_count("pay 3") == 1, "paid 3");
            resumed = sandbox.resume();
        }
        assert_eq!(
            (resumed.code, &resumed.stdout),
            (Some(0), &undisturbed),
            "killed at {at}"
        );
        assert_eq!(sandbox.effect_count("pay 3"), 1, "killed at {at}");
        sandbox.cli.assert_log_sequence();
        true
    });
    assert!(kill_count > 80, "{kill_count}");
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
