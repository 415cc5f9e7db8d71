//! Recorded data of many vendors, against the counts of an independent reader (`independent_reader.py`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that says why it was skipped"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolq::model::Call;
use toolq::parse::{Recording, Source};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");

/// FAULTS 14: every documented shape, as vendors and programs really write it.
#[test]
fn every_recorded_call_is_found() {
    if !Path::new(DATA).exists() {
        println!("skipped: the recorded data are not beside this repository");
        return;
    }
    let expected: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("recordings.json")).unwrap();
    assert!(expected.len() > 1_900);
    let wrong: Vec<String> = expected
        .iter()
        .filter_map(|(name, expected)| {
            let found = summary(name);
            (found != *expected).then(|| format!("{name}: {found}, expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// What the independent reader writes down of a file.
fn summary(name: &str) -> Value {
    let file = File::open(Path::new(DATA).join(name)).unwrap();
    let source = Source::file(name, file).unwrap();
    let Ok(recording) = Recording::read(source, None, 256 << 20) else {
        return Value::Null;
    };
    let (mut calls, mut answered, mut cut_off) = (0, 0, 0);
    let mut digest = Sha256::new();
    for number in 0..recording.len() {
        answered += recording.turn(number, false).unwrap().answered;
        let turn = recording.turn(number, true).unwrap();
        calls += turn.calls.len();
        cut_off += usize::from(turn.cut_off);
        turn.calls.iter().for_each(|call| digest.update(line(call)));
    }
    let digest = digest
        .finalize()
        .iter()
        .take(8)
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    serde_json::json!([recording.len(), calls, answered, cut_off, digest])
}

fn line(call: &Call) -> String {
    let input = call
        .input
        .as_ref()
        .map_or("!".to_owned(), |input| canonical(&input.value()));
    format!(
        "{}\t{}\t{}\t{}\t{input}\n",
        call.turn, call.position, call.id, call.name
    )
}

/// Sorted keys, no white space, floats by their bits.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let bits = number.as_f64().unwrap_or_default().to_bits();
            format!("\"f{bits:016x}\"")
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut text = String::new();
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            for (key, value) in sorted {
                let comma = if text.is_empty() { "" } else { "," };
                let _ = write!(
                    text,
                    "{comma}{}:{}",
                    Value::from(key.as_str()),
                    canonical(value)
                );
            }
            format!("{{{text}}}")
        }
        other => other.to_string(),
    }
}
