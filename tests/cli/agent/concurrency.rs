//! Agents that run in parallel with each other and with other calls.

use serde_json::{Value, json};

use crate::agent::expert_fixture::{expert_tools, read_events, toolq};
use crate::support::scripted_api::{ApiBehavior, ScriptedApi, calls_response, text_response};
use crate::support::{CliOutput, CliSandbox, model_response};

fn concurrency_safe_tools(keys: &str) -> String {
    expert_tools(keys).replace(
        "effect: write\n    agent",
        "concurrency_safe: true\n    agent",
    )
}

fn two_expert_calls() -> String {
    model_response(&[
        ("expert", json!({"query": "a"})),
        ("expert", json!({"query": "b"})),
    ])
}

/// Safe agents run in parallel: both requests must arrive before the API answers either.
#[test]
fn safe_agents_work_at_the_same_time() {
    let met = ApiBehavior::Rendezvous(2, Box::new(text_response("met")));
    let api = ScriptedApi::new(&[met]);
    let ran = toolq(&api, "")
        .tools(&concurrency_safe_tools(""))
        .stdin(two_expert_calls())
        .run(&["run", "-j", "2"])
        .assert_exit(0);
    assert_eq!(
        ran.result_texts(),
        [("met".to_owned(), false), ("met".to_owned(), false)]
    );
}

fn expert_calls(count: usize) -> String {
    let call = ("expert", json!({"query": "a"}));
    model_response(&vec![call; count])
}

/// Returns the highest number of agents that worked at the same time, by the events of the run.
fn most_agents_at_once(ran: &CliOutput) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for event in read_events(ran) {
        match event["type"].as_str().unwrap() {
            "agent_started" => now += 1,
            "agent_completed" => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn the_concurrency_limit_applies_to_agents() {
    let met = ApiBehavior::Rendezvous(3, Box::new(text_response("met")));
    let api = ScriptedApi::new(&[met]);
    let ran = toolq(&api, "")
        .tools(&concurrency_safe_tools(""))
        .stdin(expert_calls(12))
        .run(&["run", "-j", "3", "--events", "events"])
        .assert_exit(0);
    assert!(ran.result_texts().iter().all(|(text, _)| text == "met"));
    assert_eq!(most_agents_at_once(&ran), 3);
}

/// The soft limit is raised: more agents than it allows for meet at the API.
#[test]
fn many_agents_work_at_once_under_a_low_soft_limit() {
    let met = ApiBehavior::Rendezvous(70, Box::new(text_response("met")));
    let api = ScriptedApi::new(&[met]);
    let ran = toolq(&api, "")
        .tools(&concurrency_safe_tools(""))
        .stdin(expert_calls(70))
        .run_shell("ulimit -Sn 64; exec \"$TOOLQ\" run -j 70")
        .assert_exit(0);
    assert!(ran.result_texts().iter().all(|(text, _)| text == "met"));
}

/// Under a hard limit, the agents that have no descriptors left wait for those that work.
#[test]
fn more_agents_than_descriptors_all_work() {
    let api = ScriptedApi::new(&[text_response("done")]);
    let ran = toolq(&api, "")
        .tools(&concurrency_safe_tools(""))
        .stdin(expert_calls(300))
        .run_shell("ulimit -n 128; exec \"$TOOLQ\" run -j 300")
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts.len(), 300);
    assert!(texts.iter().all(|(text, _)| text == "done"), "{texts:?}");
    assert_eq!(ran.log_records().last().unwrap()["type"], "session_end");
}

/// With `-j 1` agents run one after the other, as planned, and their own calls still get a permit.
#[test]
fn jobs_1_runs_agents_one_at_a_time() {
    let api =
        ScriptedApi::with_script(|_, body| match body["messages"].as_array().unwrap().len() {
            1 => calls_response(&[("look", json!({"at": "x"})), ("look", json!({"at": "y"}))]),
            _ => text_response("done"),
        });
    let file = concurrency_safe_tools("      tools: [look]")
        .replace("    agent:\n", "    estimate: 1s\n    agent:\n");
    let toolq = toolq(&api, "").tools(&file).stdin(two_expert_calls());
    let ran = toolq
        .run(&["run", "-j", "1", "--events", "events"])
        .assert_exit(0);
    assert_eq!(ran.result_texts().len(), 2);
    let events = read_events(&ran);
    let agents: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str()?.strip_prefix("agent_"))
        .filter(|what| *what != "progress")
        .collect();
    assert_eq!(agents, ["started", "completed", "started", "completed"]);
    let plan = CliSandbox::new()
        .tools(&file)
        .stdin(two_expert_calls())
        .run(&["plan", "-j", "1", "--format", "json"])
        .assert_exit(0)
        .json();
    assert_eq!(plan["estimate"]["planned_ms"], 2000);
}

/// The concurrency limit is global: the calls of both agents share its permits.
#[test]
fn agents_share_the_concurrency_limit() {
    let api =
        ScriptedApi::with_script(|_, body| match body["messages"].as_array().unwrap().len() {
            1 => calls_response(&[
                ("count", json!({})),
                ("count", json!({})),
                ("count", json!({})),
            ]),
            _ => text_response("done"),
        });
    let file = concurrency_safe_tools("      tools: [count]")
        + r"  count:
    description: Counts the running instances.
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'mkdir -p running && : > running/$$; ls running | wc -l >> counts; sleep 0.1; rm running/$$']
";
    let ran = toolq(&api, "")
        .tools(&file)
        .stdin(two_expert_calls())
        .run(&["run", "-j", "2"])
        .assert_exit(0);
    let counts: Vec<u32> = ran
        .file("counts")
        .unwrap()
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 6);
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
}

#[test]
fn a_safe_agent_may_only_have_safe_tools() {
    let ran = CliSandbox::new()
        .tools(&concurrency_safe_tools("      tools: [look, write]"))
        .run(&["check"])
        .assert_exit(1);
    let output = ran.stdout + &ran.stderr;
    assert!(
        output.contains("`expert` runs in parallel with other calls"),
        "{output}"
    );
    assert!(output.contains("its tool `write` can't"), "{output}");
    let typo = CliSandbox::new()
        .tools(&expert_tools("      tools: [lok]"))
        .run(&["check"])
        .assert_exit(1);
    let output = typo.stdout + &typo.stderr;
    assert!(output.contains("did you mean `look`?"), "{output}");
}

#[test]
fn a_call_that_is_unsafe_for_its_input_is_refused() {
    let api = ScriptedApi::new(&[
        calls_response(&[
            ("bash", json!({"script": "ls"})),
            ("bash", json!({"script": "rm x"})),
        ]),
        text_response("ok"),
    ]);
    let file = concurrency_safe_tools("      tools: [bash]")
        + r#"  bash:
    description: Runs.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script], additionalProperties: false}
    concurrency_safe: {when: {properties: {script: {pattern: "^ls$"}}, required: [script]}}
    command: {argv: [echo, ran], stdin: "{script}"}
"#;
    let input = model_response(&[("expert", json!({"query": "a"}))]);
    toolq(&api, "")
        .tools(&file)
        .stdin(input)
        .run(&["run"])
        .assert_exit(0);
    let results: Vec<Value> = api.messages(1)[2]["content"].as_array().unwrap().clone();
    assert_eq!(results[0]["content"], "ran");
    assert!(
        results[1]["content"]
            .as_str()
            .unwrap()
            .contains("must run alone")
    );
    assert_eq!(results[1]["is_error"], true);
}
