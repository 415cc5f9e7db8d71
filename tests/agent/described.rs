//! Agents whose tools describe themselves, and one that does so itself.

use serde_json::{Value, json};

use crate::api::{Act, Api, calls, text};
use crate::scenes::{asked, result, toolq, tools};
use crate::support::{Toolq, response};

/// Tools that describe themselves: `say`, which the expert has, and `other`, which nobody calls.
const SAY: &str = r#"
  say:
    describe: [sh, -c, 'echo say >> asked; cat said']
    effect: read
    command: [printf, "%s", "{x}"]
  other:
    describe: [sh, -c, 'echo other >> asked; cat said']
    effect: read
    command: [echo]
"#;

fn said(property: &str) -> String {
    let schema = json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property]});
    json!({"description": "Says it.", "input_schema": schema}).to_string()
}

/// The expert, at first right, then wrong about what `say` takes.
fn script() -> Api {
    Api::new(&[
        calls(&[("say", json!({"x": "hello"})), ("say", json!({}))]),
        text("It is so."),
    ])
}

fn with_say(api: &Api, more: &str) -> Toolq {
    let file = tools("      tools: [say]") + SAY + more;
    toolq(api, "").tools(&file).file("said", said("x"))
}

/// The model is told what the tool says, the tool's calls are checked by it; nobody else is asked.
#[test]
fn an_agent_is_given_what_its_tools_say() {
    let check = |api: &Api, asked: &str| {
        let declared = &api.heard()[0].body["tools"][0];
        assert_eq!(declared["description"], "Says it.");
        assert_eq!(declared["input_schema"]["required"], json!(["x"]));
        let results = api.messages(1)[2]["content"].clone();
        assert_eq!(results[0]["content"], "hello");
        let wrong = results[1]["content"].as_str().unwrap();
        assert!(wrong.contains("/x: is required"), "{wrong}");
        assert_eq!(asked, "say\n");
    };
    let api = script();
    let ran = asked(with_say(&api, "")).exits(0);
    assert_eq!(result(&ran), ("It is so.".to_owned(), false));
    check(&api, &ran.file("asked").unwrap());
    let api = script();
    let alone = with_say(&api, "").stdin(r#"{"query": "why?"}"#);
    let ran = alone.run(&["agent", "expert"]).exits(0);
    check(&api, &ran.file("asked").unwrap());
    let log = ran.log();
    let end = log.iter().find(|record| record["type"] == "describe_end");
    assert_eq!(end.unwrap()["metadata"]["tool_name"], "say");
}

/// A task names the agent whose tools are asked; an agent that hands out tasks may name any.
#[test]
fn a_task_needs_what_its_agent_may_call() {
    let more = "  idle:\n    description: d\n    input_schema: {type: object}\n    agent: {endpoint: \"${BASE}\", model: m, tools: [other]}\n";
    let file = |api: &Api| {
        let text = (tools("      tools: [say]") + SAY + more)
            .replace("version: 1", "version: 1\nbuiltins: [new_task]");
        toolq(api, "").tools(&text).file("said", said("x"))
    };
    let task = |agent: &str| response(&[("new_task", json!({"agent": agent, "task": "why?"}))]);
    for (agent, expected) in [
        ("expert", Some("say\n")),
        ("idle", Some("other\n")),
        ("nobody", None),
    ] {
        let api = Api::new(&[text("It is so.")]);
        let ran = file(&api).stdin(task(agent)).run(&["run"]).exits(0);
        assert_eq!(ran.file("asked").as_deref(), expected, "{agent}");
    }
}

/// What an agent itself takes is known only when it said so: then the log is there already, and says that nothing else ran.
#[test]
fn an_agent_describes_itself() {
    let more = "  guide:\n    describe: [sh, -c, 'echo guide >> asked; cat said']\n    agent: {endpoint: \"${BASE}\", model: m}\n";
    let run = |input: &Value, code: i32| {
        let api = Api::new(&[text("There.")]);
        let toolq = with_say(&api, more).stdin(input.to_string());
        (
            toolq.run(&["agent", "guide"]).exits(code),
            api.heard().len(),
        )
    };
    let (ran, requests) = run(&json!({"x": "where?"}), 0);
    assert_eq!((&*ran.stdout, requests), ("There.\n", 1));
    let (ran, requests) = run(&json!({"y": "where?"}), 2);
    assert_eq!((&*ran.stdout, requests), ("", 0));
    assert!(ran.stderr.contains("/x: is required"), "{}", ran.stderr);
    let log = ran.log();
    let kinds: Vec<&str> = log
        .iter()
        .map(|record| record["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["session", "describe_start", "describe_end", "session_end"]
    );
    assert_eq!(log[3]["metadata"]["exit_code"], 2);
}

/// An agent that goes on needs its tools to go on with; one that is done does not.
#[test]
fn an_agent_that_goes_on_has_its_tools_asked() {
    let said = calls(&[("say", json!({"x": "hello"}))]);
    let api = Api::new(&[said, Act::Hang, text("It is so.")]);
    let ran = with_say(&api, "").stdin(r#"{"query": "why?"}"#).shell(
        r#"set -e
        cat > input
        "$TOOLQ" agent expert --log log --time-budget 1s < input || [ $? = 3 ]; rm asked
        "$TOOLQ" agent expert --log log --resume < input; rm asked
        "$TOOLQ" agent expert --log log --resume < input; [ ! -e asked ]
        "$TOOLQ" log verify log > verified"#,
    );
    let ran = ran.exits(0);
    assert_eq!(ran.stdout, "It is so.\nIt is so.\n", "{}", ran.stderr);
    let body = api.heard()[2].body.clone();
    assert_eq!(body["tools"][0]["description"], "Says it.");
    assert_eq!(body, api.heard()[1].body, "it asks what it asked before");
}
