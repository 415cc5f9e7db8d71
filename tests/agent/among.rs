//! Agents beside each other and beside other calls.

use serde_json::{Value, json};

use crate::api::{Act, Api, calls, text};
use crate::scenes::{toolq, tools};
use crate::support::{Toolq, response};

fn safe(keys: &str) -> String {
    tools(keys).replace(
        "effect: write\n    agent",
        "concurrency_safe: true\n    agent",
    )
}

fn twice() -> String {
    response(&[
        ("expert", json!({"query": "a"})),
        ("expert", json!({"query": "b"})),
    ])
}

/// Agents hold no place: two wait for their models at the same time, although only one call may run at once beside
/// another.
#[test]
fn safe_agents_work_at_the_same_time() {
    let met = Act::Meet(2, Box::new(text("met")));
    let api = Api::new(&[met]);
    let ran = toolq(&api, "")
        .tools(&safe(""))
        .stdin(twice())
        .run(&["run", "-j", "2"])
        .exits(0);
    assert_eq!(
        ran.texts(),
        [("met".to_owned(), false), ("met".to_owned(), false)]
    );
}

/// With `-j 1` nothing runs beside anything, as planned; and an agent's own calls still find a place.
#[test]
fn one_at_a_time_is_one_at_a_time() {
    let api = Api::by(|_, body| match body["messages"].as_array().unwrap().len() {
        1 => calls(&[("look", json!({"at": "x"})), ("look", json!({"at": "y"}))]),
        _ => text("done"),
    });
    let file =
        safe("      tools: [look]").replace("    agent:\n", "    estimate: 1s\n    agent:\n");
    let toolq = toolq(&api, "").tools(&file).stdin(twice());
    let ran = toolq
        .run(&["run", "-j", "1", "--events", "events"])
        .exits(0);
    assert_eq!(ran.texts().len(), 2);
    let events = crate::scenes::events(&ran);
    let agents: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str()?.strip_prefix("agent_"))
        .filter(|what| *what != "progress")
        .collect();
    assert_eq!(agents, ["started", "completed", "started", "completed"]);
    let plan = Toolq::new()
        .tools(&file)
        .stdin(twice())
        .run(&["plan", "-j", "1", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(plan["estimate"]["planned_ms"], 2000);
}

/// `concurrency` is over everything: the calls of two agents share its places.
#[test]
fn calls_of_agents_share_the_places() {
    let api = Api::by(|_, body| match body["messages"].as_array().unwrap().len() {
        1 => calls(&[
            ("count", json!({})),
            ("count", json!({})),
            ("count", json!({})),
        ]),
        _ => text("done"),
    });
    let file = safe("      tools: [count]")
        + r"  count:
    description: Counts who runs beside it.
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'mkdir -p here && : > here/$$; ls here | wc -l >> most; sleep 0.1; rm here/$$']
";
    let ran = toolq(&api, "")
        .tools(&file)
        .stdin(twice())
        .run(&["run", "-j", "2"])
        .exits(0);
    let most: Vec<u32> = ran
        .file("most")
        .unwrap()
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(most.len(), 6);
    assert!(most.iter().all(|count| *count <= 2), "{most:?}");
}

#[test]
fn a_safe_agent_may_only_have_safe_tools() {
    let ran = Toolq::new()
        .tools(&safe("      tools: [look, write]"))
        .run(&["check"])
        .exits(1);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("`expert` runs beside other calls"), "{said}");
    assert!(said.contains("`write` may not"), "{said}");
    let typo = Toolq::new()
        .tools(&tools("      tools: [lok]"))
        .run(&["check"])
        .exits(1);
    let said = typo.stdout + &typo.stderr;
    assert!(said.contains("did you mean `look`?"), "{said}");
}

#[test]
fn per_input_a_call_that_must_run_alone_is_refused() {
    let api = Api::new(&[
        calls(&[
            ("bash", json!({"script": "ls"})),
            ("bash", json!({"script": "rm x"})),
        ]),
        text("ok"),
    ]);
    let file = safe("      tools: [bash]")
        + r#"  bash:
    description: Runs.
    input_schema: {type: object, properties: {script: {type: string}}, required: [script], additionalProperties: false}
    concurrency_safe: {when: {properties: {script: {pattern: "^ls$"}}, required: [script]}}
    command: {argv: [echo, ran], stdin: "{script}"}
"#;
    let asked = response(&[("expert", json!({"query": "a"}))]);
    toolq(&api, "")
        .tools(&file)
        .stdin(asked)
        .run(&["run"])
        .exits(0);
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
