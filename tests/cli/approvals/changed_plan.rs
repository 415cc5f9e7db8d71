//! What has changed since a plan was made: nothing runs if it matters, and the message says what it is.

use serde_json::{Value, json};

use super::plan::{assert_refused, plan_then, planned};
use super::{CliSandbox, TOOLS, model_response};

const SECRET_TOOLS: &str = r#"
version: 1
env_file: .env
defaults: {approve: true}
tools:
  pay:
    input_schema: {type: object, properties: {to: {type: string}}}
    command: {argv: [sh, -c, 'echo pay >> ran'], env: {PIN: "${PIN}", ACCOUNT: "${ACCOUNT}"}}
"#;

/// Each says which and why.
#[test]
fn a_change_after_the_plan_runs_nothing() {
    for (change, words) in [
        (
            "sed -i 's/echo paid/echo stolen/' tools.yaml",
            "the tool pay has changed: command",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    timeout: 1s/' tools.yaml",
            "the tool look has changed: timeout",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    cache: {for: 1m}/' tools.yaml",
            "the tool look has changed: cache",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    rate: 1\\/m/' tools.yaml",
            "the tool look has changed: rate",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    max_parallel: 1/' tools.yaml",
            "the tool look has changed: max_parallel",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    locks: {read: [desk]}/' tools.yaml",
            "the tool look has changed: locks",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    sandbox: {}/' tools.yaml",
            "the tool look has changed: command",
        ),
        (
            "sed -i 's/effect: read/effect: read\\n    wrapper: [nice]/' tools.yaml",
            "the tool look has changed: command",
        ),
        (
            "sed -i 's/minimum: 0/minimum: 1/' tools.yaml",
            "the tool pay has changed: input_schema",
        ),
        (
            "sed -i 's/approve: writes/approve: false/' tools.yaml",
            "the tool pay has changed: approve",
        ),
        (
            "sed -i 's/^  look:/  watch:/' tools.yaml",
            "the call toolu_0 of look would run something else",
        ),
        (
            "sed -i 's/\"amount\": *5/\"amount\":6/' calls.json",
            "the call toolu_1 of pay has another input",
        ),
        (
            r#"jq '.content += [.content[1] | .id = "more"]' calls.json > c && mv c calls.json"#,
            "it doesn't have the call more of pay",
        ),
        (
            "jq 'del(.content[3])' calls.json > c && mv c calls.json",
            "the input doesn't have the call toolu_3 of pay",
        ),
        (
            "jq '.content |= reverse' calls.json > c && mv c calls.json",
            "its calls are in another order",
        ),
        (
            r#"jq '.content[1].name = "look"' calls.json > c && mv c calls.json"#,
            "it has the call toolu_1 of pay where the input has the call toolu_1 of look",
        ),
        (
            "mkdir -p other; cp tools.yaml other; mv calls.json plan.json other; cd other",
            "root is ",
        ),
    ] {
        let output = planned(change);
        assert_refused(&output, words);
    }
}

/// Where a command runs is part of its digest, which under another root says nothing about the tool.
#[test]
fn a_plan_under_another_root_names_no_tool_that_is_the_same() {
    let elsewhere = "mkdir other; cp tools.yaml other; mv calls.json plan.json other; cd other";
    let output = planned(elsewhere);
    assert_refused(&output, "root is ");
    let named = output.stderr.contains("has changed");
    assert!(!named, "{}", output.stderr);
    let output = planned(&format!(
        "{elsewhere}; sed -i 's/minimum: 0/minimum: 1/' tools.yaml"
    ));
    assert_refused(&output, "the tool pay has changed: input_schema\n");
}

/// The calls of agents aren't in a plan, but their tools are.
#[test]
fn a_plan_names_the_tool_that_an_agent_has_gained() {
    let expert = r#"  expert:
    input_schema: {type: object}
    agent: {endpoint: "http://127.0.0.1:9", model: m, tools: [look]}
"#;
    let sandbox = CliSandbox::new()
        .tools(&format!("{TOOLS}{expert}"))
        .file("calls.json", model_response(&[("expert", json!({}))]));
    let output = plan_then(
        sandbox,
        "sed -i 's/\\[look\\]/[look, pay]/' tools.yaml",
        "--plan plan.json calls.json",
    );
    let gained = "the tool expert has changed: agent; an agent has the tool pay now\n";
    assert_refused(&output, gained);
}

/// What decides nothing may change.
#[test]
fn layout_and_comments_change_nothing() {
    let rewrite = r#"jq -c . plan.json > p && mv p plan.json
        python3 - <<'EOF'
text = open("tools.yaml").read()
text = text.replace("    effect: read\n", "").replace("  look:\n", "  look: # looks\n    effect:   read\n    description: Looks around.\n    category: eyes\n")
text += "\n# the end\n  other: {input_schema: {type: object}, command: [date]}\n"
open("tools.yaml", "w").write(text)
EOF"#;
    // The calls need approvals, so the plan must count.
    let output = planned(rewrite);
    assert_eq!(
        (output.code, output.stderr.contains("4 ok")),
        (0, true),
        "{}",
        output.stderr
    );
}

/// An input in a file can change while the run reads it. What isn't in the plan doesn't run.
#[test]
fn an_input_that_changes_while_it_runs_is_found() {
    let tools = TOOLS.replace("echo look >> ran;", "echo look >> ran; ./swap;");
    let swap = "#!/usr/bin/env python3\nwith open('calls.jsonl', 'r+') as file:\n    text = file.read()\n    file.seek(0)\n    file.write(text.replace('EUR', 'USD'))\n";
    let turn = |name, input: Value| {
        let call = json!({"type": "tool_use", "id": name, "name": name, "input": input});
        format!("{}\n", json!({"role": "assistant", "content": [call]}))
    };
    let pay = turn("pay", json!({"to": "EUR"}));
    let output = CliSandbox::new()
        .tools(&tools)
        .program("swap", swap)
        .file("calls.jsonl", turn("look", json!({})) + &pay)
        .run_shell(
            r#""$TOOLQ" plan -q --out plan.json calls.jsonl > plan.txt
            "$TOOLQ" run --log log.jsonl --plan plan.json calls.jsonl"#,
        );
    assert_eq!(output.file("ran").unwrap(), "look\n", "{}", output.stderr);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("isn't the one in the plan"),
        "{}",
        output.stderr
    );
}

/// Values of variables are neither in the plan nor can they be found by trying, and another value is found.
#[test]
fn variables_are_compared_under_a_key() {
    let pay = model_response(&[("pay", json!({"to": "the pin is 314159"}))]);
    let sandbox = || {
        let sandbox = CliSandbox::new().tools(SECRET_TOOLS);
        sandbox
            .file(".env", "ACCOUNT=112233\n")
            .file("calls.json", &pay)
            .env("PIN", "314159")
    };
    let run = "--log log.jsonl --plan plan.json calls.json";
    let output = plan_then(sandbox(), "", run).assert_exit(0);
    let plan = output.file("plan.json").unwrap();
    assert!(!plan.contains("314159"), "{plan}");
    let key = output.file("state/toolq/plan.key").unwrap();
    assert!(!plan.contains(key.trim()) && key.len() >= 32, "{plan}");
    let mode = "stat -c %a state/toolq/plan.key; true";
    let output = plan_then(sandbox(), mode, run).assert_exit(0);
    assert!(output.stdout.starts_with("600"), "{}", output.stdout);

    for (change, words) in [
        ("export PIN=314150", "the variable PIN has another value"),
        ("unset PIN", "the variable PIN has another value"),
        (
            "echo ACCOUNT=223344 > .env",
            "the variable ACCOUNT has another value",
        ),
        ("rm state/toolq/plan.key", "under another key"),
        (
            "export TOOLQ_PLAN_KEY=0123456789abcdef",
            "under another key",
        ),
        ("chmod 644 state/toolq/plan.key", "others can read"),
        ("export TOOLQ_PLAN_KEY=short", "fewer than 16"),
    ] {
        assert_refused(&plan_then(sandbox(), change, run), words);
    }
    // On another machine, the same key is needed.
    let sandbox = sandbox().env("TOOLQ_PLAN_KEY", "0123456789abcdef");
    plan_then(sandbox, "export XDG_STATE_HOME=$PWD/elsewhere", run).assert_exit(0);
}

/// A turn that can't be planned doesn't take the plans before it with it.
#[test]
fn the_plans_before_a_turn_that_fails_are_printed() {
    let turn = |to: &str| model_response(&[("pay", json!({"to": to}))]) + "\n";
    let output = CliSandbox::new()
        .tools(SECRET_TOOLS)
        .file(".env", "ACCOUNT=112233\n")
        .env("PIN", "314159")
        // Digests of secrets need a key.
        .env("TOOLQ_PLAN_KEY", "short")
        .file("calls.jsonl", turn("Ann") + &turn("the pin is 314159"))
        .run(&[
            "plan",
            "--format",
            "json",
            "--out",
            "plan.json",
            "calls.jsonl",
        ]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("fewer than 16"), "{}", output.stderr);
    let planned: Vec<&str> = output.stdout.lines().collect();
    assert!(planned.len() == 1, "{}", output.stdout);
    assert!(planned[0].starts_with("{\"turn\":0,"), "{}", output.stdout);
}

/// Without variables, a plan can be applied anywhere.
#[test]
fn a_plan_without_variables_needs_no_key() {
    let output = planned("test ! -e state/toolq/plan.key || exit 9");
    assert_eq!(output.code, 0, "{}", output.stderr);
}
