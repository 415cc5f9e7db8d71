//! A plan says what the memory knows: it shows what a run of the same input would do now.

use serde_json::{Value, json};

use crate::support::resume_sandbox::{
    ResumeSandbox, calls_message, effect_recording_tools, shell_tools,
};

/// Returns the plan of the only turn of `input.json`.
fn planned(sandbox: &ResumeSandbox, flags: &[&str]) -> Value {
    let arguments = [&["plan", "--format", "json", "input.json"], flags].concat();
    let planned = sandbox.run_toolq(&arguments).assert_exit(0);
    serde_json::from_str(&planned.stdout).unwrap()
}

/// The positions of the calls that would run, and the status of each call that is remembered.
fn fate(plan: &Value) -> (Vec<u64>, Vec<(u64, String)>) {
    let position = |call: &Value| call["position"].as_u64().unwrap();
    let batches = plan["batches"].as_array().unwrap().iter();
    let calls = batches.flat_map(|batch| batch["calls"].as_array().unwrap());
    let remembered = plan["remembered"].as_array().cloned().unwrap_or_default();
    let status = |call: &Value| (position(call), call["status"].as_str().unwrap().to_owned());
    (
        calls.map(position).collect(),
        remembered.iter().map(status).collect(),
    )
}

fn ok(position: u64) -> (u64, String) {
    (position, "ok".to_owned())
}

/// In the memory that runs share and in a named log; with `--new`, and without a memory.
#[test]
fn what_has_run_is_answered_from_memory() {
    let input = calls_message(&[("look", 1), ("pay", 2), ("look", 3)]);
    let sandbox = ResumeSandbox::new(&effect_recording_tools(), &input);
    for log in [&[][..], &["--log", "named.jsonl"]] {
        assert_eq!(fate(&planned(&sandbox, log)), (vec![0, 1, 2], vec![]));
        let run = [&["run", "input.json"], log].concat();
        sandbox.run_toolq(&run).assert_exit(0);
        let effects = sandbox.effects();
        let plan = planned(&sandbox, log);
        assert_eq!(fate(&plan), (vec![], vec![ok(0), ok(1), ok(2)]));
        let log_of_pay = plan["remembered"][1]["log"].as_str().unwrap();
        assert!(log_of_pay.contains(".jsonl"), "{plan}");
        assert!(plan["remembered"][1]["timestamp"].is_u64(), "{plan}");
        let again = planned(&sandbox, &[log, &["--new"]].concat());
        assert_eq!(fate(&again), (vec![0, 1, 2], vec![]));
        let renewed = again["batches"].as_array().unwrap().iter();
        let renewed = renewed.flat_map(|batch| batch["calls"].as_array().unwrap());
        let renewed: Vec<bool> = renewed.map(|call| call["renewed"] == true).collect();
        assert_eq!(renewed, [false, true, false], "{again}");
        let one = planned(&sandbox, &[log, &["--new=toolu_1"]].concat());
        assert!(fate(&one).0.contains(&1), "{one}");
        assert_eq!(sandbox.effects(), effects, "a plan runs nothing");
    }
    assert_eq!(
        fate(&planned(&sandbox, &["--no-log"])),
        (vec![0, 1, 2], vec![])
    );
    let text = sandbox
        .run_toolq(&["plan", "input.json"])
        .assert_exit(0)
        .stdout;
    assert!(
        text.starts_with("turn 0: 3 calls, 3 from memory\n"),
        "{text}"
    );
    assert!(
        text.contains("    1  pay  toolu_1  {\"n\":2}\n       ok, ran 2"),
        "{text}"
    );
    // The page names the log, too.
    let page = sandbox
        .run_toolq(&["plan", "--format", "html", "input.json"])
        .assert_exit(0)
        .stdout;
    assert!(
        page.contains("from memory") && page.contains("ok, ran 2"),
        "{page}"
    );
}

/// What a killed run left in doubt is named with the line that settles it, and what waits for that doesn't run.
#[test]
fn a_call_in_doubt_holds_up_the_calls_behind_it() {
    let tools = effect_recording_tools().replace("on_doubt: continue", "on_doubt: stop");
    let input = calls_message(&[("look", 1), ("fatal", 2), ("pay", 3)]);
    let sandbox = ResumeSandbox::new(&tools, &input);
    assert_eq!(sandbox.run().code, None);
    let log = ["--log", "log.jsonl"];
    let plan = planned(&sandbox, &log);
    let expected = vec![ok(0), (1, "in_doubt".to_owned())];
    assert_eq!(fate(&plan), (vec![], expected));
    assert_eq!(plan["rejected"][0]["reason"], "not_executed");
    // What a person has to do is said in any case.
    let text = sandbox.run_toolq(&["plan", "-q", "input.json", "--log", "log.jsonl"]);
    let settle = text
        .stderr
        .split('`')
        .nth(1)
        .expect("a command in backticks");
    assert!(settle.starts_with("toolq log resolve "), "{}", text.stderr);
    let settle: Vec<&str> = settle.split(' ').skip(1).collect();
    sandbox
        .run_toolq(&[&settle[..], &["--not-done"]].concat())
        .assert_exit(0);
    assert_eq!(fate(&planned(&sandbox, &log)).0, [1, 2]);
}

/// The batches of calls that are remembered keep their numbers, so they count.
#[test]
fn no_batch_has_a_number_beyond_their_count() {
    let tools = effect_recording_tools();
    let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("pay", 1), ("pay", 2)]));
    sandbox.run().assert_exit(0);
    let more = calls_message(&[("pay", 1), ("pay", 2), ("pay", 3), ("pay", 4)]);
    sandbox.write_file("input.json", &more);
    let plan = ["plan", "input.json", "--log", "log.jsonl"];
    let text = sandbox.run_toolq(&plan).assert_exit(0).stdout;
    assert!(
        text.starts_with("turn 0: 4 calls, 4 batches, 2 from memory\n"),
        "{text}"
    );
    assert!(text.contains("batch 3: alone"), "{text}");
}

/// What is remembered counts for the calls behind it, as in a run.
#[test]
fn a_remembered_failure_stops_what_its_tool_says() {
    for (policy, expected) in [
        ("continue", vec![1, 3]),
        ("stop", vec![]),
        ("cancel_siblings", vec![3]),
    ] {
        let fails = format!("effect: write\n    concurrency_safe: true\n    on_failure: {policy}");
        let tools = shell_tools(&[
            ("fails", &fails, "exit 1"),
            (
                "safe",
                "effect: write\n    concurrency_safe: true",
                "echo safe",
            ),
            ("alone", "effect: write", "echo alone"),
        ]);
        let sandbox = ResumeSandbox::new(&tools, &calls_message(&[("fails", 0)]));
        sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
        let calls = [("fails", 0), ("safe", 1), ("fails", 0), ("alone", 3)];
        let mut message: Value = serde_json::from_str(&calls_message(&calls)).unwrap();
        // The third call repeats the first one.
        message["content"][2]["id"] = json!("toolu_0");
        sandbox.write_file("input.json", &message.to_string());
        let plan = planned(&sandbox, &[]);
        assert_eq!(fate(&plan).0, expected, "{policy}: {plan}");
        let effects = sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
        let ran = effects
            .result_texts()
            .iter()
            .filter(|text| ["safe", "alone"].contains(&text.as_str()))
            .count();
        assert_eq!(ran, expected.len(), "{policy}: {}", effects.stdout);
    }
}

/// A call that its probe decides about is planned, and says so. One that was approved says that, too.
#[test]
fn a_planned_call_says_what_decides_about_it() {
    let probe = "effect: write\n    probe: [\"true\"]";
    let kill = r#"test -e dead || { touch dead; kill -9 "$(cat pid)"; sleep 60; }; echo paid"#;
    let sandbox = ResumeSandbox::new(
        &shell_tools(&[
            ("pay", probe, kill),
            ("wire", "effect: write\n    approve: true", "echo wired"),
        ]),
        &calls_message(&[("pay", 5)]),
    );
    assert_eq!(sandbox.run().code, None);
    let plan = planned(&sandbox, &["--log", "log.jsonl"]);
    assert_eq!(plan["batches"][0]["calls"][0]["unsettled"], "in_doubt");
    sandbox.write_file("input.json", &calls_message(&[("wire", 1)]));
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let approval = |plan: &Value| plan["batches"][0]["calls"][0]["approval"].clone();
    assert_eq!(approval(&planned(&sandbox, &[])), Value::Null);
    let waiting = sandbox.run_toolq(&["approvals"]).assert_exit(0).stdout;
    let handle = waiting.split_whitespace().next().unwrap();
    sandbox
        .run_toolq(&["approvals", "approve", handle])
        .assert_exit(0);
    assert_eq!(approval(&planned(&sandbox, &[])), "yes");
    let text = sandbox
        .run_toolq(&["plan", "input.json"])
        .assert_exit(0)
        .stdout;
    assert!(
        !text.contains("needs approval") && text.contains("approved"),
        "{text}"
    );
}
