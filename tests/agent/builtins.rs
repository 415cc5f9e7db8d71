//! Tools that toolq has itself.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::api::{Api, calls, streamed, text};
use crate::scenes::{result, toolq, tools};
use crate::support::{Toolq, response};

fn with_builtins(keys: &str) -> String {
    tools(keys).replace(
        "version: 1\n",
        "version: 1\nbuiltins: [attempt_completion, new_task]\n",
    )
}

#[test]
fn a_completion_is_the_answer_and_ends_the_loop() {
    let api = Api::new(&[calls(&[
        ("look", json!({"at": "x"})),
        ("attempt_completion", json!({"result": "All done."})),
        ("write", json!({"what": "too late"})),
    ])]);
    let file = with_builtins("      tools: [look, write, attempt_completion]");
    let ran = crate::scenes::asked(toolq(&api, "").tools(&file)).exits(0);
    assert_eq!(result(&ran), ("All done.".to_owned(), false));
    assert_eq!(api.heard().len(), 1);
    assert_eq!(ran.file("written"), None);
}

/// In the last turn, too: it needs nobody to read it. What else was called could only be read by a model that is not asked.
#[test]
fn a_completion_in_the_last_turn_is_the_answer() {
    let all = [
        ("look", json!({"at": "x"})),
        ("lok", json!({})),
        ("write", json!({"what": "never read"})),
        ("attempt_completion", json!({"result": "42"})),
        ("look", json!({"at": "y"})),
    ];
    let keys = "      max_turns: 1\n      tools: [look, write, attempt_completion]";
    for (stream, act) in [
        ("", calls(&all)),
        ("\n      stream: true", streamed(calls(&all))),
    ] {
        let api = Api::new(&[act]);
        let file = with_builtins(&format!("{keys}{stream}"));
        let ran = crate::scenes::asked(toolq(&api, "").tools(&file)).exits(0);
        assert_eq!(result(&ran), ("42".to_owned(), false));
        assert_eq!((api.heard().len(), ran.file("written")), (1, None));
        let mut ends = crate::speech::ends(&ran);
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
    }
    // One that is none leaves all as it is.
    let api = Api::new(&[calls(&[all[0].clone(), ("attempt_completion", json!({}))])]);
    let ran = crate::scenes::asked(toolq(&api, "").tools(&with_builtins(keys))).exits(0);
    let told = result(&ran).0;
    assert!(
        told.starts_with("Let me see.\n(The agent was not done"),
        "{told}"
    );
    assert_eq!(crate::speech::ends(&ran), ["expert toolu_0 ok"]);
}

#[test]
fn a_completion_ends_a_turn_as_planned() {
    let asked = response(&[
        ("look", json!({"at": "x"})),
        ("attempt_completion", json!({"result": "All done."})),
        ("look", json!({"at": "y"})),
    ]);
    let toolq = || {
        Toolq::new()
            .tools(&with_builtins(""))
            .env("BASE", "http://h")
            .env("KEY", "")
    };
    let ran = toolq().stdin(&asked).run(&["run"]).exits(0);
    let texts = ran.texts();
    assert_eq!(texts[1], ("All done.".to_owned(), false));
    assert!(
        texts[2]
            .0
            .starts_with("Not executed: the attempt_completion call"),
        "{}",
        texts[2].0
    );
    let plan = toolq()
        .stdin(&asked)
        .run(&["plan", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(plan["batches"].as_array().unwrap().len(), 2);
    assert_eq!(plan["rejected"][0]["reason"], "not_executed");
}

#[test]
fn a_task_goes_to_a_declared_agent() {
    let api = Api::new(&[text("Done it.")]);
    let asked = response(&[
        ("new_task", json!({"agent": "expert", "task": "Find out."})),
        ("new_task", json!({"agent": "exprt", "task": "Find out."})),
    ]);
    let ran = toolq(&api, "")
        .tools(&with_builtins(""))
        .stdin(asked)
        .run(&["run"])
        .exits(0);
    let texts = ran.texts();
    assert_eq!(texts[0], ("Done it.".to_owned(), false));
    assert!(
        texts[1].1 && texts[1].0.contains("/agent"),
        "{}",
        texts[1].0
    );
    assert_eq!(api.messages(0)[0]["content"], "Find out.");
    let log = ran.log();
    let end = log
        .iter()
        .find(|record| record["metadata"]["agent_name"] == "expert");
    assert_eq!(end.unwrap()["metadata"]["tool_name"], "new_task");
}

const ALONE: &str = "concurrency_safe: false";

/// `helper` and `other` beside `expert`, each with `new_task`.
fn with_others(keys: &str, helper: &str) -> String {
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

/// Whom the `new_task` of the request's declarations may name.
fn named(body: &Value) -> Value {
    let tools = body["tools"].as_array().unwrap().iter();
    let mut tools = tools.filter(|tool| tool["name"] == "new_task");
    tools.next().unwrap()["input_schema"]["properties"]["agent"]["enum"].clone()
}

/// A list of tools is a list of rights: `new_task` adds none.
#[test]
fn a_task_goes_to_nobody_whom_the_agent_may_not_call() {
    let task = |agent: &str| ("new_task", json!({"agent": agent, "task": "Find out."}));
    let api = Api::new(&[
        calls(&[task("other"), task("expert"), task("helper")]),
        text("Helped."),
        text("Done it."),
    ]);
    let file = with_others("      tools: [look, helper, new_task]", ALONE);
    let ran = crate::scenes::asked(toolq(&api, "").tools(&file)).exits(0);
    assert_eq!(result(&ran), ("Done it.".to_owned(), false));
    assert_eq!(api.heard().len(), 3);
    assert_eq!(named(&api.heard()[0].body), json!(["helper"]));
    let results = api.messages(2).last().unwrap()["content"].clone();
    for at in [0, 1] {
        let said = results[at].to_string();
        assert!(
            results[at]["is_error"] == true && said.contains("helper"),
            "{said}"
        );
    }
    assert!(results[2].to_string().contains("Helped."), "{results}");
    // Who names no agent may name all but itself, and so may the helper.
    assert_eq!(named(&api.heard()[1].body), json!(["expert", "other"]));
    let api = Api::new(&[text("Done it.")]);
    let file = with_others("      tools: [new_task]", ALONE);
    crate::scenes::asked(toolq(&api, "").tools(&file)).exits(0);
    assert_eq!(named(&api.heard()[0].body), json!(["helper", "other"]));
}

#[test]
fn who_runs_beside_others_hands_tasks_to_such() {
    let check = |keys: &str| {
        let file =
            with_others(keys, "effect: read").replace("effect: write", "concurrency_safe: true");
        Toolq::new()
            .tools(&file)
            .env("BASE", "http://h")
            .env("KEY", "")
            .run(&["check", "--color", "never"])
    };
    let all = check("      tools: [new_task]").exits(1).stderr;
    assert!(
        all.contains("so whom it hands tasks to must, too, and `other` may not"),
        "{all}"
    );
    let own = check("      tools: [new_task, helper]").stderr;
    assert!(!own.contains("`expert` runs beside"), "{own}");
    let alone = with_builtins("      tools: [new_task]");
    let alone = Toolq::new().tools(&alone).run(&["check"]).exits(1).stderr;
    assert!(
        alone.contains("`new_task` of `expert` has nobody"),
        "{alone}"
    );
}

/// Each circle once, and nothing where there is none.
#[test]
fn circles_of_agents_are_told() {
    let check = |keys: &str, helper: &str| {
        let file = with_others(keys, ALONE).replace(
            "model: model-2, tools: [new_task]}",
            &format!("model: model-2, tools: [{helper}]}}"),
        );
        let toolq = Toolq::new().tools(&file);
        let toolq = toolq.env("BASE", "http://h").env("KEY", "k");
        toolq.run(&["check", "--color", "never"]).exits(0).stderr
    };
    let circle = check("      tools: [look, helper]\n      max_depth: 5", "expert");
    assert_eq!(circle.matches("circle").count(), 1, "{circle}");
    assert!(
        circle.contains("in a circle: expert › helper › expert")
            && circle.contains("`max_depth`, 5"),
        "{circle}"
    );
    let itself = check("      tools: [expert]", "look");
    assert!(itself.contains("`expert` has itself as a tool"), "{itself}");
    let file = with_others("      tools: [expert]", ALONE);
    let quiet = Toolq::new().tools(&file).run(&["check", "-q"]).exits(0);
    assert_eq!(quiet.stderr, "");
    let strict = ["check", "-q", "--strict"];
    assert_eq!(Toolq::new().tools(&file).run(&strict).exits(1).stderr, "");
    let none = check("      tools: [helper, other]", "look");
    assert!(!none.contains("circle"), "{none}");
}

#[test]
fn they_are_declared_unless_the_file_has_its_own() {
    let names = |file: &str| -> Vec<String> {
        let declared = Toolq::new().tools(file).run(&["tools"]).exits(0).json();
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
    let ran = Toolq::new()
        .tools(&(file + own))
        .stdin(response(&[("attempt_completion", json!({}))]))
        .run(&["run"])
        .exits(0);
    assert_eq!(ran.texts()[0].0, "mine");
}

#[test]
fn mistakes_in_the_list_are_found() {
    let file = tools("").replace(
        "version: 1\n",
        "version: 1\nbuiltins: [atempt_completion]\n",
    );
    let ran = Toolq::new().tools(&file).run(&["check"]).exits(1);
    assert!(
        ran.stdout.contains("attempt_completion")
            || ran.stderr.contains("did you mean `attempt_completion`"),
        "{}",
        ran.stderr
    );
}
