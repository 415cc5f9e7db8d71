//! Plans that are written, reviewed, and applied.

use std::fs;

use serde_json::{Value, json};
use toolq_core::json_schema::CompiledSchema;

use super::{CliSandbox, TOOLS, decisions, four_calls, model_response, sandbox};
use crate::support::shell_server::shell_server;
use crate::support::{CliOutput, full_or_short, repository_root};

/// Writes a plan of `calls.json`, runs `between`, and applies the plan.
pub(super) fn plan_then(sandbox: CliSandbox, between: &str, run: &str) -> CliOutput {
    sandbox.run_shell(&format!(
        r#""$TOOLQ" plan -q --out plan.json calls.json > /dev/null || exit 99
        {between}
        "$TOOLQ" run {run}"#
    ))
}

pub(super) fn planned(between: &str) -> CliOutput {
    let sandbox = sandbox().file("calls.json", four_calls());
    plan_then(sandbox, between, "--plan plan.json calls.json")
}

/// Asserts that nothing ran, and that the message has these words.
pub(super) fn assert_refused(output: &CliOutput, words: &str) {
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert_eq!(output.file("ran"), None, "{}", output.stderr);
    assert_eq!(output.stdout, "", "{words}");
    assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
}

#[test]
fn a_plan_approves_its_calls_and_is_applied_once() {
    let run = r#"-q --log log.jsonl --plan plan.json calls.json > first && "$TOOLQ" log verify -q log.jsonl &&
        "$TOOLQ" run --log log.jsonl --plan - calls.json < plan.json > second; echo "exit $?"; cmp first second"#;
    let sandbox = sandbox().file("calls.json", four_calls());
    let output = plan_then(sandbox, "", run).assert_exit(0);
    assert!(output.stdout.contains("exit 0"), "{}", output.stdout);
    assert_eq!(output.file("ran").unwrap(), "look\npay\nlook\npay\n");
    let stderr = &output.stderr;
    assert!(stderr.contains("4 calls from memory"), "{stderr}");
    let plan: Value = serde_json::from_str(&output.file("plan.json").unwrap()).unwrap();
    let schema = fs::read_to_string(repository_root().join("schemas/plan.schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    let schema = CompiledSchema::compile(&schema).unwrap();
    assert!(schema.accepts(&plan), "{plan}");
    let log = super::parse_json_lines(&output.file("log.jsonl").unwrap());
    assert_eq!(log[0]["metadata"]["plan"], plan["id"]);
    let approvals: Vec<&Value> = log
        .iter()
        .filter(|record| record["type"] == "approval")
        .map(|record| &record["metadata"])
        .collect();
    assert_eq!(approvals.len(), 2);
    for approval in approvals {
        assert_eq!(
            (&approval["by"], &approval["plan"]),
            (&json!("plan"), &plan["id"])
        );
    }
}

/// What was approved once runs once.
#[test]
fn two_runs_at_once_apply_a_plan_once() {
    let both = r#"-q --plan plan.json calls.json > out1 & "$TOOLQ" run -q --plan plan.json calls.json > out2; wait; cat out1 out2"#;
    let output = plan_then(sandbox().file("calls.json", four_calls()), "", both);
    let ran = output.file("ran").unwrap();
    assert_eq!(ran.matches("pay").count(), 2, "{}", output.stderr);
}

/// A plan that was applied in time is answered from the log for good.
#[test]
fn an_old_plan_that_was_applied_is_answered_from_the_log() {
    for seconds in [2, 8, 32] {
        let again = r#"-q --plan plan.json calls.json > first; echo "first $?"
            while "$TOOLQ" run -q --log other.jsonl --plan plan.json calls.json > /dev/null 2>&1; do rm -f other.jsonl; sleep 0.1; done
            rm ran; "$TOOLQ" run -q --plan plan.json calls.json > second; echo "second $?"; cmp first second"#;
        let output = plan_then(
            sandbox().file("calls.json", four_calls()),
            &format!(
                r#""$TOOLQ" plan -q --valid {seconds}s --out plan.json calls.json > plan.txt"#
            ),
            again,
        );
        if output.stdout.contains("first 0") {
            assert!(output.stdout.contains("second 0"), "{}", output.stderr);
            assert_eq!((output.code, output.file("ran")), (0, None));
            return;
        }
    }
    panic!("no plan could be applied in time");
}

/// Nothing starts that isn't approved on record, and what is missing runs with the same plan, once.
#[test]
fn a_killed_run_goes_on_with_its_plan() {
    for step in (1..).step_by(full_or_short(1, 14)) {
        let again = format!(
            r#"--help > /dev/null
            TOOLQ_FAILPOINT=any:{step}:kill "$TOOLQ" run -q --log log.jsonl --plan plan.json calls.json > out
            echo $? > code; cp log.jsonl log_before 2>/dev/null
            "$TOOLQ" run -q --log log.jsonl --plan plan.json calls.json > out2; echo "resumed $?"
            "$TOOLQ" log verify -q log.jsonl && "$TOOLQ" run -q --log log.jsonl --plan plan.json calls.json > out3; echo "again $?""#
        );
        let output = plan_then(sandbox().file("calls.json", four_calls()), "", &again);
        let before = output.file("log_before").unwrap_or_default();
        let complete = before.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let (mut yes, mut starts) = (0, 0);
        for [kind, word] in decisions(complete) {
            match (kind.as_str(), word.as_str()) {
                ("approval", "yes") => yes += 1,
                ("tool_start", "pay") => starts += 1,
                _ => {}
            }
            assert!(
                starts <= yes,
                "step {step}: a start before its yes:\n{before}"
            );
        }
        let paid = output.file("ran").unwrap().matches("pay").count();
        // A payment that may have happened is in doubt, and the later calls wait for it.
        assert!(paid <= 2, "step {step}: {}", output.stderr);
        if output.stdout.contains("resumed 0") {
            assert_eq!(paid, 2, "step {step}");
            assert!(
                output.stdout.contains("again 0"),
                "step {step}: {}",
                output.stderr
            );
        } else {
            assert!(
                output.stdout.contains("resumed 3"),
                "step {step}: {}",
                output.stderr
            );
        }
        if output.file("code").unwrap().trim() == "0" {
            assert!(step > 10, "the failpoints are gone");
            return;
        }
    }
}

#[test]
fn what_is_not_known_beforehand_is_not_planned() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n";
    let output = sandbox().stdin(stream).run(&["plan", "--out", "plan.json"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("the calls of a stream"),
        "{}",
        output.stderr
    );
    assert_eq!(output.file("plan.json"), None);

    let described = TOOLS.replace(
        "    input_schema: {type: object}\n",
        "    describe: [sh, -c, 'echo {}']\n",
    );
    let output = CliSandbox::new()
        .tools(&described)
        .stdin(four_calls())
        .run(&["plan", "--out", "plan.json"]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("the calls of look"),
        "{}",
        output.stderr
    );
    assert_eq!(output.file("plan.json"), None);

    let tools = format!(
        "{TOOLS}  expert:\n    input_schema: {{type: object}}\n    agent: {{endpoint: \"http://127.0.0.1:9\", model: m, tools: [pay, look]}}\n"
    );
    let output = CliSandbox::new()
        .tools(&tools)
        .stdin(model_response(&[("expert", json!({}))]))
        .run(&["plan", "--out", "plan.json"])
        .assert_exit(0);
    let warning = "the plan doesn't approve the calls of pay that agents make";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
}

/// The plan can't know what such a server announces, but how it is started is up to tools.yaml.
#[test]
fn a_plan_of_an_unlocked_server_holds_for_this_server_alone() {
    let announce = |schema: &str| {
        format!("result='{{\"tools\":[{{\"name\":\"pay\",\"inputSchema\":{schema}}}]}}'")
    };
    let paid = r#"echo paid >> ran; result='{"content":[{"type":"text","text":"paid"}]}'"#;
    let server = |schema: &str| {
        shell_server(
            "echo start >> starts",
            &[("tools/list", &announce(schema)), ("tools/call", paid)],
        )
    };
    let planned = |between: &str, schema: &str| {
        let sandbox = CliSandbox::new()
            .tools("version: 1\ndefaults: {approve: writes}\nservers:\n  bank: {command: [./server]}\n")
            .program("server", &server(r#"{"type":"object"}"#))
            .program("other", &server(schema))
            .file("calls.json", model_response(&[("bank_pay", json!({}))]));
        plan_then(
            sandbox,
            &format!("test ! -e starts || exit 98; {between}"),
            "--log log.jsonl --plan plan.json calls.json",
        )
    };
    let same = planned("", "").assert_exit(0);
    assert_eq!(same.file("ran").unwrap(), "paid\n", "{}", same.stderr);
    assert_eq!(
        decisions(&same.file("log.jsonl").unwrap())[0],
        ["approval", "yes"]
    );
    for edit in [
        "sed -i 's/server]/other]/' tools.yaml",
        "sed -i 's/server]/server, --more]/' tools.yaml",
        r#""$TOOLQ" -q servers lock"#,
    ] {
        let changed = planned(&format!("{edit}; rm -f starts"), r#"{"type":"object"}"#);
        assert_refused(&changed, "isn't what would run");
        assert_eq!(changed.file("starts"), None, "{edit}");
    }
    let invalid = planned("mv other server", r#"{"type":"object","required":["to"]}"#);
    assert_refused(&invalid, "what its server says of its tool, has changed");
}
