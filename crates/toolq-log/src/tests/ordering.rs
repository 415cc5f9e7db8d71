//! The promises of a log, checked from its records.

use crate::tests::reading;
use std::borrow::Cow;

use serde_json::json;

use super::*;

/// A log of these records: type, place of the parent, metadata.
fn log(records: &[(&str, Option<usize>, Value)]) -> (u64, String) {
    let mut order = Order::default();
    let id = |place: usize| uuid::Uuid::from_u128(place as u128 + 1);
    for (place, (kind, parent, metadata)) in records.iter().enumerate() {
        let raw = serde_json::value::to_raw_value(metadata).unwrap();
        let record = Record {
            line: place as u64 + 1,
            offset: 0,
            end: 0,
            seq: place as u64,
            id: id(place),
            parent: parent.map(id),
            timestamp: 0,
            kind: Kind::of(kind),
            content: Body::Inline(Cow::Borrowed(&raw)),
            metadata: Cow::Borrowed(&raw),
        };
        if let Err(damage) = order.take(&record) {
            return (damage.line, damage.what.to_string());
        }
    }
    (0, String::new())
}

fn start(attempt: u32, effect: &str) -> (&'static str, Option<usize>, Value) {
    let metadata = json!({"tool_use_id": "a", "tool_name": "t", "attempt": attempt, "idempotency_key": "k", "effect": effect});
    ("tool_start", Some(2), metadata)
}

fn of_call(kind: &'static str) -> (&'static str, Option<usize>, Value) {
    (kind, Some(2), json!({}))
}

fn after_call(records: &[(&'static str, Option<usize>, Value)]) -> (u64, String) {
    let mut all = vec![
        ("session", None, json!({})),
        ("turn", Some(0), json!({"turn": 0})),
        ("tool_call", Some(1), json!({})),
    ];
    all.extend_from_slice(records);
    log(&all)
}

#[test]
fn what_a_run_writes_is_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut order = Order::default();
    for record in reading::read(&reading::sample(&folder)).unwrap() {
        order.take(&record).unwrap();
    }
}

/// Named ends and findings of the call.
fn ends() -> [(&'static str, Option<usize>, Value); 6] {
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

/// The start of an attempt behind one that surely had no effect.
fn again() -> (&'static str, Option<usize>, Value) {
    let mut again = start(2, "write");
    again.2["after"] = json!({"status": "rate_limited", "wait_ms": 1});
    again
}

/// What had no effect, or may have one twice, starts again.
#[test]
fn what_may_start_again() {
    let ok = (0, String::new());
    let [called_off, not_done, done, probed, _, rejected] = ends();
    for allowed in [
        vec![start(1, "write"), of_call("tool_result")],
        vec![start(1, "read"), start(2, "read"), of_call("tool_result")],
        vec![start(1, "idempotent"), start(2, "idempotent")],
        vec![start(1, "write"), again(), of_call("tool_result")],
        vec![of_call("tool_skipped"), start(1, "write")],
        vec![start(1, "write"), called_off, start(2, "write")],
        vec![of_call("tool_result"), start(1, "write")],
        vec![
            start(1, "write"),
            of_call("tool_in_doubt"),
            of_call("tool_in_doubt"),
        ],
        vec![start(1, "write"), not_done.clone(), start(2, "write")],
        vec![
            start(1, "write"),
            of_call("tool_in_doubt"),
            not_done.clone(),
            start(2, "write"),
        ],
        vec![start(1, "write"), probed, start(2, "write")],
        vec![start(1, "write"), done.clone()],
        vec![start(1, "write"), not_done.clone(), done.clone()],
        vec![start(1, "write"), not_done.clone(), not_done.clone()],
        // Rejected by other tools, and taken back.
        vec![start(1, "read"), rejected.clone(), start(2, "read")],
        vec![
            start(1, "write"),
            not_done.clone(),
            rejected.clone(),
            rejected.clone(),
            start(2, "write"),
        ],
    ] {
        assert_eq!(after_call(&allowed), ok, "{allowed:?}");
    }
}

/// FAULTS 117, 118: a call that may have had its effect, or has its result, never starts again.
#[test]
fn nothing_starts_twice_unless_it_may() {
    let [_, _, done, _, unknown, rejected] = ends();
    let effect = "a call starts again that may have had its effect";
    let result = "a call starts again that has its result";
    let twice = "its call has a result already";
    for (wrong, why) in [
        (vec![start(1, "write"), start(2, "write")], effect),
        (vec![start(1, "write"), unknown, start(2, "write")], effect),
        (
            vec![start(1, "write"), of_call("tool_in_doubt"), again()],
            effect,
        ),
        (
            vec![start(1, "read"), of_call("tool_result"), start(2, "read")],
            result,
        ),
        (
            vec![start(1, "write"), done.clone(), start(2, "write")],
            result,
        ),
        (
            vec![
                start(1, "write"),
                of_call("tool_result"),
                of_call("tool_result"),
            ],
            twice,
        ),
        (
            vec![
                start(1, "write"),
                of_call("tool_result"),
                of_call("tool_skipped"),
            ],
            twice,
        ),
        (
            vec![start(1, "write"), of_call("tool_skipped")],
            "a call is skipped that had started",
        ),
        (
            vec![of_call("tool_in_doubt")],
            "a call is in doubt that never started",
        ),
        (
            vec![start(2, "write")],
            "its attempt is not the next one of its call",
        ),
        (
            vec![start(1, "read"), rejected, start(1, "read")],
            "its attempt is not the next one of its call",
        ),
        (vec![done], "it resolves a call that is not in doubt"),
        (
            vec![("session_end", Some(1), json!({}))],
            "it ends a session that is not open",
        ),
        (
            vec![("tool_start", Some(1), start(1, "read").2)],
            "its call is not on record",
        ),
        (
            vec![("tool_call", Some(0), json!({}))],
            "its turn is not on record",
        ),
        (
            vec![("session_end", Some(0), json!({})), start(1, "read")],
            "it stands behind the end of its session",
        ),
    ] {
        let line = 3 + wrong.len() as u64;
        assert_eq!(after_call(&wrong), (line, why.to_owned()), "{wrong:?}");
    }
}

/// A tool is asked within its session, and whatever came of it is on record before that ends.
#[test]
fn what_was_asked_has_an_end() {
    let session = ("session", None, json!({}));
    let asked = ("describe_start", Some(0), json!({}));
    let said = ("describe_end", Some(1), json!({}));
    let end = ("session_end", Some(0), json!({}));
    let of = |records: &[(&'static str, Option<usize>, Value)]| {
        let mut all = vec![session.clone()];
        all.extend_from_slice(records);
        log(&all)
    };
    let ok = (0, String::new());
    assert_eq!(of(&[asked.clone(), said.clone(), end.clone()]), ok);
    // A run that was killed, and the one that resumes it.
    let again = ("session", None, json!({}));
    let asked_again = ("describe_start", Some(2), json!({}));
    assert_eq!(of(&[asked.clone(), again.clone(), asked_again]), ok);
    let late = ("describe_end", Some(1), json!({}));
    let twice = "its tool was not asked, or has its end already";
    let wrong = [
        (vec![said.clone()], 2, twice),
        (vec![asked.clone(), said.clone(), said], 4, twice),
        (vec![asked.clone(), again, late], 4, twice),
        (
            vec![asked.clone(), end.clone()],
            3,
            "a tool that was asked what it takes has no end",
        ),
        (
            vec![
                ("turn", Some(0), json!({"turn": 0})),
                ("describe_start", Some(1), json!({})),
            ],
            3,
            "it belongs to no open session",
        ),
        (
            vec![end, asked],
            3,
            "it stands behind the end of its session",
        ),
    ];
    for (records, line, why) in wrong {
        let (found, what) = of(&records);
        assert_eq!(found, line, "{records:?}: {what}");
        assert!(what.contains(why), "{what}");
    }
}

/// A log with an agent's call, 2, which started, and a call that it asked for, 5.
fn with_agent(records: &[(&'static str, Option<usize>, Value)]) -> (u64, String) {
    let mut all = vec![
        agents_start(1),
        ("turn", Some(2), json!({"turn": 0, "agent": "t"})),
        ("tool_call", Some(4), json!({})),
    ];
    all.extend_from_slice(records);
    after_call(&all)
}

fn agents_start(attempt: u32) -> (&'static str, Option<usize>, Value) {
    let mut agents = start(attempt, "write");
    agents.2["agent"] = json!("t");
    agents
}

fn of_inner(kind: &'static str) -> (&'static str, Option<usize>, Value) {
    (kind, Some(5), json!({}))
}

/// An agent goes on as often as it must; its model answers each of its turns once, and what writes waits for that.
#[test]
fn an_agent_goes_on() {
    let heard = |turn: usize| ("model_response", Some(2), json!({"turn": turn}));
    let inner = |mut record: (&'static str, Option<usize>, Value)| {
        record.1 = Some(5);
        record
    };
    let cut_short = ("tool_result", Some(2), json!({"status": "interrupted"}));
    let mut over = ("tool_result", Some(2), json!({"status": "over_budget"}));
    let pays = inner(start(1, "write"));
    for allowed in [
        vec![
            heard(0),
            pays.clone(),
            of_inner("tool_result"),
            agents_start(2),
        ],
        vec![
            cut_short.clone(),
            agents_start(2),
            over.clone(),
            agents_start(3),
        ],
        vec![cut_short.clone(), of_call("tool_in_doubt"), agents_start(2)],
        vec![
            of_call("tool_skipped"),
            agents_start(2),
            of_call("tool_result"),
        ],
        vec![
            heard(0),
            pays.clone(),
            of_inner("tool_in_doubt"),
            of_call("tool_in_doubt"),
            agents_start(2),
        ],
        vec![inner(start(1, "read")), heard(0)],
        vec![heard(0), heard(1)],
    ] {
        assert_eq!(with_agent(&allowed), (0, String::new()), "{allowed:?}");
    }
    over.2["budget_of"] = json!("t");
    let unheard = "a call that writes starts, and its model's answer is not on record";
    let result = "a call starts again that has its result";
    for (wrong, why) in [
        (vec![pays.clone()], unheard),
        (vec![heard(1), pays.clone()], unheard),
        (vec![heard(0), heard(0)], "its turn has an answer already"),
        (vec![over, agents_start(2)], result),
        (vec![of_call("tool_result"), agents_start(2)], result),
        (
            vec![heard(0), pays, inner(start(2, "write"))],
            "a call starts again that may have had its effect",
        ),
    ] {
        let line = 6 + wrong.len() as u64;
        assert_eq!(with_agent(&wrong), (line, why.to_owned()), "{wrong:?}");
    }
}
