//! Histories that broken workers, or a broken `collect`, would leave: the checker must find what each of them breaks.

use serde_json::{Value, json};

use crate::faults::checker::check_history;
use crate::faults::expected::{CollectedRun, Effect, ExpectedCall, ExpectedTurn, History};

/// When the calls of a sound history start, in milliseconds since 1970.
const STARTED_MS: u64 = 1_000_000;

fn name_of(turn: usize, call: usize) -> String {
    format!("t{turn}c{call}")
}

fn answer(turn: usize, texts: [&str; 2]) -> String {
    let results = texts.iter().enumerate().map(|(call, text)| {
        json!({"type": "tool_result", "tool_use_id": name_of(turn, call), "content": text})
    });
    json!({"role": "user", "content": results.collect::<Vec<_>>()}).to_string()
}

fn done(turn: usize) -> String {
    let texts = [0, 1].map(|call| format!("did {}", name_of(turn, call)));
    answer(turn, texts.each_ref().map(String::as_str))
}

/// Three turns of a read and a write, each run once and answered in order.
fn sound_history() -> History {
    let turns = 0..3;
    let calls = |turn| {
        let call = |call| ExpectedCall {
            name: name_of(turn, call),
            is_write: call == 1,
        };
        (0..2).map(call).collect()
    };
    let effects = turns.clone().flat_map(|turn| {
        (0..2).map(move |call| Effect {
            call: name_of(turn, call),
            time: u128::from(STARTED_MS) * 1_000_000,
        })
    });
    History {
        effects: effects.collect(),
        collected: vec![CollectedRun {
            lines: turns.clone().map(done).collect(),
        }],
        turns: turns
            .map(|turn| ExpectedTurn { calls: calls(turn) })
            .collect(),
        ..History::default()
    }
}

/// A sound history in which the write of the first turn is in doubt, since a worker was lost over it. `records` come after the
/// one that requests it.
fn history_with_doubt(records: &[Value]) -> History {
    let mut history = sound_history();
    history.collected[0].lines[0] = answer(0, ["did t0c0", "It may have run."]);
    history.doubts_told = vec![name_of(0, 1)];
    let begun = [
        json!({"id": "s", "type": "session", "timestamp": STARTED_MS}),
        json!({"id": "c", "type": "tool_call", "metadata": {"tool_use_id": name_of(0, 1)}}),
    ];
    let lines: Vec<String> = begun
        .iter()
        .chain(records)
        .enumerate()
        .map(|(seq, record)| {
            let mut record = record.clone();
            record["seq"] = record.get("seq").cloned().unwrap_or(json!(seq));
            record.to_string()
        })
        .collect();
    let log = lines.join("\n") + "\n";
    history.logs_of_doubts.insert(name_of(0, 1), log);
    history
}

fn start() -> Value {
    json!({"id": "start", "parentId": "c", "type": "tool_start"})
}

/// Another worker takes the turn over.
fn takeover(timestamp: u64) -> Value {
    json!({"id": "s2", "type": "session", "timestamp": timestamp})
}

#[track_caller]
fn assert_found(history: &History, violation: &str) {
    let found = check_history(history).err().unwrap_or_default();
    assert!(
        found.iter().any(|text| text.contains(violation)),
        "{violation}: {found:?}"
    );
}

#[test]
fn sound_histories_break_no_promise() {
    let whole = history_with_doubt(&[start(), takeover(STARTED_MS + 10)]);
    // The first worker was lost before it started the call, or said that it didn't.
    let twice = history_with_doubt(&[
        start(),
        takeover(STARTED_MS - 500),
        json!({"id": "c2", "type": "tool_call", "metadata": {"tool_use_id": name_of(0, 1)}}),
        json!({"id": "start2", "parentId": "c2", "type": "tool_start"}),
        takeover(STARTED_MS + 10),
    ]);
    for history in [sound_history(), whole, twice] {
        let found = check_history(&history).err();
        assert_eq!(found, None);
    }
}

/// As by a worker that resumes a turn without its records.
#[test]
fn a_write_that_starts_twice_is_found() {
    let mut history = sound_history();
    history.effects.push(history.effects[1].clone());
    assert_found(&history, "the write t0c1 started 2 times");
    history.effects.push(history.effects[0].clone());
    let found = check_history(&history).unwrap_err();
    assert_eq!(found.len(), 1, "a read may start again: {found:?}");
}

/// As by workers that publish records whatever the stream already has.
#[test]
fn records_of_two_workers_in_one_log_are_found() {
    let second = json!({"id": "s2", "type": "session", "timestamp": STARTED_MS, "seq": 2});
    assert_found(
        &history_with_doubt(&[start(), second]),
        "the log of t0c1 isn't intact",
    );
}

/// As by a worker that starts a call before the stream has its start.
#[test]
fn a_start_that_is_not_on_record_is_found() {
    assert_found(
        &history_with_doubt(&[takeover(STARTED_MS + 10)]),
        "the start of t0c1 isn't on record",
    );
}

/// As by a worker that doesn't look at its lease.
#[test]
fn a_start_after_a_takeover_is_found() {
    assert_found(
        &history_with_doubt(&[start(), takeover(STARTED_MS - 500)]),
        "t0c1 started 500 ms after another worker had taken over its turn",
    );
}

/// As by a `collect` that prints answers as they come.
#[test]
fn answers_out_of_order_are_found() {
    let mut history = sound_history();
    history.collected[0].lines.swap(0, 1);
    assert_found(&history, "out of order: the answer of turn 1");
}

#[test]
fn answers_that_are_lost_or_differ_are_found() {
    let mut history = sound_history();
    history.collected[0].lines.pop();
    assert_found(&history, "3 turns were submitted, and 2 answers collected");
    let mut history = sound_history();
    let other = answer(2, ["did t2c0", "Not executed"]);
    history.collected.push(CollectedRun { lines: vec![other] });
    assert_found(&history, "turn 2 has two answers");
}

#[test]
fn answers_that_are_not_true_are_found() {
    let mut history = sound_history();
    history.effects.pop();
    assert_found(&history, "t2c1 has a result and was never started");
    let mut history = sound_history();
    history.collected[0].lines[2] = answer(2, ["did t2c0", "Not executed"]);
    assert_found(&history, "t2c1 started, and its answer is: Not executed");
    let mut history = history_with_doubt(&[start()]);
    history.doubts_told.clear();
    assert_found(&history, "disagree about [\"t0c1\"]");
}
