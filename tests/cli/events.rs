//! `--events`: the files, pipes and descriptors that events can be written to.

use crate::support::{CliSandbox, model_response, parse_json_lines};
use serde_json::json;

const TOOLS: &str = "
version: 1
tools:
  echo:
    description: Print the input.
    input_schema: {type: object}
    effect: read
    command: [cat]
";

fn toolq() -> CliSandbox {
    CliSandbox::new()
        .tools(TOOLS)
        .file("input.json", model_response(&[("echo", json!({}))]))
}

/// Asserts that these are all events of a run with one call.
fn assert_complete_events(events: &str) {
    let types: Vec<_> = parse_json_lines(events)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        "tool_queued batch_started tool_started tool_completed result_written queue_drained";
    assert_eq!(types.join(" "), expected);
}

/// The shell and toolq share one file offset, so neither overwrites what the other wrote.
#[test]
fn a_descriptor_is_shared_with_the_shell() {
    let ran = toolq()
        .run_shell(r#"{ echo before >&3; "$TOOLQ" run input.json --events fd:3; echo after >&3; } 3>events"#)
        .assert_exit(0);
    let events = ran.file("events").unwrap();
    let events = events.strip_prefix("before\n").unwrap();
    assert_complete_events(events.strip_suffix("after\n").unwrap());
    let piped = toolq().run_shell(r#""$TOOLQ" run input.json --events fd:3 3>&1 >/dev/null | cat"#);
    assert_complete_events(&piped.assert_exit(0).stdout);
}

#[test]
fn events_are_appended_to_a_file() {
    let run = r#""$TOOLQ" run -q input.json --events events > /dev/null"#;
    let ran = toolq()
        .run_shell(&format!("{run}; cp events first; {run}"))
        .assert_exit(0);
    let (first, both) = (ran.file("first").unwrap(), ran.file("events").unwrap());
    assert_complete_events(&first);
    assert_complete_events(both.strip_prefix(&first).unwrap());
}

/// A descriptor that wasn't passed to toolq may have the number of a file that toolq itself opens, such as its input.
/// That file must stay unchanged.
#[test]
fn a_descriptor_must_be_inherited_and_writable() {
    for (number, redirect, message) in [
        ("3", "", "not open"),
        ("4", "", "not open"),
        ("5", "", "not open"),
        ("3", "3<input.json", "only for reading"),
        ("1", "", "stdout is reserved for results"),
        ("x", "", "isn't a file descriptor number"),
        ("-1", "", "isn't a file descriptor number"),
    ] {
        let script = format!(r#""$TOOLQ" run input.json --events fd:{number} {redirect}"#);
        let ran = toolq().run_shell(&script).assert_exit(2);
        assert!(ran.stderr.contains(message), "{script}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(
            ran.file("input.json").unwrap(),
            model_response(&[("echo", json!({}))])
        );
    }
}

/// Stdout under another name would mix events into the results.
#[test]
fn stdout_under_another_name_is_refused() {
    for script in [
        r#""$TOOLQ" run input.json --events /dev/stdout"#,
        r#""$TOOLQ" run input.json --events /dev/stdout > results"#,
        r#""$TOOLQ" run input.json --events results > results"#,
        r#""$TOOLQ" run input.json --events fd:3 3>&1"#,
    ] {
        let ran = toolq().run_shell(script).assert_exit(2);
        let message = "stdout is reserved for results";
        assert!(ran.stderr.contains(message), "{script}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(ran.file("results").unwrap_or_default(), "");
    }
    let both_dropped = r#""$TOOLQ" run input.json --events /dev/null > /dev/null"#;
    toolq().run_shell(both_dropped).assert_exit(0);
}

/// Events can't be written to the session log, regardless of the path that names it. Nothing runs, and nothing is written.
#[test]
fn events_and_log_must_be_different_files() {
    for events in ["log.jsonl", "./log.jsonl", "link"] {
        let toolq = toolq().file("log.jsonl", "");
        std::os::unix::fs::symlink("log.jsonl", toolq.path().join("link")).unwrap();
        let ran = toolq.run(&[
            "run",
            "--events",
            events,
            "--log",
            "log.jsonl",
            "input.json",
        ]);
        let ran = ran.assert_exit(2);
        assert!(
            ran.stderr.contains("it is the session log"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            std::fs::read_to_string(ran.dir.path().join("log.jsonl")).unwrap(),
            ""
        );
    }
}

/// `--events` and `--log` name one file that isn't there yet: nothing runs or is written.
#[test]
fn a_log_that_events_name_is_not_created() {
    for events in ["new.jsonl", "./new.jsonl", "dir/../new.jsonl", "link"] {
        let toolq = toolq().file("dir/other", "");
        std::os::unix::fs::symlink("dir/../new.jsonl", toolq.path().join("link")).unwrap();
        let ran = toolq.run(&[
            "run",
            "--events",
            events,
            "--log",
            "new.jsonl",
            "input.json",
        ]);
        let ran = ran.assert_exit(2);
        let is_explained = ran.stderr.contains("it is the session log");
        assert!(is_explained, "{events}: {}", ran.stderr);
        assert_eq!(ran.file("new.jsonl"), None, "{events}");
    }
}

/// A run doesn't wait for the reader of a named pipe, which may open it late or never.
#[test]
fn a_named_pipe_is_written_once_it_has_a_reader() {
    let read = toolq()
        .run_shell(
            r#"mkfifo events; "$TOOLQ" run input.json --events events >/dev/null & cat events"#,
        )
        .assert_exit(0);
    assert_complete_events(&read.stdout);
    let unread = toolq()
        .run_shell(r#"mkfifo events; "$TOOLQ" run input.json --events events"#)
        .assert_exit(0);
    assert!(unread.stdout.contains("tool_result"), "{}", unread.stdout);
    assert!(unread.stderr.contains("warning: "), "{}", unread.stderr);
}

/// What a tool wants people to see doesn't reach the model.
#[test]
fn a_tool_shows_its_own_params_and_result() {
    let script = r#"printf '{"params":{"n":1.0}}\n{"result":"shown"}\n' >&3; echo for the model"#;
    let tools = format!(
        "version: 1\ntools: {{show: {{input_schema: {{type: object}}, command: [sh, -c, {}]}}}}\n",
        serde_json::to_string(script).unwrap()
    );
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(model_response(&[("show", json!({"n": 2}))]))
        .run(&["run", "-q", "--events", "events"])
        .assert_exit(0);
    assert_eq!(ran.result_texts(), [("for the model".to_owned(), false)]);
    let events = ran.file("events").unwrap();
    let state = |kind: &str| {
        let mut lines = events.lines();
        let line = lines.find(|line| line.contains(&format!("\"type\":\"{kind}\"")));
        line.unwrap().split_once("\"state\":").unwrap().1.to_owned()
    };
    assert!(
        state("tool_queued").contains(r#""params":{"n":2}"#),
        "{events}"
    );
    let completed = state("tool_completed");
    assert!(
        completed.contains(r#""params":{"n":1.0},"result":"shown""#),
        "{events}"
    );
    assert!(
        state("result_written").contains(r#""result":"shown""#),
        "{events}"
    );
}
