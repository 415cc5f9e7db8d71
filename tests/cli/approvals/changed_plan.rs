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

/// The same message in another form is the same input, and each call is what the plan has.
#[test]
fn a_plan_holds_in_whatever_form_its_input_comes_again() {
    for form in [
        "jq -S . calls.json > c && mv c calls.json",
        r#"jq -c '{messages: [{role: "user", content: "Pay."}, .]}' calls.json > c && mv c calls.json"#,
    ] {
        let output = planned(form);
        assert_eq!(output.code, 0, "{form}: {}", output.stderr);
        assert!(output.stderr.contains("4 ok"), "{form}: {}", output.stderr);
    }
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

/// A call can change the file of its input. What was read runs.
#[test]
fn an_input_that_changes_while_it_runs_runs_as_it_was_read() {
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
    assert_eq!(
        output.file("ran").unwrap(),
        "look\npay\n",
        "{}",
        output.stderr
    );
    assert_eq!(output.code, 0, "{}", output.stderr);
    let log = output.file("log.jsonl").unwrap();
    assert!(log.contains("EUR") && !log.contains("USD"), "{log}");
}

/// They may change between review and run, and nobody can find them by trying: calls that differ in nothing else have the same
/// digests.
#[test]
fn values_of_variables_are_no_part_of_a_plan() {
    let sandbox = |pin: &str, to: &str| {
        let sandbox = CliSandbox::new().tools(SECRET_TOOLS).env("PIN", pin);
        sandbox
            .file(".env", "ACCOUNT=112233\n")
            .file("calls.json", model_response(&[("pay", json!({"to": to}))]))
    };
    let run = "--log log.jsonl --plan plan.json calls.json";
    let change = "export PIN=271828; echo ACCOUNT=223344 > .env";
    let output = plan_then(sandbox("314159", "Ann"), change, run).assert_exit(0);
    assert_eq!(output.file("ran").unwrap(), "pay\n");

    let calls_with = |pin: &str| {
        let output = plan_then(sandbox(pin, &format!("the pin is {pin}")), "", run);
        let plan = output.assert_exit(0).file("plan.json").unwrap();
        assert!(!plan.contains(pin), "{plan}");
        let plan: Value = serde_json::from_str(&plan).unwrap();
        plan["plan"]["calls"].clone()
    };
    assert_eq!(calls_with("314159"), calls_with("271828"));
}
