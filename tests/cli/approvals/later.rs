//! An approval that comes after the run that needed it: `toolq approvals`.

use serde_json::{Value, json};

use crate::support::resume_sandbox::ResumeSandbox;
use crate::support::scripted_api::{ScriptedApi, calls_response, text_response};

const RANDOM_ID: &str = "toolu_01A09q90qw90lq917835lq9x";

/// Two payments, both of which wait for a person.
fn sandbox() -> ResumeSandbox {
    let tools = r#"
tools:
  pay:
    input_schema: {type: object, properties: {n: {type: number}}, required: [n]}
    approve: true
    command: [sh, -c, 'echo "pay $1" >> effects; echo "paid $1"', sh, "{n}"]
"#;
    let sandbox = ResumeSandbox::new(tools, "");
    let call = |id: &str, n: &str| {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"pay","input":{{"n":{n}}}}}"#)
    };
    let calls = [call(RANDOM_ID, "123456789012345678901"), call("b", "2")].join(",");
    let message = format!(r#"{{"role":"assistant","content":[{calls}]}}"#);
    sandbox.write_file("input.json", &message);
    sandbox
}

/// Returns the calls that wait, as programs read them.
fn waiting(sandbox: &ResumeSandbox, log: &[&str]) -> Vec<Value> {
    let arguments = [&["approvals", "--format", "json"], log].concat();
    let output = sandbox.run_toolq(&arguments).assert_exit(0);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Each of two calls that look the same has a question of its own, also if both ask at once.
#[test]
fn calls_that_look_the_same_are_approved_one_by_one() {
    let tools = "tools: {look: {effect: read, approve: true, input_schema: {type: object}, command: [date]}}";
    let call = json!({"type": "tool_use", "name": "look", "input": {}});
    let message = json!({"role": "assistant", "content": [call, call, call]}).to_string();
    for _ in 0..10 {
        let sandbox = ResumeSandbox::new(tools, &message);
        sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
        assert_eq!(waiting(&sandbox, &[]).len(), 3);
        sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
        assert_eq!(waiting(&sandbox, &[]).len(), 3);
    }
}

/// Who says yes means the tool, too, also if another one is declared in the same words.
#[test]
fn a_decision_is_about_the_tool_that_was_shown() {
    let tool = "{approve: true, input_schema: {type: object}, command: [sh, -c, 'echo $TOOLQ_TOOL_NAME >> effects']}";
    let sandbox = ResumeSandbox::new(&format!("tools: {{archive: {tool}, delete: {tool}}}"), "");
    let run = |name: &str, exit| {
        let call = json!({"type": "tool_use", "id": RANDOM_ID, "name": name, "input": {}});
        sandbox.write_file("input.json", &call.to_string());
        sandbox.run_toolq(&["run", "input.json"]).assert_exit(exit)
    };
    run("archive", 6);
    let approve = ["approvals", "approve", RANDOM_ID];
    sandbox.run_toolq(&approve).assert_exit(0);
    run("delete", 6);
    assert!(sandbox.effects().is_empty());
}

/// An earlier run of the same input has asked.
#[test]
fn what_a_later_run_suggests_can_be_run() {
    let sandbox = sandbox();
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let run = sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let (_, command) = run.stderr.split_once("say yes with `toolq ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    sandbox.run_toolq(&words).assert_exit(0);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
}

/// The command that a run suggests names its own calls, whatever other runs wait for, and the list says where those are.
#[test]
fn what_a_run_suggests_can_be_run() {
    let sandbox = sandbox();
    let input = sandbox.read_file("input.json").replace(RANDOM_ID, "a");
    sandbox.write_file("input.json", &input);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let other = input
        .replace("123456789012345678901", "3")
        .replace(r#""n":2"#, r#""n":4"#);
    sandbox.write_file("other.json", &other);
    let said = sandbox
        .run_toolq(&["run", "other.json"])
        .assert_exit(6)
        .stderr;
    let (_, command) = said.split_once("say yes with `toolq ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    sandbox.run_toolq(&words).assert_exit(0);
    sandbox.run_toolq(&["run", "other.json"]).assert_exit(0);
    assert_eq!(sandbox.effects(), ["pay 3", "pay 4"]);
    std::fs::create_dir(sandbox.path().join("elsewhere")).unwrap();
    let directory = format!(" in {} (", sandbox.path().canonicalize().unwrap().display());
    let listed = |dir| {
        sandbox
            .run_toolq_in(dir, &["approvals"])
            .assert_exit(0)
            .stdout
    };
    assert_eq!(listed("elsewhere").matches(&directory).count(), 2);
    assert_eq!(listed(".").matches(&directory).count(), 0);
}

/// Who says yes means the input that was shown, and can take it back.
#[test]
fn a_decision_is_about_the_input_that_was_shown() {
    let sandbox = sandbox();
    let run = |file: &str, exit| sandbox.run_toolq(&["run", file]).assert_exit(exit);
    let decide = |verb: &str, id: &str| sandbox.run_toolq(&["approvals", verb, id]);
    let input = sandbox.read_file("input.json");
    run("input.json", 6);
    let shown = waiting(&sandbox, &[])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(shown, RANDOM_ID);
    // Meanwhile, another input comes under the same id.
    let other = input.replace("123456789012345678901", "999");
    sandbox.write_file("other.json", &other);
    run("other.json", 6);
    let of_id = || {
        let mut calls = waiting(&sandbox, &[]);
        calls.retain(|call| call["tool_use_id"] == RANDOM_ID);
        calls
    };
    assert_eq!(of_id().len(), 2);
    let ambiguous = decide("approve", RANDOM_ID).assert_exit(2);
    assert!(
        ambiguous.stderr.contains("several calls"),
        "{}",
        ambiguous.stderr
    );
    let calls = of_id();
    let first = calls.iter().find(|call| call["input"]["n"] != json!(999));
    let first = first.unwrap()["id"].as_str().unwrap().to_owned();
    let said = decide("approve", &first).assert_exit(0).stderr;
    assert!(said.contains("123456789012345678901"), "{said}");
    run("other.json", 6);
    assert!(sandbox.effects().is_empty());
    // The yes is taken back, and given again.
    decide("deny", &first).assert_exit(0);
    run("input.json", 6);
    assert!(sandbox.effects().is_empty());
    decide("deny", &first).assert_exit(2);
    decide("approve", &first).assert_exit(0);
    run("input.json", 6);
    assert_eq!(sandbox.effects(), ["pay 123456789012345678901"]);
}

/// Who approved a call approved what its input means.
#[test]
fn an_approval_holds_in_whatever_form_its_input_comes_again() {
    let sandbox = sandbox();
    let run = |file: &str, exit| sandbox.run_toolq(&["run", file]).assert_exit(exit);
    run("input.json", 6);
    sandbox
        .run_toolq(&["approvals", "approve", RANDOM_ID])
        .assert_exit(0);
    let input = sandbox.read_file("input.json");
    let again = input.replace(r#"{"n":"#, "{\n  \"\\u006e\" : ");
    assert_ne!(again, input);
    sandbox.write_file("again.json", &again);
    run("again.json", 6);
    assert_eq!(sandbox.effects(), ["pay 123456789012345678901"]);
    // Another input isn't what was approved.
    sandbox
        .run_toolq(&["approvals", "approve", "b"])
        .assert_exit(0);
    sandbox.write_file("other.json", &input.replace(r#"{"n":2}"#, r#"{"n":3}"#));
    run("other.json", 6);
    run("again.json", 0);
    assert_eq!(sandbox.effects().len(), 2);
}

/// Each decision lets the same input go on from there, once, in the memory that runs share and in a log of its own.
#[test]
fn what_was_approved_runs_when_its_input_is_run_again() {
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let sandbox = sandbox();
        let run = |exit| {
            let arguments = [&["run", "input.json"], log].concat();
            sandbox.run_toolq(&arguments).assert_exit(exit)
        };
        let decide = |arguments: &[&str]| {
            let arguments = [&["approvals"], arguments, log].concat();
            sandbox.run_toolq(&arguments)
        };
        let asked = run(6);
        assert!(asked.stderr.contains("toolq approvals"), "{}", asked.stderr);
        let calls = waiting(&sandbox, log);
        let ids: Vec<&str> = calls
            .iter()
            .filter_map(|call| call["tool_use_id"].as_str())
            .collect();
        assert_eq!(ids, [RANDOM_ID, "b"], "in their order");
        assert_eq!(calls[0]["tool_name"], "pay");
        let listed = decide(&[]).assert_exit(0).stdout;
        assert!(
            listed.contains("123456789012345678901"),
            "its input is whole: {listed}"
        );
        decide(&["approve", RANDOM_ID]).assert_exit(0);
        assert_eq!(waiting(&sandbox, log).len(), 1);
        assert!(sandbox.effects().is_empty(), "nothing runs by itself");
        run(6);
        let calls = waiting(&sandbox, log);
        assert_eq!(calls[0]["tool_use_id"], "b");
        let id = calls[0]["id"].as_str().unwrap();
        decide(&["deny", id, "--reason", "too much"]).assert_exit(0);
        decide(&["deny", id]).assert_exit(2);
        for _ in 0..2 {
            let results = run(0).result_texts();
            assert_eq!(results[0], "paid 123456789012345678901");
            assert!(results[1].contains("too much"), "{results:?}");
        }
        assert_eq!(sandbox.effects(), ["pay 123456789012345678901"]);
        // Whoever has said no may say yes after all.
        decide(&["approve", id]).assert_exit(0);
        decide(&["approve", id]).assert_exit(2);
        for _ in 0..2 {
            assert_eq!(run(0).result_texts()[1], "paid 2");
        }
        assert_eq!(sandbox.effects().len(), 2);
    }
}

/// Whoever comes later decides about the calls of a turn together, by the line that the run has printed.
#[test]
fn all_calls_of_a_turn_are_approved_at_once() {
    let sandbox = sandbox();
    let said = sandbox
        .run_toolq(&["run", "-q", "input.json"])
        .assert_exit(6)
        .stderr;
    let commands: Vec<&str> = said.split('`').collect();
    let approve: Vec<&str> = commands[3].split(' ').skip(1).collect();
    assert_eq!(approve[..3], ["approvals", "approve", RANDOM_ID], "{said}");
    sandbox.run_toolq(&approve).assert_exit(0);
    assert_eq!(waiting(&sandbox, &[]), Vec::<Value>::new());
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
    assert_eq!(
        sandbox.effects(),
        ["pay 123456789012345678901", "pay 2"],
        "in their order"
    );
}

/// The decision is about what would run, not about an id.
#[test]
fn what_has_changed_is_asked_about_again() {
    let sandbox = sandbox();
    let run = || sandbox.run_toolq(&["run", "input.json"]);
    run().assert_exit(6);
    sandbox
        .run_toolq(&["approvals", "approve", RANDOM_ID])
        .assert_exit(0);
    let tools = sandbox.read_file("tools.yaml").replace("paid", "spent");
    sandbox.write_file("tools.yaml", &tools);
    run().assert_exit(6);
    assert!(sandbox.effects().is_empty());
    assert_eq!(waiting(&sandbox, &[])[0]["tool_use_id"], json!(RANDOM_ID));
}

#[test]
fn an_id_that_nobody_asked_about_is_refused() {
    let sandbox = sandbox();
    let refused = |why: &str| {
        let output = sandbox
            .run_toolq(&["approvals", "approve", "x"])
            .assert_exit(2);
        assert!(output.stderr.contains(why), "{}", output.stderr);
    };
    refused("none does");
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    refused(&format!("these do: {RANDOM_ID}"));
}

/// Calls of two inputs have the same plain id. Whatever a later run of one suggests names its call alone, for both ways to say yes.
#[test]
fn calls_with_equal_ids_are_told_apart() {
    for (begin, end) in [("say yes with `toolq ", "`"), ("or add `", "`")] {
        let sandbox = sandbox();
        let call = |n: u8| json!({"type": "tool_use", "id": "a", "name": "pay", "input": {"n": n}});
        sandbox.write_file("input.json", &call(1).to_string());
        sandbox.write_file("other.json", &call(2).to_string());
        let mut said = String::new();
        for input in ["input.json", "other.json", "input.json"] {
            let run = sandbox.run_toolq(&["run", input]).assert_exit(6);
            said = run.stderr.clone();
        }
        let (_, command) = said.split_once(begin).unwrap();
        let words: Vec<&str> = command.split_once(end).unwrap().0.split(' ').collect();
        let flags = if words[0] == "--approve" {
            &words[..]
        } else {
            sandbox.run_toolq(&words).assert_exit(0);
            &[]
        };
        let run = |input| sandbox.run_toolq(&[&["run", input], flags].concat());
        run("other.json").assert_exit(6);
        run("input.json").assert_exit(0);
        assert_eq!(sandbox.effects(), ["pay 1"]);
    }
}

/// A flag says yes at once, whatever was said before.
#[test]
fn a_flag_approves_what_was_denied_before() {
    let sandbox = sandbox();
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let deny = ["approvals", "deny", RANDOM_ID];
    sandbox.run_toolq(&deny).assert_exit(0);
    let denied = sandbox.run_toolq(&["run", "input.json"]);
    assert!(
        denied.result_texts()[0].contains("Denied"),
        "{:?}",
        denied.result_texts()
    );
    let approve = format!("{RANDOM_ID},b");
    let run = ["run", "--approve", &approve, "input.json"];
    sandbox.run_toolq(&run).assert_exit(0);
    assert_eq!(sandbox.effects().len(), 2);
}

/// Two calls that look the same wait in turns of their own. A yes to one of them is none to the other.
#[test]
fn a_yes_to_a_question_is_one_to_no_other() {
    let sandbox = sandbox();
    let line = r#"[{"type":"tool_use","id":"call_0","name":"pay","input":{"n":250}}]"#;
    sandbox.write_file("turns.jsonl", &format!("{line}\n{line}\n"));
    sandbox.run_toolq(&["run", "turns.jsonl"]).assert_exit(6);
    let asked = waiting(&sandbox, &[]);
    assert_eq!(asked.len(), 2, "{asked:?}");
    let handle = asked[0]["id"].as_str().unwrap();
    let run = || sandbox.run_toolq(&["run", "turns.jsonl", "--approve", handle]);
    run().assert_exit(6);
    assert_eq!(sandbox.effects(), ["pay 250"]);
    run().assert_exit(6);
    assert_eq!(sandbox.effects(), ["pay 250"]);
}

/// Its model asks with another id when the agent runs again, so nobody could approve that call later, unless its values name it.
#[test]
fn a_call_of_an_agent_waits_only_if_it_can_come_again() {
    let api = ScriptedApi::with_script(|_, body| match body["messages"].as_array() {
        Some(messages) if messages.len() > 1 => text_response("done"),
        _ => calls_response(&[("pay", json!({"n": 1})), ("note", json!({"n": 1}))]),
    });
    let input = "{type: object, properties: {n: {type: integer}}, required: [n]}";
    let tools = format!(
        r#"
tools:
  pay: {{once: [n], approve: true, input_schema: {input}, command: [echo, paid]}}
  note: {{approve: true, input_schema: {input}, command: [echo, noted]}}
  expert:
    input_schema: {{type: object}}
    agent: {{endpoint: "{}", model: m, tools: [pay, note]}}
"#,
        api.url
    );
    let call = json!({"type": "tool_use", "id": "a", "name": "expert", "input": {}});
    let sandbox = ResumeSandbox::new(&tools, &call.to_string());
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let waiting = waiting(&sandbox, &[]);
    let names: Vec<&Value> = waiting.iter().map(|call| &call["tool_name"]).collect();
    assert_eq!(names, ["pay"]);
}

/// A read may need an approval, too.
#[test]
fn a_read_that_was_approved_runs() {
    let sandbox = sandbox();
    let tools = sandbox.read_file("tools.yaml");
    let tools = tools.replace("approve: true", "approve: true\n    effect: read");
    sandbox.write_file("tools.yaml", &tools);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let decide = |verb: &str, id: &str| {
        let arguments = ["approvals", verb, id];
        sandbox.run_toolq(&arguments).assert_exit(0);
    };
    decide("approve", RANDOM_ID);
    let run = || sandbox.run_toolq(&["run", "input.json"]);
    let first = run().assert_exit(6).result_texts();
    assert_eq!(first[0], "paid 123456789012345678901");
    decide("deny", "b");
    assert!(run().result_texts()[1].contains("Denied"));
}
