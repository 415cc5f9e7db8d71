//! Built-in tools: `attempt_completion` and `new_task`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::agent::expert_fixture::{
    call_endings, expert_tools, run_expert_in, single_result, toolq,
};
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};
use crate::support::{CliSandbox, model_response};

fn with_builtins(keys: &str) -> String {
    expert_tools(keys).replace(
        "version: 1\n",
        "version: 1\nbuiltins: [attempt_completion, new_task]\n",
    )
}

#[test]
fn a_completion_is_the_answer_and_ends_the_loop() {
    let api = ScriptedApi::new(&[calls_response(&[
        ("look", json!({"at": "x"})),
        ("attempt_completion", json!({"result": "All done."})),
        ("write", json!({"what": "too late"})),
    ])]);
    let file = with_builtins("      tools: [look, write, attempt_completion]");
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert_eq!(single_result(&ran), ("All done.".to_owned(), false));
    assert_eq!(api.requests().len(), 1);
    assert_eq!(ran.file("written"), None);
}

/// In the last turn a completion runs and is the answer. Other calls of that turn don't run, because no further request
/// would send their results to the model.
#[test]
fn a_completion_in_the_last_turn_is_the_answer() {
    let calls = [
        ("look", json!({"at": "x"})),
        ("lok", json!({})),
        ("write", json!({"what": "never read"})),
        ("attempt_completion", json!({"result": "42"})),
        ("look", json!({"at": "y"})),
    ];
    let keys = "      max_turns: 1\n      tools: [look, write, attempt_completion]";
    let api = ScriptedApi::new(&[calls_response(&calls)]);
    let ran = run_expert_in(toolq(&api, "").tools(&with_builtins(keys))).assert_exit(0);
    assert_eq!(single_result(&ran), ("42".to_owned(), false));
    assert_eq!((api.requests().len(), ran.file("written")), (1, None));
    let mut ends = call_endings(&ran);
    ends.sort();
    assert_eq!(
        ends,
        [
            "attempt_completion a3 ok",
            "expert toolu_0 ok",
            "lok a1 unknown_tool",
            "look a0 not_executed",
            "look a4 not_executed",
            "write a2 not_executed"
        ]
    );
    // An invalid completion doesn't count.
    let api = ScriptedApi::new(&[calls_response(&[
        calls[0].clone(),
        ("attempt_completion", json!({})),
    ])]);
    let ran = run_expert_in(toolq(&api, "").tools(&with_builtins(keys))).assert_exit(0);
    let result_text = single_result(&ran).0;
    assert!(
        result_text.starts_with("Let me see.\n(The agent did not finish"),
        "{result_text}"
    );
    assert_eq!(call_endings(&ran), ["expert toolu_0 ok"]);
}

#[test]
fn a_completion_ends_a_turn_as_planned() {
    let input = model_response(&[
        ("look", json!({"at": "x"})),
        ("attempt_completion", json!({"result": "All done."})),
        ("look", json!({"at": "y"})),
    ]);
    let toolq = || {
        CliSandbox::new()
            .tools(&with_builtins(""))
            .env("BASE", "http://h")
            .env("KEY", "")
    };
    let ran = toolq().stdin(&input).run(&["run"]).assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts[1], ("All done.".to_owned(), false));
    assert!(
        texts[2]
            .0
            .starts_with("Not executed: the preceding attempt_completion call"),
        "{}",
        texts[2].0
    );
    let plan = toolq()
        .stdin(&input)
        .run(&["plan", "--format", "json"])
        .assert_exit(0)
        .json();
    assert_eq!(plan["batches"].as_array().unwrap().len(), 2);
    assert_eq!(plan["rejected"][0]["reason"], "not_executed");
}

#[test]
fn a_task_goes_to_a_declared_agent() {
    let api = ScriptedApi::new(&[text_response("Done it.")]);
    let input = model_response(&[
        ("new_task", json!({"agent": "expert", "task": "Find out."})),
        ("new_task", json!({"agent": "exprt", "task": "Find out."})),
    ]);
    let ran = toolq(&api, "")
        .tools(&with_builtins(""))
        .stdin(input)
        .run(&["run"])
        .assert_exit(0);
    let texts = ran.result_texts();
    assert_eq!(texts[0], ("Done it.".to_owned(), false));
    assert!(
        texts[1].1 && texts[1].0.contains("/agent"),
        "{}",
        texts[1].0
    );
    assert_eq!(api.messages(0)[0]["content"], "Find out.");
    let log = ran.log_records();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    assert_eq!(end.unwrap()["metadata"]["tool_name"], "new_task");
}

const NOT_CONCURRENCY_SAFE: &str = "concurrency_safe: false";

/// Returns a file with the agents `expert`, `helper` and `other`; the latter two have `new_task`.
fn with_helper_agents(keys: &str, helper: &str) -> String {
    let mut file = with_builtins(keys);
    for (name, keys) in [("helper", helper), ("other", "concurrency_safe: false")] {
        write!(
            file,
            r#"  {name}:
    description: Helps.
    input_schema: {{type: object}}
    {keys}
    agent: {{endpoint: "${{BASE}}", model: model-2, tools: [new_task]}}
"#
        )
        .unwrap();
    }
    file
}

/// Returns the agents that the declaration of `new_task` in a request allows.
fn new_task_agents(body: &Value) -> Value {
    let tools = body["tools"].as_array().unwrap().iter();
    let mut tools = tools.filter(|tool| tool["name"] == "new_task");
    tools.next().unwrap()["input_schema"]["properties"]["agent"]["enum"].clone()
}

/// An agent's tool list limits its rights: `new_task` doesn't extend them.
#[test]
fn new_task_reaches_only_agents_in_the_tool_list() {
    let task = |agent: &str| ("new_task", json!({"agent": agent, "task": "Find out."}));
    let api = ScriptedApi::new(&[
        calls_response(&[task("other"), task("expert"), task("helper")]),
        text_response("Helped."),
        text_response("Done it."),
    ]);
    let file = with_helper_agents(
        "      tools: [look, helper, new_task]",
        NOT_CONCURRENCY_SAFE,
    );
    let ran = run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert_eq!(single_result(&ran), ("Done it.".to_owned(), false));
    assert_eq!(api.requests().len(), 3);
    assert_eq!(new_task_agents(&api.requests()[0].body), json!(["helper"]));
    let results = api.messages(2).last().unwrap()["content"].clone();
    for at in [0, 1] {
        let answer = results[at].to_string();
        assert!(
            results[at]["is_error"] == true && answer.contains("helper"),
            "{answer}"
        );
    }
    assert!(results[2].to_string().contains("Helped."), "{results}");
    // An agent whose tool list has no other agent may delegate to all except itself. So may `helper`.
    assert_eq!(
        new_task_agents(&api.requests()[1].body),
        json!(["expert", "other"])
    );
    let api = ScriptedApi::new(&[text_response("Done it.")]);
    let file = with_helper_agents("      tools: [new_task]", NOT_CONCURRENCY_SAFE);
    run_expert_in(toolq(&api, "").tools(&file)).assert_exit(0);
    assert_eq!(
        new_task_agents(&api.requests()[0].body),
        json!(["helper", "other"])
    );
}

#[test]
fn a_safe_agent_delegates_only_to_safe_agents() {
    let check = |keys: &str| {
        let file = with_helper_agents(keys, "effect: read")
            .replace("effect: write", "concurrency_safe: true");
        CliSandbox::new()
            .tools(&file)
            .env("BASE", "http://h")
            .env("KEY", "")
            .run(&["check", "--color", "never"])
    };
    let all = check("      tools: [new_task]").assert_exit(1).stderr;
    assert!(
        all.contains("but may delegate to `other`, which can't"),
        "{all}"
    );
    let listed = check("      tools: [new_task, helper]").stderr;
    assert!(!listed.contains("`expert` runs in parallel"), "{listed}");
    let alone = with_builtins("      tools: [new_task]");
    let alone = CliSandbox::new()
        .tools(&alone)
        .run(&["check"])
        .assert_exit(1)
        .stderr;
    assert!(
        alone.contains("`new_task` of `expert` has no agent"),
        "{alone}"
    );
}

/// Each cycle is reported once.
#[test]
fn cycles_of_agents_are_reported() {
    let check = |keys: &str, helper: &str| {
        let file = with_helper_agents(keys, NOT_CONCURRENCY_SAFE).replace(
            "model: model-2, tools: [new_task]}",
            &format!("model: model-2, tools: [{helper}]}}"),
        );
        let toolq = CliSandbox::new().tools(&file);
        let toolq = toolq.env("BASE", "http://h").env("KEY", "k");
        toolq
            .run(&["check", "--color", "never"])
            .assert_exit(0)
            .stderr
    };
    let cycle = check("      tools: [look, helper]\n      max_depth: 5", "expert");
    assert_eq!(cycle.matches("cycle").count(), 1, "{cycle}");
    assert!(
        cycle.contains("in a cycle: expert › helper › expert")
            && cycle.contains("`max_depth` ends it after 5"),
        "{cycle}"
    );
    let itself = check("      tools: [expert]", "look");
    assert!(itself.contains("`expert` has itself as a tool"), "{itself}");
    let file = with_helper_agents("      tools: [expert]", NOT_CONCURRENCY_SAFE);
    let quiet = CliSandbox::new()
        .tools(&file)
        .run(&["check", "-q"])
        .assert_exit(0);
    assert_eq!(quiet.stderr, "");
    let strict = ["check", "-q", "--strict"];
    assert_eq!(
        CliSandbox::new()
            .tools(&file)
            .run(&strict)
            .assert_exit(1)
            .stderr,
        ""
    );
    let acyclic = check("      tools: [helper, other]", "look");
    assert!(!acyclic.contains("cycle"), "{acyclic}");
}

#[test]
fn builtins_are_declared_unless_the_file_overrides_them() {
    let names = |file: &str| -> Vec<String> {
        let declared = CliSandbox::new()
            .tools(file)
            .run(&["tools"])
            .assert_exit(0)
            .json();
        let names = declared.as_array().unwrap().iter();
        names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let own = "  attempt_completion:\n    description: Mine.\n    input_schema: {type: object}\n    command: [echo, mine]\n";
    let file = with_builtins("");
    assert_eq!(names(&file)[4..], ["attempt_completion", "new_task"]);
    assert_eq!(
        names(&(file.clone() + own))[4..],
        ["attempt_completion", "new_task"]
    );
    let ran = CliSandbox::new()
        .tools(&(file + own))
        .stdin(model_response(&[("attempt_completion", json!({}))]))
        .run(&["run"])
        .assert_exit(0);
    assert_eq!(ran.result_texts()[0].0, "mine");
}

#[test]
fn misspelled_builtins_are_reported() {
    let file = expert_tools("").replace(
        "version: 1\n",
        "version: 1\nbuiltins: [atempt_completion]\n",
    );
    let ran = CliSandbox::new()
        .tools(&file)
        .run(&["check"])
        .assert_exit(1);
    assert!(
        ran.stdout.contains("attempt_completion")
            || ran.stderr.contains("did you mean `attempt_completion`"),
        "{}",
        ran.stderr
    );
}
