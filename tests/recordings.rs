//! Recorded data of many vendors, against the counts of an independent reader (`independent_reader.py`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that says why it was skipped"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolq_core::transcript::{Recording, Source, Stream, turns as turns_of};
use toolq_core::types::{Call, Turn};

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
    assert!(expected.len() > 2_200);
    let wrong: Vec<String> = expected
        .iter()
        .filter_map(|(name, expected)| {
            let found = summary(name);
            (found != *expected).then(|| format!("{name}: {found}, expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// FAULTS 17: a stream is the same however its bytes arrive.
#[test]
fn every_recorded_stream_is_the_same_byte_by_byte() {
    let streams: Vec<Vec<u8>> = streams(Path::new(DATA))
        .iter()
        .map(|path| stream(path))
        .collect();
    if streams.is_empty() {
        println!("skipped: the recorded data are not beside this repository");
        return;
    }
    assert!(streams.len() > 300);
    let mut random = fastrand::Rng::with_seed(17);
    for text in streams {
        let whole = read_in(&text, || usize::MAX);
        assert_eq!(read_in(&text, || 1), whole);
        assert_eq!(read_in(&text, || random.usize(1..200)), whole);
    }
}

/// What a stream tells that arrives in pieces of these lengths.
fn read_in(text: &[u8], mut length: impl FnMut() -> usize) -> Vec<String> {
    let mut stream = Stream::new("stream", None, 256 << 20);
    let mut told = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(length().min(rest.len()));
        stream.push(piece);
        told.extend(stream.by_ref());
        rest = behind;
    }
    stream.end();
    told.extend(stream.by_ref());
    told.iter().map(|told| format!("{told:?}")).collect()
}

fn streams(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if is_stream(&path) {
                vec![path]
            } else {
                streams(&path)
            }
        })
        .collect()
}

fn is_stream(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".sse") || name.ends_with(".chunks.txt")
}

/// The bytes of a recorded stream. Some are kept without the names of their fields.
fn stream(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|end| end == "sse") {
        return bytes;
    }
    let text = String::from_utf8(bytes).unwrap();
    let events = text.lines().map(|line| format!("data: {line}\n\n"));
    events.collect::<String>().into_bytes()
}

/// The turns of a file, and how many calls of them are answered in it.
fn turns(name: &str) -> Option<(Vec<Turn>, usize)> {
    let path = Path::new(DATA).join(name);
    if is_stream(&path) {
        let mut read = Stream::new(name, None, 256 << 20);
        read.push(&stream(&path));
        read.end();
        let (turns, broke) = turns_of(read);
        return broke.is_none().then_some((turns, 0));
    }
    let source = Source::file(name, File::open(path).unwrap()).unwrap();
    let recording = Recording::read(source, None, 256 << 20).ok()?;
    let numbers = 0..recording.len();
    let open = numbers
        .clone()
        .map(|number| recording.turn(number, false).unwrap());
    let answered = open.map(|turn| turn.answered).sum();
    let turns = numbers.map(|number| recording.turn(number, true).unwrap());
    Some((turns.collect(), answered))
}

/// What the independent reader writes down of a file.
fn summary(name: &str) -> Value {
    let Some((turns, answered)) = turns(name) else {
        return Value::Null;
    };
    let (mut calls, mut cut_off) = (0, 0);
    let mut digest = Sha256::new();
    for turn in &turns {
        calls += turn.calls.len();
        cut_off += usize::from(turn.cut_off);
        turn.calls.iter().for_each(|call| digest.update(line(call)));
    }
    let digest = digest
        .finalize()
        .iter()
        .take(8)
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    serde_json::json!([turns.len(), calls, answered, cut_off, digest])
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
