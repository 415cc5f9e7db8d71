//! `--update`: which results are rewritten.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::json;

use crate::replay::{ok_result, recorded_turn, replay_sandbox};
use crate::support::CliSandbox;

fn poem_recording(id: &str, result_text: &str) -> String {
    recorded_turn(&[(id, "read", json!({"path": "poem"}), ok_result(result_text))])
}

const CURRENT_RESULT: &str = "so much depends\nupon";

/// Everything except the results that differ stays byte for byte the same.
#[test]
fn only_differing_results_are_rewritten() {
    let recording = [
        poem_recording("a", CURRENT_RESULT).replace('\n', "\r\n\n"),
        poem_recording("b", "stale").replace(
            "{\"type\":\"tool_result\"",
            "{ \"type\" : \"tool_result\", \"x\": 1.0",
        ),
        poem_recording("c", CURRENT_RESULT).trim_end().to_owned(),
    ]
    .concat();
    let sandbox = replay_sandbox().file("r.jsonl", &recording);
    let path = sandbox.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    assert!(ran.stderr.contains("1 updated"), "{}", ran.stderr);
    let updated = ran.file("r.jsonl").unwrap();
    assert_eq!(
        updated,
        recording.replace("\"stale\"", &json!(CURRENT_RESULT).to_string())
    );
    let metadata = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    let entries: Vec<_> = fs::read_dir(ran.dir.path()).unwrap().collect();
    assert_eq!(entries.len(), 5, "there are leftover files: {entries:?}");
}

#[test]
fn a_matching_recording_is_not_touched() {
    let sandbox = replay_sandbox().file("r.jsonl", poem_recording("a", CURRENT_RESULT));
    let before = fs::metadata(sandbox.path().join("r.jsonl")).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    let after = fs::metadata(ran.dir.path().join("r.jsonl")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec()),
        (after.ino(), after.mtime_nsec())
    );
}

/// A result that can't be updated remains a difference, so a stale recording never passes.
#[test]
fn results_that_cannot_be_updated_remain_differences() {
    let recording = [
        poem_recording("a", "stale"),
        recorded_turn(&[("b", "reed", json!({}), ok_result("x"))]),
        poem_recording("c", CURRENT_RESULT),
    ]
    .concat();
    let ran = replay_sandbox()
        .file("r.jsonl", recording)
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    let updated = ran.file("r.jsonl").unwrap();
    assert!(!updated.contains("stale"));
    let again = replay_sandbox()
        .file("r.jsonl", updated)
        .run(&["replay", "r.jsonl"])
        .assert_exit(1);
    assert!(
        again.stderr.contains("1 differs, 2 match"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_read_only_recording_is_not_updated() {
    let sandbox = replay_sandbox().file("r.jsonl", poem_recording("a", "stale"));
    let path = sandbox.path().join("r.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    assert!(
        ran.stderr.contains("is not updated: it is read-only"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), poem_recording("a", "stale"));
}

#[test]
fn a_symbolic_link_stays_one() {
    let sandbox = replay_sandbox().file("there/r.jsonl", poem_recording("a", "stale"));
    symlink("there/r.jsonl", sandbox.path().join("r.jsonl")).unwrap();
    let ran = sandbox
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(0);
    assert!(
        fs::symlink_metadata(ran.dir.path().join("r.jsonl"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        ran.file("there/r.jsonl").unwrap(),
        poem_recording("a", CURRENT_RESULT)
    );
}

/// A recording that a tool changes during the replay isn't overwritten.
#[test]
fn a_recording_that_changes_during_the_replay_is_left_alone() {
    let tools = r"version: 1
tools:
  read:
    input_schema: {type: object}
    effect: read
    command: [sh, -c, 'echo >> r.jsonl; echo new']
";
    let recording = recorded_turn(&[("a", "read", json!({}), ok_result("stale"))]);
    let ran = CliSandbox::new()
        .tools(tools)
        .file("r.jsonl", &recording)
        .run(&["replay", "r.jsonl", "--update"])
        .assert_exit(1);
    assert!(
        ran.stderr
            .contains("it changed while it was being replayed"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.file("r.jsonl").unwrap(), format!("{recording}\n"));
}

/// A session log is never rewritten, but the recording that `toolq log export` makes of it can be.
#[test]
fn an_exported_session_log_is_a_recording_that_can_be_updated() {
    let calls = |calls: &[(&str, serde_json::Value)]| crate::support::model_response(calls);
    let first = calls(&[
        ("read", json!({"path": "poem"})),
        ("read", json!({"path": "missing"})),
        ("write", json!({"text": "1.50 \u{2028}\n"})),
        ("read", json!({"pth": 1.50})),
    ]);
    let second = calls(&[("read", json!({"path": "data"}))]);
    let ran = replay_sandbox()
        .stdin(format!("{first}\n{second}\n"))
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = ran.file("log.jsonl").unwrap();
    for format in ["messages", "openai-chat", "openai-responses"] {
        let sandbox = replay_sandbox().file("log.jsonl", &log);
        let exported = sandbox
            .run(&["log", "export", "log.jsonl", "--format", format])
            .assert_exit(0);
        let recording = exported.stdout;
        assert_eq!(recording.lines().count(), 4, "{format}: {recording}");
        let replay = |poem: &str, arguments: &[&str]| {
            replay_sandbox()
                .file("r.jsonl", &recording)
                .file("poem", poem)
                .run(&[&["replay", "r.jsonl", "--json", "-"], arguments].concat())
        };
        let same = replay("so much depends\nupon\n", &["--strict"]).assert_exit(0);
        assert_eq!(
            crate::replay::report_counts(&same),
            [5, 3, 2, 5],
            "{format}"
        );
        assert_eq!(same.json()["turns"], 2, "{format}");
        let updated = replay("changed\n", &["--update"]).assert_exit(0);
        let text = updated.file("r.jsonl").unwrap();
        assert!(text.contains("\"changed\""), "{format}: {text}");
        assert_ne!(text, recording, "{format}");
    }
}

/// The reason replaces the input's text, which isn't available: the Messages API refuses an input that isn't an object.
#[test]
fn an_invalid_input_is_exported_as_an_object() {
    let message = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": [1]},
    ]});
    let ran = replay_sandbox()
        .stdin(message.to_string())
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = ran.file("log.jsonl").unwrap();
    let export = |format: &str| {
        let sandbox = replay_sandbox().file("log.jsonl", &log);
        let exported = sandbox.run(&["log", "export", "log.jsonl", "--format", format]);
        let lines = crate::support::parse_json_lines(&exported.assert_exit(0).stdout);
        lines.into_iter().next().unwrap()
    };
    assert_eq!(
        export("messages")["content"][0]["input"],
        json!({"INVALID_JSON": "the input is an array; it must be an object"})
    );
    assert_eq!(
        export("openai-chat")["tool_calls"][0]["function"]["arguments"],
        "null"
    );
    let planned = replay_sandbox()
        .file("log.jsonl", &log)
        .run(&["plan", "--all", "log.jsonl"]);
    assert!(
        planned.stdout.contains("the input is an array"),
        "{}",
        planned.stdout
    );
}

/// The refusal says how to continue, even with `-q`, because otherwise nothing would explain why the log isn't updated.
#[test]
fn the_refusal_to_update_a_session_log_names_the_export() {
    let ran = replay_sandbox()
        .stdin(crate::support::model_response(&[(
            "read",
            json!({"path": "poem"}),
        )]))
        .run(&["run", "--log", "log.jsonl"])
        .assert_exit(0);
    let log = ran.file("log.jsonl").unwrap();
    for quiet in [&[][..], &["-q"]] {
        let ran = replay_sandbox()
            .file("poem", "changed")
            .file("log.jsonl", &log)
            .run(&[&["replay", "log.jsonl", "--update"], quiet].concat())
            .assert_exit(1);
        assert!(
            ran.stderr
                .contains("log.jsonl is not updated: a session log is never rewritten"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("`toolq log export`"), "{}", ran.stderr);
        assert_eq!(ran.file("log.jsonl").unwrap(), log);
    }
}

#[test]
fn only_session_logs_are_exported() {
    for (text, code) in [
        ("", 4),
        ("{}", 4),
        ("[{\"role\": \"user\", \"content\": \"x\"}]", 4),
    ] {
        let ran = replay_sandbox()
            .file("r.jsonl", text)
            .run(&["log", "export", "r.jsonl"]);
        assert!(ran.code == code || ran.code == 2, "{text}: {}", ran.code);
        assert_eq!(ran.stdout, "", "{text}");
        assert!(ran.stderr.starts_with("error: "), "{text}: {}", ran.stderr);
    }
    let ran = replay_sandbox()
        .stdin(crate::support::model_response(&[("read", json!({"path": "poem"}))]))
        .run_shell("\"$TOOLQ\" run -q --log l.jsonl > out && \"$TOOLQ\" log export l.jsonl >&-; echo $? > code");
    assert_eq!(ran.file("code").unwrap(), "74\n");
}
