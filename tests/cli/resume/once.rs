//! `once`: values that name a call, whatever its id.

use crate::support::resume_sandbox::{ResumeRunOutput, ResumeSandbox};

/// A tool that refunds an order. It fails while there is a file `broken`, by itself or by a signal.
fn sandbox(once: &str) -> ResumeSandbox {
    let tools = format!(
        r#"
tools:
  refund:
    input_schema:
      type: object
      properties: {{order: {{type: integer}}, note: {{type: string}}}}
      required: [order]
    once: {once}
    command:
      argv: [sh, -c, 'echo "refund $1" >> effects; test -e killed && kill -9 $$; test -e broken && exit 1; echo "refunded $1"', sh, "{{order}}"]
"#
    );
    ResumeSandbox::new(&tools, "")
}

fn refund(sandbox: &ResumeSandbox, id: &str, input: &str) -> ResumeRunOutput {
    let call = format!(r#"{{"type":"tool_use","id":"{id}","name":"refund","input":{input}}}"#);
    let message = format!(r#"{{"role":"assistant","content":[{call}]}}"#);
    sandbox.write_file("input.json", &message);
    sandbox.run_toolq(&["run", "input.json"])
}

#[test]
fn equal_values_name_one_call_whatever_its_id() {
    let sandbox = sandbox("[order]");
    let first = refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    assert_eq!(first.result_texts(), ["refunded 1"]);
    let again = refund(&sandbox, "b", r#"{"order":1.0}"#).assert_exit(0);
    let text = &again.result_texts()[0];
    assert!(
        text.contains("has already done this") && text.ends_with("refunded 1"),
        "{text}"
    );
    refund(&sandbox, "c", r#"{"order":2}"#).assert_exit(0);
    assert_eq!(sandbox.effects(), ["refund 1", "refund 2"]);
}

#[test]
fn another_input_with_these_values_is_told_what_ran() {
    let sandbox = sandbox("[order]");
    refund(&sandbox, "a", r#"{"order":1,"note":"late"}"#).assert_exit(0);
    let other = refund(&sandbox, "b", r#"{"order":1,"note":"broken"}"#).assert_exit(0);
    let text = &other.result_texts()[0];
    for shown in [r#""note":"late""#, "refunded 1"] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(
        other.stdout.contains(r#""is_error":true"#),
        "{}",
        other.stdout
    );
    assert_eq!(sandbox.effects(), ["refund 1"]);
}

/// Who asks for the same thing in other words must not hear that it was done.
#[test]
fn another_input_with_these_values_is_in_doubt_like_the_call_that_ran() {
    let sandbox = sandbox("[order]");
    sandbox.write_file("killed", "");
    refund(&sandbox, "a", r#"{"order":1,"note":"late"}"#).assert_exit(0);
    let other = refund(&sandbox, "b", r#"{"order":1}"#).assert_exit(3);
    let text = &other.result_texts()[0];
    for shown in ["In doubt: ", r#""note":"late""#, "Its result: Killed by"] {
        assert!(text.contains(shown), "{text}");
    }
    assert!(
        !text.contains("already run") && !text.contains(r"\u{"),
        "{text}"
    );
    assert!(
        other.stderr.contains("toolq log resolve"),
        "{}",
        other.stderr
    );
    let planned = sandbox.run_toolq(&["plan", "input.json"]).assert_exit(0);
    assert!(planned.stdout.contains("1 in doubt"), "{}", planned.stdout);
    assert_eq!(sandbox.effects(), ["refund 1"]);
}

/// Who reads the log of the run that failed learns what somebody has said since.
#[test]
fn the_log_of_a_call_that_was_settled_says_so() {
    let sandbox = sandbox("[order]");
    sandbox.write_file("killed", "");
    let failed = refund(&sandbox, "a", r#"{"order":1}"#)
        .assert_exit(0)
        .stderr;
    let (_, line) = failed.split_once("`toolq log resolve ").unwrap();
    let (id, _) = line.split_once('`').unwrap();
    let settle = [
        "log",
        "resolve",
        id,
        "--done",
        "--result",
        "refunded by hand",
    ];
    sandbox.run_toolq(&settle).assert_exit(0);
    let logs = sandbox.run_toolq(&["log", "list", "--format", "json"]);
    let logs: serde_json::Value = serde_json::from_str(&logs.stdout).unwrap();
    let log = logs["path"].as_str().unwrap_or_else(|| panic!("{logs}"));
    for _ in 0..2 {
        let shown = sandbox.run_toolq(&["log", "show", log]).assert_exit(0);
        let settled = shown
            .stdout
            .contains(r#": done with the result "refunded by hand""#);
        assert!(settled, "{}", shown.stdout);
        refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    }
}

/// Pasted into a shell, the line uses the memory that knows of the call, and it isn't refused.
#[test]
fn a_call_that_may_have_worked_is_settled_and_not_repeated() {
    let sandbox = sandbox("[order]");
    sandbox.write_file("killed", "");
    let call = ["call", "--log", "my log", "refund", r#"{"order":1}"#];
    let failed = sandbox.run_toolq(&call).assert_exit(1).stderr;
    assert!(!failed.contains("toolq call"), "{failed}");
    let (_, line) = failed.split_once("may have worked: refund").unwrap();
    let (_, command) = line.split_once("`toolq log resolve ").unwrap();
    let (id, named) = command.split_once(' ').unwrap();
    assert!(named.starts_with("'my log'`, adding `--done"), "{failed}");
    sandbox.run_toolq(&call).assert_exit(3);
    std::fs::remove_file(sandbox.path().join("killed")).unwrap();
    sandbox
        .run_toolq(&["log", "resolve", id, "my log", "--not-done"])
        .assert_exit(0);
    // What failed by itself did nothing, so it is repeated, in the same memory.
    sandbox.write_file("broken", "");
    let failed = sandbox.run_toolq(&call).assert_exit(1).stderr;
    let again = r#"repeat: toolq call --log 'my log' refund '{"order":1}'"#;
    assert!(failed.contains(again), "{failed}");
}

/// A plan that answers from memory speaks of no doubt.
#[test]
fn a_plan_says_what_is_known() {
    let sandbox = sandbox("[order]");
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    let plan = sandbox.run_toolq(&["plan", "input.json"]).assert_exit(0);
    assert!(plan.stdout.contains("from memory"), "{}", plan.stdout);
    assert!(!plan.stderr.contains("doubt"), "{}", plan.stderr);
}

/// A person may say what became of a call whose result leaves that open.
#[test]
fn an_open_result_can_be_settled() {
    let sandbox = sandbox("[order]");
    sandbox.write_file("killed", "");
    let log = ["--log", "p.jsonl"];
    refund(&sandbox, "a", r#"{"order":1}"#);
    let run = |extra: &[&str]| sandbox.run_toolq(&[&["run", "input.json"], extra].concat());
    run(&log);
    let settle = [
        "log", "resolve", "a", "p.jsonl", "--done", "--result", "paid",
    ];
    sandbox.run_toolq(&settle).assert_exit(0);
    sandbox
        .run_toolq(&["log", "verify", "p.jsonl"])
        .assert_exit(0);
    let again = run(&log).assert_exit(0);
    assert!(again.stdout.contains("paid"), "{}", again.stdout);
    let input = sandbox.read_file("input.json");
    let noted = input.replace(r#""order":1"#, r#""order":1,"note":"late""#);
    sandbox.write_file("input.json", &noted.replace(r#""id":"a""#, r#""id":"b""#));
    let other = run(&log);
    assert!(
        other.stdout.contains("Its result: paid"),
        "{}",
        other.stdout
    );
}

/// `toolq call` has no ids.
#[test]
fn a_call_from_the_command_line_is_the_same_one() {
    let sandbox = sandbox("{key: [order], scope: shop}");
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    for _ in 0..2 {
        let called = sandbox.run_toolq(&["call", "refund", r#"{"order":1}"#]);
        assert!(called.stdout.contains("refunded 1"), "{}", called.stderr);
    }
    assert_eq!(sandbox.effects(), ["refund 1"]);
}

/// The folder of tools.yaml has one name, however the file is named.
#[test]
fn the_file_may_be_named_in_any_way() {
    let sandbox = sandbox("[order]");
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    let dir = sandbox.path().display().to_string();
    std::os::unix::fs::symlink(&dir, sandbox.path().join("link")).unwrap();
    let name = sandbox.path().file_name().unwrap().to_str().unwrap();
    for file in [
        "tools.yaml",
        "./tools.yaml",
        "link/tools.yaml",
        &format!("{dir}/tools.yaml"),
        &format!("../{name}/tools.yaml"),
    ] {
        let called = sandbox.run_toolq(&["call", "-c", file, "refund", r#"{"order":1}"#]);
        assert!(
            called.stdout.contains("refunded 1"),
            "{file}: {}",
            called.stderr
        );
    }
    assert_eq!(sandbox.effects(), ["refund 1"]);
}

/// A tool that gets `once` forgets nothing that ran or may have run under its id.
#[test]
fn what_ran_before_the_tool_had_once_is_known() {
    let once = sandbox("[order]");
    let tools = once.read_file("tools.yaml");
    let run = |id: &str| refund(&once, id, r#"{"order":1}"#);
    once.write_file("tools.yaml", &tools.replace("    once: [order]\n", ""));
    run("toolu_01A09q90qw90lq917835lq9x").assert_exit(0);
    once.write_file("killed", "");
    run("toolu_01B17pwd04kdv02wo5a9ej3r");
    once.write_file("tools.yaml", &tools);
    let again = run("toolu_01A09q90qw90lq917835lq9x").assert_exit(0);
    assert_eq!(again.result_texts(), ["refunded 1"]);
    let again = run("toolu_01B17pwd04kdv02wo5a9ej3r").assert_exit(0);
    assert!(again.stdout.contains("Killed"), "{}", again.stdout);
    assert_eq!(once.effects(), ["refund 1", "refund 1"]);
}

/// What a program refused did nothing. After a signal, nobody knows.
#[test]
fn what_was_refused_may_run_again() {
    let sandbox = sandbox("[order]");
    sandbox.write_file("broken", "");
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    std::fs::remove_file(sandbox.path().join("broken")).unwrap();
    refund(&sandbox, "b", r#"{"order":1}"#).assert_exit(0);
    assert_eq!(sandbox.effects(), ["refund 1", "refund 1"]);
    sandbox.write_file("killed", "");
    refund(&sandbox, "c", r#"{"order":2}"#);
    refund(&sandbox, "d", r#"{"order":2}"#).assert_exit(3);
    assert_eq!(sandbox.effects().len(), 3);
}

/// A result counts for as long as the tool says.
#[test]
fn a_result_stops_counting() {
    let sandbox = sandbox("{key: [order], for: 1ms}");
    for id in ["a", "b"] {
        refund(&sandbox, id, r#"{"order":1}"#).assert_exit(0);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(sandbox.effects(), ["refund 1", "refund 1"]);
}

/// However often it is asked for, it is one call, and one person says yes once.
#[test]
fn equal_calls_wait_for_one_approval() {
    let sandbox = sandbox("[order]\n    approve: true");
    let call = |id: &str| {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"refund","input":{{"order":1}}}}"#)
    };
    let message = format!(
        r#"{{"role":"assistant","content":[{},{}]}}"#,
        call("a"),
        call("b")
    );
    sandbox.write_file("input.json", &message);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(6);
    let listed = sandbox.run_toolq(&["approvals", "--format", "json"]);
    let waiting: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let [waiting] = waiting.as_array().unwrap().as_slice() else {
        panic!("{waiting}");
    };
    let id = waiting["id"].as_str().unwrap();
    sandbox
        .run_toolq(&["approvals", "approve", id])
        .assert_exit(0);
    sandbox.run_toolq(&["run", "input.json"]).assert_exit(0);
    assert_eq!(sandbox.effects(), ["refund 1"]);
    let listed = sandbox.run_toolq(&["approvals", "--format", "json"]);
    assert_eq!(listed.stdout.trim(), "[]");
}

/// Such a call waits for an approval of its own, which somebody can find.
#[test]
fn what_counts_no_more_is_asked_about_again() {
    let sandbox = sandbox("{key: [order], for: 1ms}\n    approve: true");
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(6);
    sandbox
        .run_toolq(&["approvals", "approve", "a"])
        .assert_exit(0);
    refund(&sandbox, "a", r#"{"order":1}"#).assert_exit(0);
    std::thread::sleep(std::time::Duration::from_millis(2));
    refund(&sandbox, "b", r#"{"order":1}"#).assert_exit(6);
    let waiting = sandbox.run_toolq(&["approvals"]).assert_exit(0).stdout;
    assert!(waiting.contains("refund b"), "{waiting}");
    assert_eq!(sandbox.effects(), ["refund 1"]);
}

#[test]
fn the_values_have_to_be_there() {
    let check = |once: &str| {
        let sandbox = sandbox(once);
        sandbox.run_toolq(&["check"]).assert_exit(1).stderr
    };
    for (once, problem) in [
        ("[note]", "a call may lack `note`"),
        ("[ordr]", "did you mean `order`?"),
        ("[]", "`once` names no input"),
        ("{for: 1d}", "`once` names no input"),
    ] {
        let stderr = check(once);
        assert!(stderr.contains(problem), "{once}: {stderr}");
    }
}

/// What somebody said that the result was counts as long as a result.
#[test]
fn a_settlement_stops_counting() {
    let sandbox = sandbox("{key: [order], for: 1ms}");
    sandbox.write_file("killed", "");
    refund(&sandbox, "a", r#"{"order":1}"#);
    let doubt = refund(&sandbox, "a", r#"{"order":1}"#)
        .assert_exit(3)
        .stderr;
    let id = doubt.split("log resolve ").nth(1).unwrap();
    let id = id.split('`').next().unwrap();
    let settle = ["log", "resolve", id, "--done", "--result", "it was"];
    sandbox.run_toolq(&settle).assert_exit(0);
    std::fs::remove_file(sandbox.path().join("killed")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let renewed = refund(&sandbox, "b", r#"{"order":1}"#).assert_exit(0);
    assert_eq!(renewed.result_texts(), ["refunded 1"]);
    assert_eq!(sandbox.effects().len(), 2);
}

/// Of equal calls that come together, one runs, and the others have its result.
#[test]
fn equal_calls_of_one_message_have_one_result() {
    let tools = r"
tools:
  refund:
    input_schema: {type: object, properties: {order: {type: integer}}, required: [order]}
    once: [order]
    concurrency_safe: true
    command: [sh, -c, 'echo refund >> effects; sleep 0.3; echo refunded']
";
    let calls = ["a", "b", "c"].map(|id| {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"refund","input":{{"order":1}}}}"#)
    });
    let message = format!(r#"{{"role":"assistant","content":[{}]}}"#, calls.join(","));
    for log in [&[][..], &["--log", "log.jsonl"]] {
        let sandbox = ResumeSandbox::new(tools, &message);
        let run = || sandbox.run_toolq(&[&["run", "input.json"], log].concat());
        run().assert_exit(0);
        let texts = run().assert_exit(0).result_texts();
        sandbox
            .run_toolq(&[&["log", "verify"], &log[log.len().min(1)..]].concat())
            .assert_exit(0);
        assert!(
            texts.iter().all(|text| text.ends_with("refunded")),
            "{texts:?}"
        );
        assert_eq!(sandbox.effects(), ["refund"]);
    }
}
