//! Approval programs.

use super::{CliSandbox, decisions, four_calls, parse_json_lines, sandbox, words};

fn sandbox_with(program: &str) -> CliSandbox {
    sandbox()
        .program("approve", &format!("#!/bin/sh\n{program}\n"))
        .stdin(four_calls())
}

const RUN: [&str; 5] = ["run", "--log", "log.jsonl", "--approve-with", "./approve"];

#[test]
fn a_program_says_yes_with_exit_code_0() {
    let output = sandbox_with("cat >> questions; echo checked by hand")
        .env("TOKEN_OF_MINE", "x")
        .run(&RUN)
        .assert_exit(0);
    assert_eq!(output.file("ran").unwrap(), "look\npay\nlook\npay\n");
    let question = output.file("questions").unwrap();
    let question: serde_json::Value = serde_json::Deserializer::from_str(&question)
        .into_iter()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(question["tool_name"], "pay");
    assert_eq!(question["effect"], "write");
    assert_eq!(question["input"]["amount"], 5);
    assert_eq!(question["runs"]["command"][0], "sh");
    assert_eq!(question["turn"], 0);
    let log = output.file("log.jsonl").unwrap();
    assert!(
        log.contains(r#""decision":"yes","by":"program","reason":"checked by hand""#),
        "{log}"
    );
}

/// While somebody thinks it over, the log and its page say what the call waits for.
#[test]
fn a_log_says_that_a_call_waits_for_an_approval() {
    let look = r#"until grep -q needs_approval log.jsonl; do :; done
"$TOOLQ" log show log.jsonl > shown
"$TOOLQ" log export --format html log.jsonl -o page.html 2> /dev/null"#;
    let output = sandbox_with(look)
        .env("TOOLQ", env!("CARGO_BIN_EXE_toolq"))
        .run(&RUN)
        .assert_exit(0);
    let shown = output.file("shown").unwrap();
    assert!(shown.contains("waits for an approval"), "{shown}");
    let page = output.file("page.html").unwrap();
    assert!(page.contains("… waits for an approval</span>"), "{page}");
}

/// The model gets the reason, and the run continues.
#[test]
fn a_program_says_no_with_exit_code_1() {
    let output = sandbox_with("echo too much; exit 1")
        .run(&RUN)
        .assert_exit(0);
    assert_eq!(output.file("ran").unwrap(), "look\nlook\n");
    let (text, is_error) = &output.result_texts()[1];
    assert!(
        *is_error && text.starts_with("Denied: pay was not approved") && text.contains("too much"),
        "{text}"
    );
    let expected = words(&[("approval", "no"), ("tool_result", "denied")]);
    let decisions = decisions(&output.file("log.jsonl").unwrap());
    let denied: Vec<_> = decisions
        .into_iter()
        .filter(|[_, word]| ["no", "denied"].contains(&word.as_str()))
        .collect();
    assert_eq!(denied, [&expected[..], &expected[..]].concat());
    let dir = output.dir.path();
    let show = std::process::Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["log", "show", "log.jsonl"])
        .current_dir(dir)
        .output()
        .unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    assert_eq!(
        shown.matches("denied by program: too much").count(),
        2,
        "{shown}"
    );
}

/// The record of a decision is small. What the model reads is whole.
#[test]
fn a_long_reason_is_cut_in_the_approval_and_whole_in_the_result() {
    let reason = "x".repeat(600);
    for (exit, decision) in [(0, "yes"), (1, "no")] {
        let output = sandbox_with(&format!("echo {reason}; exit {exit}"))
            .run(&RUN)
            .assert_exit(0);
        let records = parse_json_lines(&output.file("log.jsonl").unwrap());
        let mut approvals = records.iter().filter(|record| record["type"] == "approval");
        let metadata = &approvals.next().unwrap()["metadata"];
        assert_eq!(metadata["decision"], decision);
        let kept = format!("{}… (600 bytes, sha256 ", &reason[..400]);
        let recorded = metadata["reason"].as_str().unwrap();
        assert!(recorded.starts_with(&kept), "{recorded}");
        let whole = output.result_texts()[1].0.contains(&reason);
        assert_eq!(whole, exit == 1);
    }
}

/// Only a clear answer counts.
#[test]
fn any_other_end_of_the_program_stops_the_run() {
    for (program, why) in [
        ("exit 2", "exit code 2"),
        ("echo out of money >&2; exit 77", "out of money"),
        ("kill -9 $$", "signal 9"),
    ] {
        let output = sandbox_with(program).run(&RUN).assert_exit(6);
        assert!(output.stderr.contains(why), "{}", output.stderr);
        assert!(!output.file("ran").unwrap_or_default().contains("pay"));
        assert_eq!(output.results().len(), 4);
    }
    let output = sandbox().stdin(four_calls()).run(&RUN).assert_exit(6);
    assert!(output.stderr.contains("./approve"), "{}", output.stderr);
}

/// What can be known at the start isn't left to the first question.
#[test]
fn a_program_that_is_not_in_path_is_an_error_before_anything_runs() {
    for (name, hint) in [
        ("approve", "./approve"),
        ("no-such-approver", "no-such-approver"),
    ] {
        let output = sandbox_with("exit 0").run(&["run", "--approve-with", name]);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(hint), "{}", output.stderr);
        assert_eq!(output.file("ran"), None);
    }
}

#[test]
fn the_flags_exclude_each_other() {
    let output = sandbox().stdin(four_calls()).run(&[
        "run",
        "--approve",
        "all",
        "--approve-with",
        "./approve",
    ]);
    assert_eq!(output.code, 2);
}

/// However large or deep an input is, what is approved is what runs.
#[test]
fn a_program_sees_the_whole_input() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(63), "}".repeat(63));
    let many = format!(r#"{{"amount":1000000,"a":[{}1]}}"#, "1,".repeat(99_990));
    for input in [deep, many] {
        let calls = format!(r#"{{"type":"tool_use","id":"a","name":"pay","input":{input}}}"#);
        let tools = "version: 1\ntools:\n  pay: {approve: true, input_schema: {type: object}, command: [sh, -c, 'echo pay >> ran']}\n";
        let output = CliSandbox::new()
            .tools(tools)
            .program("approve", "#!/bin/sh\ncat > question\n")
            .stdin(calls)
            .run(&RUN)
            .assert_exit(0);
        let question = output.file("question").unwrap();
        assert!(question.contains(&input), "{}", question.len());
        assert_eq!(output.file("ran").unwrap(), "pay\n");
    }
}
