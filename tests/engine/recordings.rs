//! Recorded data of many vendors, compared with the counts of an independent reader (`independent_reader.py`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolq_core::transcript::{
    InputSource, Recording, ResponseAssembler, StreamDecoder, StreamEvent,
    collect_turns as turns_of, parse_response,
};
use toolq_core::types::{Api, Call, ResponseEnding, Turn};

use crate::support::recorded_data::{DATA_DIR, recorded_data};

/// The recordings have every documented form, as vendors and programs actually write it.
#[test]
fn every_recorded_call_is_found() {
    if recorded_data().is_none() {
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

/// A stream decodes to the same events, whatever the sizes of the chunks it arrives in.
#[test]
fn recorded_streams_decode_the_same_in_any_chunk_size() {
    let Some(data) = recorded_data() else {
        return;
    };
    let streams: Vec<Vec<u8>> = stream_files(data)
        .iter()
        .map(|path| read_stream(path))
        .collect();
    assert!(streams.len() > 300);
    let mut random = fastrand::Rng::with_seed(17);
    for text in streams {
        let unsplit = read_in_chunks(&text, || usize::MAX);
        assert_eq!(read_in_chunks(&text, || 1), unsplit);
        assert_eq!(read_in_chunks(&text, || random.usize(1..200)), unsplit);
    }
}

/// An agent finds the same calls and ending in a stream as `run` does, and the same answer in any chunk size.
#[test]
fn recorded_streams_are_the_same_for_agents() {
    let Some(data) = recorded_data() else {
        return;
    };
    let mut random = fastrand::Rng::with_seed(18);
    let mut responses = 0;
    for path in stream_files(data) {
        let text = read_stream(&path);
        let mut stream = StreamDecoder::new("stream", None, 256 << 20);
        stream.push(&text);
        stream.finish();
        let (turns, error) = turns_of(stream);
        let (Some(api), [turn], None) = (api_of(&text), &turns[..], error) else {
            continue;
        };
        let calls = debug_calls(&turn.calls);
        let whole = read_response(api, &text, || usize::MAX);
        assert_eq!(whole.0, calls, "{}", path.display());
        let (response, body_turn) = parse_response(api, &whole.1, 0).unwrap();
        assert_eq!(debug_calls(&body_turn.calls), calls, "{}", path.display());
        assert_eq!(body_turn.ending, turn.ending, "{}", path.display());
        assert_eq!(response.text, whole.2, "{}", path.display());
        assert_eq!(read_response(api, &text, || 1), whole);
        assert_eq!(read_response(api, &text, || random.usize(1..200)), whole);
        responses += 1;
    }
    assert!(responses > 200, "{responses}");
}

/// Returns the API that agents can use and that sent this stream.
fn api_of(text: &[u8]) -> Option<Api> {
    let text = String::from_utf8_lossy(text);
    if text.contains("message_start") {
        return Some(Api::Anthropic);
    }
    text.contains("\"choices\"").then_some(Api::OpenAiChat)
}

fn debug_calls(calls: &[Call]) -> Vec<String> {
    calls.iter().map(|call| format!("{call:?}")).collect()
}

/// Reads a stream as an agent does. Returns its calls, its body, and its text.
fn read_response(
    api: Api,
    text: &[u8],
    mut length: impl FnMut() -> usize,
) -> (Vec<String>, String, String) {
    let mut response = ResponseAssembler::new(api, 0);
    let mut events = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (chunk, remaining) = rest.split_at(length().min(rest.len()));
        response.push(chunk).unwrap();
        events.extend(std::iter::from_fn(|| response.next_event()));
        rest = remaining;
    }
    let body = response.finish().unwrap().unwrap();
    events.extend(std::iter::from_fn(|| response.next_event()));
    let calls = events.iter().filter_map(|event| match event {
        StreamEvent::CallComplete(call) => Some(format!("{call:?}")),
        _ => None,
    });
    (calls.collect(), body, response.text())
}

/// Decodes a stream that arrives in chunks of the given lengths and returns its events.
fn read_in_chunks(text: &[u8], mut length: impl FnMut() -> usize) -> Vec<String> {
    let mut stream = StreamDecoder::new("stream", None, 256 << 20);
    let mut events = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (chunk, remaining) = rest.split_at(length().min(rest.len()));
        stream.push(chunk);
        events.extend(stream.by_ref());
        rest = remaining;
    }
    stream.finish();
    events.extend(stream.by_ref());
    events.iter().map(|event| format!("{event:?}")).collect()
}

fn stream_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if is_stream(&path) {
                vec![path]
            } else {
                stream_files(&path)
            }
        })
        .collect()
}

fn is_stream(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".sse") || name.ends_with(".chunks.txt")
}

/// Returns the bytes of a recorded stream. Some recordings have only the data of the events, without field names.
fn read_stream(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|end| end == "sse") {
        return bytes;
    }
    let text = String::from_utf8(bytes).unwrap();
    let events = text.lines().map(|line| format!("data: {line}\n\n"));
    events.collect::<String>().into_bytes()
}

/// Returns the turns of a file, and how many of their calls have a result in it.
fn read_turns(name: &str) -> Option<(Vec<Turn>, usize)> {
    let path = Path::new(DATA_DIR).join(name);
    if is_stream(&path) {
        let mut read = StreamDecoder::new(name, None, 256 << 20);
        read.push(&read_stream(&path));
        read.finish();
        let (turns, broke) = turns_of(read);
        return broke.is_none().then_some((turns, 0));
    }
    let source = InputSource::from_file(name, File::open(path).unwrap()).unwrap();
    let recording = Recording::read(source, None, 256 << 20).ok()?;
    let numbers = 0..recording.len();
    let open = numbers
        .clone()
        .map(|number| recording.turn(number, false).unwrap());
    let result_count = open.map(|turn| turn.answered_count).sum();
    let turns = numbers.map(|number| recording.turn(number, true).unwrap());
    Some((turns.collect(), result_count))
}

/// Returns the same summary of a file that the independent reader writes.
fn summary(name: &str) -> Value {
    let Some((turns, result_count)) = read_turns(name) else {
        return Value::Null;
    };
    let (mut calls, mut cut_off) = (0, 0);
    let mut digest = Sha256::new();
    for turn in &turns {
        calls += turn.calls.len();
        cut_off += usize::from(turn.ending == ResponseEnding::CutOff);
        turn.calls
            .iter()
            .for_each(|call| digest.update(digest_line(call)));
    }
    let digest = digest
        .finalize()
        .iter()
        .take(8)
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    serde_json::json!([turns.len(), calls, result_count, cut_off, digest])
}

fn digest_line(call: &Call) -> String {
    let input = call
        .input
        .as_ref()
        .map_or("!".to_owned(), |input| canonical_json(&input.to_value()));
    format!(
        "{}\t{}\t{}\t{}\t{input}\n",
        call.turn, call.position, call.id, call.name
    )
}

/// Returns a value as JSON with sorted keys, without whitespace, and with floats as their bits.
fn canonical_json(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let bits = number.as_f64().unwrap_or_default().to_bits();
            format!("\"f{bits:016x}\"")
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical_json).collect();
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
                    canonical_json(value)
                );
            }
            format!("{{{text}}}")
        }
        other => other.to_string(),
    }
}
