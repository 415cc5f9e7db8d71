//! The promises of a log, checked from its records.

use crate::tests::reading;
use std::borrow::Cow;

use serde_json::json;

use super::*;

/// Checks a log of these records: type, index of the parent, metadata. Returns the line and the text of the first
/// violation.
fn check_sequence(records: &[(&str, Option<usize>, Value)]) -> (u64, String) {
    let mut checker = SequenceChecker::default();
    let id = |index: usize| uuid::Uuid::from_u128(index as u128 + 1);
    for (index, (kind, parent, metadata)) in records.iter().enumerate() {
        let metadata = complete_metadata(kind, metadata);
        let raw = serde_json::value::to_raw_value(&metadata).unwrap();
        let record = Record {
            line: index as u64 + 1,
            offset: 0,
            end_offset: 0,
            seq: index as u64,
            id: id(index),
            parent: parent.map(id),
            timestamp: 0,
            kind: RecordKind::from(*kind),
            content: RecordContent::Inline(Cow::Borrowed(&raw)),
            raw_metadata: Cow::Borrowed(&raw),
        };
        if let Err(corruption) = checker.check_record(&record) {
            return (corruption.line, corruption.kind.to_string());
        }
    }
    (0, String::new())
}

/// Adds the members that every record of the type has.
pub(super) fn complete_metadata(kind: &str, metadata: &Value) -> Value {
    let mut complete = match kind {
        "session" => {
            json!({"toolq": "0.1.0", "format": {"major": 1, "minor": 0}, "tools": {"path": "t", "sha256": "0"}, "cwd": "/", "root": "/", "jobs": 1, "pid": 1})
        }
        "model_response" => {
            json!({"tool_use_id": "a", "tool_name": "t", "model": null, "usage": null})
        }
        "tool_call" => {
            json!({"tool_use_id": "a", "turn": 0, "position": 0, "batch": 0, "concurrency_safe": false, "reason": null, "input_sha256": null, "tool_name": "t"})
        }
        "tool_result" | "tool_skipped" | "tool_in_doubt" => {
            json!({"tool_use_id": "a", "tool_name": "t", "is_error": false, "status": "ok", "duration_ms": 0, "attempts": 0})
        }
        "describe_start" | "describe_end" => json!({"tool_name": "t"}),
        "server_start" => json!({"server": "s"}),
        "server_end" => json!({"server": "s", "cause": "exited", "duration_ms": 1, "calls": 0}),
        "approval" => {
            json!({"tool_use_id": "a", "tool_name": "t", "decision": "yes", "by": "all"})
        }
        "probe_start" | "probe_end" | "resolve" => json!({"tool_use_id": "a", "tool_name": "t"}),
        "session_end" => {
            json!({"turns": 0, "calls": 0, "results": 0, "errors": 0, "skipped": 0, "duration_ms": 0, "exit_code": 0})
        }
        _ => json!({}),
    };
    let members = metadata.as_object().unwrap().clone();
    complete.as_object_mut().unwrap().extend(members);
    complete
}

fn start_record(attempt: u32, effect: &str) -> (&'static str, Option<usize>, Value) {
    let metadata = json!({"tool_use_id": "a", "tool_name": "t", "attempt": attempt, "idempotency_key": "k", "effect": effect});
    ("tool_start", Some(2), metadata)
}

fn call_record(kind: &'static str) -> (&'static str, Option<usize>, Value) {
    (kind, Some(2), json!({}))
}

fn check_after_call(records: &[(&'static str, Option<usize>, Value)]) -> (u64, String) {
    let mut all = vec![
        ("session", None, json!({})),
        ("turn", Some(0), json!({"turn": 0})),
        ("tool_call", Some(1), json!({})),
    ];
    all.extend_from_slice(records);
    check_sequence(&all)
}

#[test]
fn a_run_writes_a_valid_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let mut checker = SequenceChecker::default();
    for record in reading::read_records(&reading::write_sample_log(&dir)).unwrap() {
        checker.check_record(&record).unwrap();
    }
}

/// Nothing ran because of the rejection, so the attempt before it is as unknown as it was.
#[test]
fn a_rejection_doesnt_settle_a_write_that_had_started() {
    let [.., rejected] = end_records();
    let in_doubt = [
        start_record(1, "write"),
        rejected.clone(),
        call_record("tool_in_doubt"),
    ];
    assert_eq!(check_after_call(&in_doubt), (0, String::new()));
    let again = [start_record(1, "write"), rejected, start_record(2, "write")];
    assert_eq!(
        check_after_call(&again),
        (
            6,
            "a call that may have had its effect starts again".to_owned()
        )
    );
}

/// Records that end the call or state what happened to it.
fn end_records() -> [(&'static str, Option<usize>, Value); 6] {
    [
        ("tool_skipped", Some(2), json!({"attempts": 1})),
        ("resolve", Some(2), json!({"done": false})),
        ("resolve", Some(2), json!({"done": true})),
        ("probe_end", Some(2), json!({"finding": "not_done"})),
        ("probe_end", Some(2), json!({"finding": "unknown"})),
        (
            "tool_result",
            Some(2),
            json!({"status": "unknown_tool", "attempts": 0}),
        ),
    ]
}

/// The start of an attempt after one that certainly had no effect.
fn retry_start() -> (&'static str, Option<usize>, Value) {
    let mut again = start_record(2, "write");
    again.2["after"] = json!({"status": "rate_limited", "wait_ms": 1});
    again
}

/// A call that had no effect may start again.
#[test]
fn a_call_starts_again_if_it_had_no_effect() {
    let ok = (0, String::new());
    let [canceled, not_done, done, probed, _, rejected] = end_records();
    for allowed in [
        vec![start_record(1, "write"), call_record("tool_result")],
        vec![
            start_record(1, "write"),
            retry_start(),
            call_record("tool_result"),
        ],
        vec![call_record("tool_skipped"), start_record(1, "write")],
        // An earlier run has started it, or another one has claimed it first.
        vec![call_record("tool_in_doubt")],
        vec![start_record(1, "write"), call_record("tool_skipped")],
        vec![start_record(1, "write"), canceled, start_record(2, "write")],
        vec![
            start_record(1, "write"),
            call_record("tool_in_doubt"),
            call_record("tool_in_doubt"),
        ],
        vec![
            start_record(1, "write"),
            not_done.clone(),
            start_record(2, "write"),
        ],
        vec![
            start_record(1, "write"),
            call_record("tool_in_doubt"),
            not_done.clone(),
            start_record(2, "write"),
        ],
        vec![start_record(1, "write"), probed, start_record(2, "write")],
        vec![start_record(1, "write"), done.clone()],
        vec![start_record(1, "write"), not_done.clone(), done.clone()],
        vec![start_record(1, "write"), not_done.clone(), not_done.clone()],
        // Rejected with other tools, and accepted again.
        vec![
            start_record(1, "write"),
            not_done.clone(),
            rejected.clone(),
            rejected.clone(),
            start_record(2, "write"),
        ],
    ] {
        assert_eq!(check_after_call(&allowed), ok, "{allowed:?}");
    }
}

/// A call that may have had its effect, or has its result, never starts again.
#[test]
fn a_call_with_an_effect_or_a_result_never_starts_again() {
    let [_, _, done, _, unknown, rejected] = end_records();
    let effect = "a call that may have had its effect starts again";
    let result = "a call that has ended starts again";
    let twice = "its call already has a result";
    for (wrong, why) in [
        (
            vec![start_record(1, "write"), start_record(2, "write")],
            effect,
        ),
        (
            vec![start_record(1, "write"), unknown, start_record(2, "write")],
            effect,
        ),
        (
            vec![
                start_record(1, "write"),
                call_record("tool_in_doubt"),
                retry_start(),
            ],
            result,
        ),
        (
            vec![
                start_record(1, "read"),
                call_record("tool_result"),
                start_record(2, "read"),
            ],
            result,
        ),
        (
            vec![
                start_record(1, "write"),
                done.clone(),
                start_record(2, "write"),
            ],
            result,
        ),
        (
            vec![
                start_record(1, "write"),
                call_record("tool_result"),
                call_record("tool_result"),
            ],
            twice,
        ),
        (
            vec![
                start_record(1, "write"),
                call_record("tool_result"),
                call_record("tool_skipped"),
            ],
            twice,
        ),
        (
            vec![("tool_in_doubt", Some(2), json!({"attempts": 1}))],
            "a call that never started is in doubt",
        ),
        (
            vec![start_record(2, "write")],
            "it isn't the next attempt of its call",
        ),
        (
            vec![start_record(1, "read"), rejected, start_record(1, "read")],
            effect,
        ),
        (vec![done], "it resolves a call that isn't in doubt"),
        (
            vec![("session_end", Some(1), json!({}))],
            "it ends a session that isn't open",
        ),
        (
            vec![("tool_start", Some(1), start_record(1, "read").2)],
            "its call isn't in the log",
        ),
        (
            vec![("tool_call", Some(0), json!({}))],
            "its turn isn't in the log",
        ),
        (
            vec![("tool_call", Some(1), json!({"turn": 7}))],
            "its turn has another number",
        ),
        (
            vec![("session_end", Some(0), json!({})), start_record(1, "read")],
            "it follows the end of its session",
        ),
    ] {
        let line = 3 + wrong.len() as u64;
        assert_eq!(
            check_after_call(&wrong),
            (line, why.to_owned()),
            "{wrong:?}"
        );
    }
}

/// A server runs within a session and ends at most once. Its end isn't required: the session may end before the server.
#[test]
fn a_server_end_has_its_start() {
    let session = ("session", None, json!({}));
    let start = ("server_start", Some(0), json!({}));
    let server_end = ("server_end", Some(1), json!({}));
    let end = ("session_end", Some(0), json!({}));
    let again = ("session", None, json!({}));
    let check = |records: &[(&'static str, Option<usize>, Value)]| {
        check_sequence(&[std::slice::from_ref(&session), records].concat())
    };
    let right = [
        vec![start.clone(), server_end.clone(), end.clone()],
        vec![start.clone(), end.clone()],
        vec![start.clone(), again.clone()],
    ];
    for records in right {
        assert_eq!(check(&records), (0, String::new()), "{records:?}");
    }
    let wrong = [
        (vec![server_end.clone()], 2),
        (
            vec![start.clone(), server_end.clone(), server_end.clone()],
            4,
        ),
        (vec![start.clone(), again, server_end], 4),
        (vec![end, start], 3),
    ];
    for (records, line) in wrong {
        assert_eq!(check(&records).0, line, "{records:?}");
    }
}

/// A `describe` program runs within a session, and its end is recorded before the session ends.
#[test]
fn every_describe_start_has_an_end() {
    let session = ("session", None, json!({}));
    let describe_start = ("describe_start", Some(0), json!({}));
    let describe_end = ("describe_end", Some(1), json!({}));
    let end = ("session_end", Some(0), json!({}));
    let check = |records: &[(&'static str, Option<usize>, Value)]| {
        let mut all = vec![session.clone()];
        all.extend_from_slice(records);
        check_sequence(&all)
    };
    let ok = (0, String::new());
    assert_eq!(
        check(&[describe_start.clone(), describe_end.clone(), end.clone()]),
        ok
    );
    // A run that was killed, and the next one.
    let again = ("session", None, json!({}));
    let describe_start_again = ("describe_start", Some(2), json!({}));
    assert_eq!(
        check(&[describe_start.clone(), again.clone(), describe_start_again]),
        ok
    );
    let late = ("describe_end", Some(1), json!({}));
    let twice = "it has no open describe_start";
    let wrong = [
        (vec![describe_end.clone()], 2, twice),
        (
            vec![describe_start.clone(), describe_end.clone(), describe_end],
            4,
            twice,
        ),
        (vec![describe_start.clone(), again, late], 4, twice),
        (
            vec![describe_start.clone(), end.clone()],
            3,
            "a describe_start has no describe_end",
        ),
        (
            vec![
                ("turn", Some(0), json!({"turn": 0})),
                ("describe_start", Some(1), json!({})),
            ],
            3,
            "it doesn't belong to the open session",
        ),
        (
            vec![end, describe_start],
            3,
            "it follows the end of its session",
        ),
    ];
    for (records, line, why) in wrong {
        let (found, what) = check(&records);
        assert_eq!(found, line, "{records:?}: {what}");
        assert!(what.contains(why), "{what}");
    }
}

/// Checks a log in which an agent works on call 2 and has requested call 5.
fn check_with_agent(records: &[(&'static str, Option<usize>, Value)]) -> (u64, String) {
    let mut all = vec![
        agent_start(1),
        ("turn", Some(2), json!({"turn": 0, "agent": "t"})),
        ("tool_call", Some(4), json!({})),
    ];
    all.extend_from_slice(records);
    check_after_call(&all)
}

fn agent_start(attempt: u32) -> (&'static str, Option<usize>, Value) {
    let mut agents = start_record(attempt, "write");
    agents.2["agent"] = json!("t");
    agents
}

fn agent_call_record(kind: &'static str) -> (&'static str, Option<usize>, Value) {
    (kind, Some(5), json!({}))
}

/// The model of an agent responds once per turn, and `write` calls wait for the response.
#[test]
fn calls_of_an_agent_follow_its_model_response() {
    let model_response = |turn: usize| ("model_response", Some(2), json!({"turn": turn}));
    let inner_start = |effect| {
        let mut start = start_record(1, effect);
        start.1 = Some(5);
        start
    };
    let interrupted = ("tool_result", Some(2), json!({"status": "interrupted"}));
    let mut over_budget = ("tool_result", Some(2), json!({"status": "over_budget"}));
    for allowed in [
        vec![
            model_response(0),
            inner_start("write"),
            agent_call_record("tool_result"),
            interrupted.clone(),
        ],
        vec![over_budget.clone()],
        vec![
            call_record("tool_skipped"),
            agent_start(2),
            call_record("tool_result"),
        ],
        vec![
            model_response(0),
            inner_start("write"),
            agent_call_record("tool_in_doubt"),
            call_record("tool_in_doubt"),
        ],
        vec![inner_start("read"), model_response(0)],
        vec![model_response(0), model_response(1)],
    ] {
        assert_eq!(
            check_with_agent(&allowed),
            (0, String::new()),
            "{allowed:?}"
        );
    }
    over_budget.2["budget_of"] = json!("t");
    let no_response = "a `write` call starts before its model response is in the log";
    let result = "a call that has ended starts again";
    let effect = "a call that may have had its effect starts again";
    for (wrong, why) in [
        (vec![inner_start("write")], no_response),
        (vec![model_response(1), inner_start("write")], no_response),
        (
            vec![model_response(0), model_response(0)],
            "its turn already has a model response",
        ),
        (vec![interrupted, agent_start(2)], result),
        (vec![over_budget, agent_start(2)], result),
        (vec![call_record("tool_result"), agent_start(2)], result),
        (
            vec![
                model_response(0),
                inner_start("write"),
                inner_start("write"),
            ],
            effect,
        ),
        (
            vec![
                model_response(0),
                inner_start("write"),
                agent_call_record("tool_result"),
                agent_start(2),
            ],
            effect,
        ),
        (
            vec![model_response(0), inner_start("read"), agent_start(2)],
            effect,
        ),
        (vec![call_record("tool_in_doubt"), agent_start(2)], result),
    ] {
        let line = 6 + wrong.len() as u64;
        assert_eq!(
            check_with_agent(&wrong),
            (line, why.to_owned()),
            "{wrong:?}"
        );
    }
}

/// Nothing that needs an approval ever starts without a yes.
#[test]
fn a_call_that_needs_an_approval_starts_after_a_yes() {
    let call = || {
        [
            ("session", None, json!({})),
            ("turn", Some(0), json!({"turn": 0})),
            ("tool_call", Some(1), json!({})),
        ]
    };
    let start = || {
        let (kind, parent, mut metadata) = start_record(1, "write");
        metadata["needs_approval"] = json!(true);
        (kind, parent, metadata)
    };
    let approval = |decision: &str| ("approval", Some(2), json!({"decision": decision}));
    let check = |records: &[(&'static str, Option<usize>, Value)]| {
        check_sequence(&[&call()[..], records].concat())
    };
    assert_eq!(check(&[approval("yes"), start()]), (0, String::new()));
    for records in [
        vec![start()],
        vec![approval("no"), start()],
        vec![approval("maybe"), start()],
        vec![approval("yes"), approval("no"), start()],
        vec![approval("yes"), ("session", None, json!({})), start()],
    ] {
        let (line, why) = check(&records);
        assert_eq!(line, 3 + records.len() as u64);
        assert!(why.contains("without a yes"), "{why}");
    }
}
