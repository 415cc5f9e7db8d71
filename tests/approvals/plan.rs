//! Plans that are written, reviewed, and applied.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolq_core::json_schema::CompiledSchema;

use super::support::shell_server::shell_server;
use super::support::{CliOutput, repository_root};
use super::{CliSandbox, TOOLS, decisions, four_calls, model_response, sandbox};

/// Writes a plan of `calls.json`, runs `between`, and applies the plan.
fn plan_then(sandbox: CliSandbox, between: &str, run: &str) -> CliOutput {
    sandbox.run_shell(&format!(
        r#""$TOOLQ" plan -q --out plan.json calls.json > /dev/null || exit 99
        {between}
        "$TOOLQ" run {run}"#
    ))
}

fn planned(between: &str) -> CliOutput {
    let sandbox = sandbox().file("calls.json", four_calls());
    plan_then(sandbox, between, "--plan plan.json calls.json")
}

/// Asserts that nothing ran, and that the message has these words.
fn assert_refused(output: &CliOutput, words: &str) {
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert_eq!(output.file("ran"), None, "{}", output.stderr);
    assert_eq!(output.stdout, "", "{words}");
    assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
}

#[test]
fn a_plan_approves_its_calls_and_is_applied_once() {
    let run = r#"-q --log log.jsonl --plan plan.json calls.json > first && "$TOOLQ" log verify -q log.jsonl &&
        "$TOOLQ" run --log log.jsonl --plan plan.json calls.json > second; echo "exit $?"; cmp first second"#;
    let sandbox = sandbox().file("calls.json", four_calls());
    let output = plan_then(sandbox, "", run).assert_exit(0);
    assert!(output.stdout.contains("exit 0"), "{}", output.stdout);
    assert_eq!(output.file("ran").unwrap(), "look\npay\nlook\npay\n");
    assert!(
        output.stderr.contains("already applied"),
        "{}",
        output.stderr
    );
    let plan: Value = serde_json::from_str(&output.file("plan.json").unwrap()).unwrap();
    let schema = fs::read_to_string(repository_root().join("plan.schema.json")).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    let schema = CompiledSchema::compile(&schema, Path::new("/")).unwrap();
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

/// Without `--log`, too, and even if all its calls only read: an ordinary run would repeat those.
#[test]
fn a_plan_is_applied_once_in_the_default_directory() {
    let again = r#"--plan plan.json calls.json; "$TOOLQ" run --plan plan.json calls.json; "$TOOLQ" run --new --plan plan.json calls.json; echo "exit $?""#;
    let reads = model_response(&[("look", json!({}))]);
    let output = plan_then(sandbox().file("calls.json", reads), "", again);
    assert_eq!(output.file("ran").unwrap(), "look\n", "{}", output.stderr);
    assert!(output.stdout.contains("exit 2"), "{}", output.stderr);
    assert!(
        output.stderr.contains("a plan is applied once"),
        "{}",
        output.stderr
    );
}

/// A rollback asks for what ran before, and a second try for what failed. The new plan is a yes for that.
#[test]
fn a_new_plan_runs_although_the_log_has_the_results_of_its_input() {
    let again = r#"-q --log log.jsonl --plan plan.json calls.json > /dev/null
        "$TOOLQ" plan -q --out plan2.json calls.json > /dev/null
        for time in 1 2; do "$TOOLQ" run --log log.jsonl --plan plan2.json calls.json > "out$time"; echo "exit $?"; done
        "$TOOLQ" log verify -q log.jsonl > /dev/null && cmp out1 out2"#;
    let sandbox = sandbox().file("calls.json", four_calls());
    let output = plan_then(sandbox, "", again).assert_exit(0);
    assert_eq!(output.stdout, "exit 0\nexit 0\n", "{}", output.stderr);
    let once = "look\npay\nlook\npay\n";
    assert_eq!(output.file("ran").unwrap(), once.repeat(2));
    let note = "was already applied";
    assert_eq!(output.stderr.matches(note).count(), 1, "{}", output.stderr);
}

#[test]
fn two_runs_at_once_apply_a_plan_once() {
    let both = r#"-q --plan plan.json calls.json > out1 & "$TOOLQ" run -q --plan plan.json calls.json > out2; wait; cat out1 out2"#;
    let output = plan_then(sandbox().file("calls.json", four_calls()), "", both);
    assert_eq!(
        output.file("ran").unwrap(),
        "look\npay\nlook\npay\n",
        "{}",
        output.stderr
    );
}

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

/// However the file is changed, it approves only what it was made for.
#[test]
fn a_plan_that_was_changed_approves_nothing() {
    for (change, words) in [
        (
            "sed -i 's/\"amount\":5/\"amount\":6/' plan.json",
            "was changed after it was written",
        ),
        (
            "sed -i 's/valid_until\": \"20/valid_until\": \"30/' plan.json",
            "was changed after it was written",
        ),
        (
            "sed -i 's/\"id\": \"./\"id\": \"/' plan.json",
            "was changed after it was written",
        ),
        (
            r#"jq '.id = "x" | .plan.more = 1' plan.json > p && mv p plan.json"#,
            "isn't a plan",
        ),
        ("echo '{}' > plan.json", "isn't a plan"),
        (": > plan.json", "isn't a plan"),
        ("rm plan.json", "can't be read"),
        ("rm plan.json; mkdir plan.json", "can't be read"),
    ] {
        assert_refused(&planned(change), words);
    }
    let cut = r#"for bytes in 1 100 500 1000 2000 3000; do head -c $bytes plan.json > cut.json; "$TOOLQ" run -q --plan cut.json calls.json; test $? = 2 || exit 9; done; rm plan.json"#;
    assert_refused(&planned(cut), "can't be read");
}

/// Gives an edited plan the id that fits.
fn forge(plan: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut file: Value = serde_json::from_str(plan).unwrap();
    edit(&mut file["plan"]);
    let mut id = String::new();
    for byte in Sha256::digest(file["plan"].to_string()) {
        write!(id, "{byte:02x}").unwrap();
    }
    file["id"] = json!(id[..40]);
    file.to_string()
}

/// Writes a plan of `calls.json`, edits it, gives it the id that fits, and applies it.
fn apply_forged(edit: impl FnOnce(&mut Value)) -> CliOutput {
    let sandbox = sandbox().file("calls.json", four_calls());
    let plan = sandbox.path().join("plan.json");
    let mut write = sandbox.command(&["plan", "-q", "--out", "plan.json", "calls.json"]);
    assert!(write.output().unwrap().status.success());
    let forged = forge(&fs::read_to_string(&plan).unwrap(), edit);
    fs::write(&plan, forged).unwrap();
    let run = [
        "run",
        "--log",
        "log.jsonl",
        "--plan",
        "plan.json",
        "calls.json",
    ];
    sandbox.run(&run)
}

/// What people read in a plan is what it approves, even if its id was recomputed after a change.
#[test]
fn a_plan_cannot_show_other_calls_than_it_approves() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, &str); 4] = [
        (
            |plan| plan["turns"][0]["batches"][1]["calls"][0]["input"]["amount"] = json!(1),
            "what it shows for reading isn't what would run",
        ),
        (
            |plan| plan["calls"][1]["input"] = json!("00"),
            "has another input",
        ),
        (|plan| plan["salt"] = json!("00"), "has another input"),
        (
            |plan| plan["toolq"] = json!("0.0.1"),
            "it was made by toolq 0.0.1",
        ),
    ];
    for (edit, words) in edits {
        assert_refused(&apply_forged(edit), words);
    }
}

/// A forged plan with its own id is a plan like any other: this shows that `forge` finds the right id.
#[test]
fn a_plan_with_a_fitting_id_is_a_plan() {
    let output = apply_forged(|plan| {
        plan["valid_until"] = json!("2999-01-01T00:00:00Z");
    });
    assert_eq!(output.code, 0, "{}", output.stderr);
}

#[test]
fn an_old_plan_approves_nothing_and_one_from_the_future_neither() {
    let output = plan_then(
        sandbox().file("calls.json", four_calls()),
        r#""$TOOLQ" plan -q --valid 1ms --out plan.json calls.json > plan.txt"#,
        "--log log.jsonl --plan plan.json calls.json",
    );
    assert_refused(&output, "was valid until");
    assert_eq!(
        output.file("log.jsonl"),
        None,
        "an empty log looks like one of a killed run"
    );
    let output = apply_forged(|plan| {
        plan["created"] = json!("2998-01-01T00:00:00Z");
        plan["valid_until"] = json!("2999-01-01T00:00:00Z");
    });
    assert_refused(&output, "in the future");
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
    for step in 1.. {
        let again = format!(
            r#"--help > /dev/null
            TOOLQ_FAILPOINT=any:{step}:kill "$TOOLQ" run -q --log log.jsonl --plan plan.json calls.json > out
            echo $? > code; cp log.jsonl log_before 2>/dev/null
            "$TOOLQ" run -q --log log.jsonl --resume --plan plan.json calls.json > out2; echo "resumed $?"
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

const SECRET_TOOLS: &str = r#"
version: 1
env_file: .env
defaults: {approve: true}
tools:
  pay:
    input_schema: {type: object, properties: {to: {type: string}}}
    command: {argv: [sh, -c, 'echo pay >> ran'], env: {PIN: "${PIN}", ACCOUNT: "${ACCOUNT}"}}
"#;

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

/// Without variables, a plan can be applied anywhere.
#[test]
fn a_plan_without_variables_needs_no_key() {
    let output = planned("test ! -e state/toolq/plan.key || exit 9");
    assert_eq!(output.code, 0, "{}", output.stderr);
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
