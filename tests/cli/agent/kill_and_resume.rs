//! toolq is killed at every step of an agent's run and then resumed. The tests count the effects of the tools and the
//! requests to the API: no write may happen twice, and no recorded response may be requested again.

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
    /// Returns the calls of `pay` that have a start but no result in the log: the id of the call's record, and its input.
    fn open_payments(&self) -> Vec<(String, u64)> {
        let mut open = Vec::new();
        let mut calls = Vec::new();
        for record in self.cli.log_records() {
            let parent = record["parentId"].as_str().unwrap_or_default().to_owned();
            let is_payment = record["metadata"]["tool_name"] == "pay";
            match record["type"].as_str().unwrap() {
                "tool_call" => calls.push((
                    record["id"].as_str().unwrap().to_owned(),
                    record["content"]["input"]["n"].as_u64().unwrap_or_default(),
                )),
                "tool_start" if is_payment => {
                    let call = calls.iter().find(|(id, _)| *id == parent);
                    open.push(call.unwrap().clone());
                }
                "tool_result" => open.retain(|(id, _)| *id != parent),
                _ => {}
            }
        }
        open
    }

    /// Resolves the open payments according to the recorded effects, as an operator would.
    fn resolve_open_payments(&self) {
        for (id, n) in self.open_payments() {
            let result = format!("paid {n}");
            let mut arguments = vec!["log", "resolve", &id, "log.jsonl"];
            if self.effect_count(&format!("pay {n}")) == 1 {
                arguments.extend(["--done", "--result", &result]);
            } else {
                arguments.push("--not-done");
            }
            self.cli.run_toolq(&arguments).assert_exit(0);
        }
    }

    /// Resumes until the run is complete, and compares output, effects and requests with an undisturbed run.
    fn assert_resumes_to(&self, undisturbed: &str, what: &str) {
        let (earlier_requests, answered) = (self.request_digests().len(), self.answered_digests());
        let is_in_doubt = !self.open_payments().is_empty();
        let mut resumed = self.resume();
        let context = |ran: &ResumeRunOutput| format!("{what}\n{}\n{}", ran.stdout, ran.stderr);
        if is_in_doubt {
            assert_eq!(resumed.code, Some(3), "{}", context(&resumed));
            assert!(resumed.stdout.contains("In doubt"), "{}", context(&resumed));
            let again = self.resume();
            assert_eq!(
                (&again.stdout, again.code),
                (&resumed.stdout, Some(3)),
                "{what}"
            );
            self.resolve_open_payments();
            resumed = self.resume();
        }
        assert_eq!(resumed.code, Some(0), "{}", context(&resumed));
        assert_eq!(resumed.stdout, undisturbed, "{}", context(&resumed));
        for n in [4, 5, 6, 8, 9, 99] {
            let expected = usize::from(n != 99);
            assert_eq!(
                self.effect_count(&format!("pay {n}")),
                expected,
                "pay {n}: {}",
                context(&resumed)
            );
        }
        for read in ["look 1", "look 2", "keep 3", "look 7"] {
            assert!(
                self.effect_count(read) >= 1,
                "{read}: {}",
                context(&resumed)
            );
        }
        let repeated: Vec<String> = self.request_digests()[earlier_requests..]
            .iter()
            .filter(|digest| answered.contains(*digest))
            .cloned()
            .collect();
        assert!(
            repeated.is_empty(),
            "requested twice: {repeated:?} {}",
            context(&resumed)
        );
        assert_eq!(self.answered_digests().len(), 5, "{}", context(&resumed));
        self.cli.assert_log_sequence();
        let used = self.last_usage("lead");
        assert_eq!(
            (&used["turns_used"], &used["tool_calls_made"]),
            (&json!(3), &json!(10)),
            "{what}"
        );
    }
}

/// Returns what an undisturbed run prints.
fn undisturbed_stdout() -> String {
    let sandbox = new_sandbox();
    let printed = sandbox.run(&[], None).assert_exit(0).stdout;
    assert_eq!(sandbox.request_digests().len(), 5);
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

/// The first kill leaves an unfinished helper or a call in doubt; the second comes at every step of the resumed run.
#[test]
fn a_resumed_agent_may_be_killed_again() {
    let undisturbed = undisturbed_stdout();
    for first in [96, 120] {
        let kill_count = run_steps_in_parallel(|at| {
            let sandbox = new_sandbox();
            sandbox.run(&[], Some(&format!("any:{first}:kill")));
            let resumed = sandbox.run(&["--resume"], Some(&format!("any:{at}:kill")));
            if resumed.code.is_some() {
                return false;
            }
            sandbox.assert_resumes_to(&undisturbed, &format!("killed at {first}, then at {at}"));
            true
        });
        assert!(kill_count > 50, "{kill_count}");
    }
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

/// Agents that run in parallel resume independently of each other.
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
        let (earlier_requests, answered) =
            (sandbox.request_digests().len(), sandbox.answered_digests());
        let is_in_doubt = !sandbox.open_payments().is_empty();
        let mut resumed = sandbox.resume();
        if is_in_doubt {
            sandbox.resolve_open_payments();
            resumed = sandbox.resume();
        }
        assert_eq!(
            (resumed.code, &resumed.stdout),
            (Some(0), &undisturbed),
            "killed at {at}"
        );
        assert_eq!(sandbox.effect_count("pay 3"), 1, "killed at {at}");
        let has_repeated = sandbox.request_digests()[earlier_requests..]
            .iter()
            .any(|digest| answered.contains(digest));
        assert!(
            !has_repeated && sandbox.answered_digests().len() == 4,
            "killed at {at}"
        );
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
