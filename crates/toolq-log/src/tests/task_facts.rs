//! What a history says about its task: where and with which tools it ran, and which results it has.

use crate::resume::CallPosition;
use crate::tests::listed_records::{list_history, record_id, start_of};

use super::*;

use toolq_core::types::ResumeState;

/// A session that resumes a task without running anything doesn't change with which tools the task ran.
#[test]
fn a_task_ran_in_the_context_of_its_last_start() {
    let context = |name: &str| json!({"tools": {"path": "t", "sha256": name}, "root": name});
    let mut resuming = context("second");
    resuming["resumes"] = json!(record_id(1));
    let records = [
        (1, "session", 0, context("first")),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({})),
        (4, "session_end", 1, json!({})),
        (5, "session", 0, resuming),
        (6, "describe_start", 5, json!({})),
        start_of(7, 3, &json!({})),
    ];
    for (count, epoch, context) in [
        (0, 0, ""),
        (1, 1, "first"),
        (4, 1, "first"),
        (5, 2, "first"),
        (6, 2, "first"),
        (7, 2, "second"),
    ] {
        let history = list_history(&records[..count]);
        assert_eq!(history.epoch(), epoch, "{count}");
        assert_eq!(history.tools_sha256(), context, "{count}");
        assert_eq!(history.root().unwrap_or_default(), context, "{count}");
        let has_process = history.unfinished_process().is_some();
        assert_eq!(has_process, ![0, 4].contains(&count), "{count}");
        assert_eq!(history.is_empty(), count < 3, "{count}");
    }
}

/// This history has no file to read from.
#[test]
fn a_small_result_is_not_read_again() {
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({})),
        start_of(4, 3, &json!({})),
        (5, "tool_result", 3, json!({"attempts": 1})),
    ];
    let checked = accepted_call(0, sample_tool("t"), false, "{}");
    let mut history = list_history(&records);
    let state = history.resume_state(&checked).unwrap();
    let ResumeState::Answered(restored) = state else {
        panic!("the call has a result");
    };
    assert!(matches!(restored.content, ResultContent::Text(text) if text == "done"));
    history.clear_answer_cache();
    assert!(matches!(
        history.resume_state(&checked),
        Err(RestoreError::NoLog)
    ));
}

#[test]
fn only_the_rejection_in_the_log_is_the_same() {
    let rejection = json!({"status": "unknown_tool", "is_error": true});
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({})),
        (4, "tool_result", 3, rejection),
        (5, "tool_call", 2, json!({"position": 1})),
    ];
    let history = list_history(&records);
    for (position, json, is_same) in [
        (0, "\"done\"", true),
        (0, "\"other\"", false),
        (1, "\"done\"", false),
        (2, "\"done\"", false),
    ] {
        let place = CallPosition { turn: 0, position };
        assert_eq!(history.has_same_rejection(place, json), is_same, "{json}");
    }
}

/// The message about a log that can't be read again names it.
#[test]
fn a_result_that_changed_since_the_log_was_opened_is_refused() {
    let checked = [accepted_call(0, sample_tool("save"), false, "{}")];
    let large = "x".repeat(10_000);
    let (_dir, path, _) = write_log(|log| emit_turn(log, &checked, &large).unwrap());
    let log = PreparedLog::open(&path, BeginMode::Resume, TaskKey::default()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let line = bytes[..at].split(|byte| *byte == b'\n').count();
    fs::write(&path, bytes).unwrap();
    let error = log.history().resume_state(&checked[0]).unwrap_err();
    assert!(matches!(error, RestoreError::Corrupt { .. }), "{error}");
    assert!(
        error.to_string().contains(&format!(": line {line}: ")),
        "{error}"
    );
    assert_eq!(error.log_path(), Some(path));
    assert_eq!(RestoreError::NoResult.log_path(), None);
}
