//! Calls that start only after an approval: who decides, what is recorded, and what a later run does.

mod changed_plan;
mod forged_plan;
mod killed;
mod later;
mod plan;
mod program;
mod terminal;

use crate::support::{CliSandbox, model_response, parse_json_lines};
use serde_json::{Value, json};

/// `pay` changes something, `look` doesn't. Both add a line to the file `ran`.
const TOOLS: &str = r#"
version: 1
defaults: {approve: writes}
tools:
  pay:
    input_schema: {type: object, properties: {to: {type: string}, amount: {type: integer, minimum: 0}}}
    command: [sh, -c, "echo pay >> ran; echo paid"]
  look:
    effect: read
    input_schema: {type: object}
    command: [sh, -c, "echo look >> ran; echo seen"]
"#;

fn sandbox() -> CliSandbox {
    CliSandbox::new().tools(TOOLS)
}

/// Returns a response with calls of `look`, `pay`, `look` and `pay`.
fn four_calls() -> String {
    let pay = json!({"amount": 5});
    model_response(&[
        ("look", json!({})),
        ("pay", pay.clone()),
        ("look", json!({})),
        ("pay", pay),
    ])
}

/// Returns `[type, decision or status]` of the records that decide about calls.
fn decisions(log: &str) -> Vec<[String; 2]> {
    let records = parse_json_lines(log).into_iter();
    let decisions = records.filter_map(|record| {
        let kind = record["type"].as_str()?.to_owned();
        let metadata = &record["metadata"];
        let word = match kind.as_str() {
            "approval" => &metadata["decision"],
            "tool_start" => &metadata["tool_name"],
            "tool_skipped" | "tool_result" => &metadata["status"],
            _ => return None,
        };
        Some([kind, word.as_str()?.to_owned()])
    });
    decisions.collect()
}

fn words(pairs: &[(&str, &str)]) -> Vec<[String; 2]> {
    let pairs = pairs.iter();
    pairs
        .map(|(kind, word)| [(*kind).to_owned(), (*word).to_owned()])
        .collect()
}

#[test]
fn a_listing_says_which_tools_need_an_approval() {
    let when = TOOLS.replace(
        "    effect: read\n",
        "    effect: read\n    approve: {when: {required: [a]}}\n",
    );
    let listing = |tools: &str, format: &str| {
        let sandbox = CliSandbox::new().tools(tools);
        let output = sandbox.run(&["tools", "--format", format]).assert_exit(0);
        output.stdout
    };
    let table = listing(&when, "table");
    let ends: Vec<&str> = table
        .lines()
        .map(|row| &row[row.trim_end().len().saturating_sub(8)..])
        .collect();
    assert_eq!(ends, ["approval", "  always", "by input"], "{table}");
    assert!(!listing(&TOOLS.replace("writes", "false"), "table").contains("approval"));
    let listed: Value = serde_json::from_str(&listing(&when, "json")).unwrap();
    assert_eq!(
        [&listed[0]["approve"], &listed[1]["approve"]],
        [&json!(true), &Value::Null]
    );
}

/// `writes` is made for `defaults` and `rules`, and means the same on a tool.
#[test]
fn writes_on_a_tool_depends_on_its_effect() {
    let tools = TOOLS.replace("defaults: {approve: writes}\n", "");
    let on_tools = tools.replace("    input_schema", "    approve: writes\n    input_schema");
    let calls = [("look", json!({})), ("pay", json!({}))];
    let output = CliSandbox::new()
        .tools(&on_tools)
        .stdin(model_response(&calls))
        .run(&["plan", "--format", "json"])
        .assert_exit(0);
    let plan: Value = serde_json::from_str(&output.stdout).unwrap();
    let batches = plan["batches"].as_array().unwrap().iter();
    let planned = batches.flat_map(|batch| batch["calls"].as_array().unwrap());
    let approve: Vec<_> = planned.map(|call| call["approve"].clone()).collect();
    assert_eq!(approve, [json!(false), json!(true)]);
}

/// A word in quotes is a text, which YAML doesn't say. One that isn't known is answered with all that may stand there.
#[test]
fn another_word_is_answered_with_what_to_write() {
    for (value, hint) in [
        ("\"true\"", "write `true` without quotes"),
        ("yes", "YAML 1.2 has no other booleans"),
        ("always", "write `true`"),
        (
            "maybe",
            "must be `true`, `false`, `writes` or `{when: SCHEMA}`",
        ),
        ("write", "did you mean `writes`?"),
    ] {
        let tools = TOOLS.replace("approve: writes", &format!("approve: {value}"));
        let output = CliSandbox::new()
            .tools(&tools)
            .run(&["check"])
            .assert_exit(1);
        assert!(output.stderr.contains(hint), "{value}: {}", output.stderr);
    }
}

/// Reads run all the same; calls with effects don't, and the exit code says that something is missing. One line names all that
/// wait, even with `-q`.
#[test]
fn without_an_approver_nothing_that_needs_one_runs() {
    let run = |flags: &[&str]| {
        let arguments = [&["run"], flags].concat();
        sandbox().stdin(four_calls()).run(&arguments).assert_exit(6)
    };
    let output = run(&["--log", "log.jsonl"]);
    assert_eq!(output.file("ran").unwrap(), "look\nlook\n");
    let results = output.result_texts();
    assert!(
        results[1]
            .0
            .starts_with("Not executed: pay needs an approval"),
        "{results:?}"
    );
    assert_eq!(results[3], results[1]);
    let hint = run(&["-q", "--log", "log.jsonl"]).stderr;
    assert!(
        hint.starts_with("note: 2 calls wait for an approval")
            && hint.contains("`toolq approvals approve ")
            && !hint.contains("toolu_1")
            && hint.lines().count() == 1,
        "{hint}"
    );
    let last = output.stderr.lines().last().unwrap();
    assert!(last.starts_with("note: 2 calls wait"), "{last}");
    let unremembered = run(&["-q", "--no-log"]).stderr;
    assert!(unremembered.contains("`--approve all`"), "{unremembered}");
    let skipped = words(&[("tool_skipped", "needs_approval"); 2]);
    let decisions = decisions(&output.file("log.jsonl").unwrap());
    let decisions: Vec<_> = decisions
        .into_iter()
        .filter(|[kind, _]| kind == "tool_skipped")
        .collect();
    assert_eq!(decisions, skipped);
}

/// Behind a call that waits, one that needs no approval waits for that one, and so does one that has its approval.
#[test]
fn what_is_approved_waits_for_what_is_not() {
    let output = sandbox()
        .stdin(four_calls())
        .run(&["run", "-q", "--approve", "toolu_3"])
        .assert_exit(6);
    let results = output.result_texts();
    assert!(
        results[3].0.contains("the preceding pay call waits"),
        "{results:?}"
    );
    assert!(
        output.stderr.starts_with("note: 1 call waits"),
        "{}",
        output.stderr
    );
    // What a person can't copy safely isn't part of a command.
    let named = four_calls().replace("toolu_1", "all; reboot");
    let output = sandbox().stdin(named).run(&["run", "-q"]).assert_exit(6);
    assert!(!output.stderr.contains("reboot"), "{}", output.stderr);
}

/// What is missing runs in order, and what had only read runs again.
#[test]
fn a_later_run_approves_what_is_missing() {
    let output = sandbox()
        .stdin(four_calls())
        .run_shell(
            r#"cat > calls.json; "$TOOLQ" run -q --log log.jsonl calls.json >/dev/null; "$TOOLQ" run -q --log log.jsonl --approve all calls.json && "$TOOLQ" log verify log.jsonl"#,
        );
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(
        output.file("ran").unwrap(),
        "look\nlook\nlook\npay\nlook\npay\n"
    );
    let log = parse_json_lines(&output.file("log.jsonl").unwrap());
    let approvals: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "approval")
        .collect();
    assert_eq!(approvals.len(), 2);
    assert!(
        approvals
            .iter()
            .all(|approval| approval["metadata"]["by"] == "all")
    );
}

/// The ids of the calls are those of the input. A call that isn't named waits, and those behind it do.
#[test]
fn calls_are_approved_by_their_ids() {
    for (ids, ran, exit) in [
        ("toolu_1,toolu_3", "look\npay\nlook\npay\n", 0),
        ("toolu_1", "look\npay\nlook\n", 6),
        ("toolu_3", "look\nlook\n", 6),
    ] {
        let output = sandbox()
            .stdin(four_calls())
            .run(&["run", "--log", "log.jsonl", "--approve", ids])
            .assert_exit(exit);
        assert_eq!(output.file("ran").unwrap(), ran, "{ids}");
        let log = parse_json_lines(&output.file("log.jsonl").unwrap());
        let approvals = log.iter().filter(|record| record["type"] == "approval");
        assert!(
            approvals
                .into_iter()
                .all(|approval| approval["metadata"]["by"] == "named")
        );
    }
    let output = sandbox()
        .stdin(four_calls())
        .run(&["run", "--approve", "a,,b"])
        .assert_exit(2);
    assert!(
        output.stderr.contains("`ask`, `all`, or the ids"),
        "{}",
        output.stderr
    );
}

/// The input that would run counts, with defaults and coercion, and so does the order of tool, rule and defaults.
#[test]
fn the_executed_input_and_the_nearest_key_decide() {
    let tools = r#"
version: 1
defaults: {approve: true}
rules:
  - {tools: "free_*", approve: false}
tools:
  free_look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  free_pay: {approve: true, input_schema: {type: object}, command: [echo, paid]}
  pay:
    approve: {when: {properties: {amount: {minimum: 100}}}}
    input_schema: {type: object, properties: {amount: {type: integer, minimum: 0, default: 500}}}
    command: [echo, "paid {amount}"]
  plain: {input_schema: {type: object}, effect: read, command: [echo, plain]}
"#;
    let calls = model_response(&[
        ("free_look", json!({})),
        ("free_pay", json!({})),
        ("pay", json!({"amount": 5})),
        ("pay", json!({"amount": "250"})),
        ("pay", json!({})),
        ("plain", json!({})),
    ]);
    let output = CliSandbox::new()
        .tools(tools)
        .stdin(calls)
        .run(&["plan", "--format", "json"])
        .assert_exit(0);
    let plan = output.json();
    let planned: Vec<bool> = plan["batches"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|batch| batch["calls"].as_array().unwrap())
        .map(|call| call["approve"].as_bool().unwrap())
        .collect();
    assert_eq!(planned, [false, true, false, true, true, true]);
}

/// A schema that says the same of every input would be a mistake, here as for `concurrency_safe`.
#[test]
fn a_when_that_checks_nothing_is_refused() {
    for approve in ["{when: {}}", "{when: {propertys: {}}}", "{}", "sometimes"] {
        for place in ["tool", "rule", "defaults"] {
            let key = |here| {
                if here == place {
                    format!("approve: {approve}")
                } else {
                    "coerce: true".to_owned()
                }
            };
            let tools = format!(
                "version: 1\ndefaults: {{{}}}\nrules:\n  - {{tools: \"*\", {}}}\ntools:\n  t: {{input_schema: {{type: object}}, command: [date], {}}}\n",
                key("defaults"),
                key("rule"),
                key("tool"),
            );
            let output = CliSandbox::new().tools(&tools).run(&["check"]);
            assert_eq!(output.code, 1, "{place}: {approve}: {}", output.stderr);
        }
    }
}

/// A replay doesn't ask for approvals, so results of calls that need one come from the recording.
#[test]
fn a_replay_runs_nothing_that_needs_an_approval() {
    let tools = TOOLS.replace(
        "    effect: read\n",
        "    effect: read\n    approve: true\n",
    );
    let output = CliSandbox::new()
        .tools(&tools)
        .stdin(four_calls())
        .run_shell(
            r#"cat > c.json; "$TOOLQ" run -q --log log.jsonl --approve all c.json > /dev/null; rm ran; "$TOOLQ" replay -q --execute all log.jsonl; echo "exit $?"; test ! -e ran"#,
        );
    assert_eq!(output.code, 0, "{}", output.stdout);
    assert!(
        output.stdout.contains("exit 0"),
        "{}{}",
        output.stdout,
        output.stderr
    );
}
