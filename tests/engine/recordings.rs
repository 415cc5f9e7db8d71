//! Recordings in every form in which vendors and programs write them: what is read from them is what an independent reader finds
//! (`.ci/recordings.d/independent_reader.py`), however it arrives, and what they declare is kept.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolq_core::json::Input;
use toolq_core::json_schema::{CompiledSchema, find_schema_errors};
use toolq_core::tools_file::starter_tools_file;
use toolq_core::transcript::{
    InputSource, Recording, StreamDecoder, collect_turns as turns_of, read_declarations,
};
use toolq_core::types::{Call, ResponseEnding};

use crate::support::recorded_data::{files_below, read_json, recordings_dir};

/// Results may come in a different order than their calls, or between them, and ids may be reused.
#[test]
fn every_recorded_call_is_found_with_its_result() {
    let dir = recordings_dir();
    let expected = read_json(&dir.join("calls.json"));
    let expected = expected.as_object().unwrap();
    let wrong: Vec<String> = expected
        .iter()
        .filter_map(|(name, expected)| {
            let found = read_calls(&dir.join(name)).unwrap_or_default();
            (found != *expected).then(|| format!("{name}: {found}\nexpected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// A stream decodes to the same events, whatever the sizes of the chunks it arrives in.
#[test]
fn recorded_streams_decode_the_same_in_any_chunk_size() {
    let mut random = fastrand::Rng::with_seed(17);
    let streams = stream_files();
    assert!(!streams.is_empty());
    for path in streams {
        let text = read_stream(&path);
        let unsplit = read_in_chunks(&text, || usize::MAX);
        assert_eq!(read_in_chunks(&text, || 1), unsplit);
        assert_eq!(read_in_chunks(&text, || random.usize(1..200)), unsplit);
    }
}

/// Importing a published definition keeps its schema, which compiles, and its description.
#[test]
fn published_definitions_are_imported_unchanged() {
    let mut count = 0;
    for path in files_below(&recordings_dir().join("mcp"), &[".json"]) {
        let source = InputSource::from_file("f", File::open(&path).unwrap()).unwrap();
        let tools = read_declarations(source, 1 << 20).unwrap().tools;
        let loaded: Value = serde_saphyr::from_str(&starter_tools_file(&tools)).unwrap();
        for tool in &tools {
            let entry = &loaded["tools"][&tool.name];
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
            assert_eq!(entry["input_schema"], schema, "{}", tool.name);
            assert_eq!(entry["description"], *tool.description, "{}", tool.name);
            compile_schema(&schema, &format!("{} {}", path.display(), tool.name));
        }
        count += tools.len();
    }
    assert!(count > 0);
}

/// The schemas of this benchmark use names of Python's and Java's types, which are reported with a hint.
#[test]
fn schemas_in_another_language_are_reported_with_their_positions() {
    let mut count = 0;
    for file in files_below(&recordings_dir().join("bfcl/questions"), &[".jsonl"]) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let question: Value = serde_json::from_str(line).unwrap();
            for tool in question["function"].as_array().into_iter().flatten() {
                let (name, schema) = name_and_schema(tool).unwrap();
                let found = find_schema_errors(schema);
                assert!(!found.is_empty(), "{} {name}", file.display());
                for error in found {
                    assert!(schema.pointer(&error.pointer).is_some(), "{error:?}");
                    assert!(error.hint.is_some(), "{} {name}: {error:?}", file.display());
                }
                count += 1;
            }
        }
    }
    assert!(count > 0);
}

#[test]
fn recorded_inputs_validate_as_declared() {
    let mut count = 0;
    let mut invalid = Vec::new();
    for file in files_below(&recordings_dir(), &[".request.json"]) {
        let request = read_json(&file);
        let tools = request["tools"].as_array().into_iter().flatten();
        let schemas: BTreeMap<&str, CompiledSchema> = tools
            .filter_map(name_and_schema)
            .map(|(name, schema)| (name, compile_schema(schema, &file.to_string_lossy())))
            .collect();
        let response = PathBuf::from(file.to_string_lossy().replace(".request.", ".response."));
        let read = [file, response].map(|path| read_calls(&path).unwrap_or_default());
        let calls = read.iter().filter_map(|read| read["calls"].as_array());
        for call in calls.flatten().filter(|call| call[4].is_object()) {
            let name = call[3].as_str().unwrap();
            let Some(schema) = schemas.get(name) else {
                continue;
            };
            count += 1;
            if !schema.accepts(&call[4]) {
                invalid.push(format!("{name}: {:?}", schema.problem_details(&call[4])));
            }
        }
    }
    assert!(count > 0);
    // One model guessed the input of a tool it hadn't looked up. Another one's prompt provoked an invalid input.
    invalid.retain(|call| {
        !call.starts_with("stock_lookup") && !call.starts_with("get_something_by_name")
    });
    assert_eq!(invalid, [""; 0]);
}

/// Returns the name and the schema of a declared tool, in any of the three forms.
fn name_and_schema(tool: &Value) -> Option<(&str, &Value)> {
    let declared = tool.get("function").unwrap_or(tool);
    let schema = ["input_schema", "inputSchema", "parameters"]
        .iter()
        .find_map(|key| declared.get(key))?;
    Some((declared.get("name")?.as_str()?, schema))
}

fn compile_schema(schema: &Value, label: &str) -> CompiledSchema {
    assert_eq!(find_schema_errors(schema), [], "{label}");
    CompiledSchema::compile(schema).unwrap()
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

const STREAM_ENDINGS: [&str; 2] = [".sse", ".chunks.txt"];

fn stream_files() -> Vec<PathBuf> {
    files_below(&recordings_dir(), &STREAM_ENDINGS)
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

/// Returns what a file has, as the independent reader writes it. `None` if it has no model response.
fn read_calls(path: &Path) -> Option<Value> {
    let name = path.to_string_lossy();
    if STREAM_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        let mut stream = StreamDecoder::new("stream", None, 256 << 20);
        stream.push(&read_stream(path));
        stream.finish();
        let (turns, error) = turns_of(stream);
        let endings = turns.iter().map(|turn| turn.ending).collect::<Vec<_>>();
        let calls = turns.iter().flat_map(|turn| &turn.calls);
        let calls = calls
            .map(|call| call_row(call, &Value::Null))
            .collect::<Vec<_>>();
        return error.is_none().then(|| recording_value(&endings, &calls));
    }
    let source = InputSource::from_file(&*name, File::open(path).ok()?).unwrap();
    let recording = Recording::read(source, None, 256 << 20).ok()?;
    let (mut endings, mut calls) = (Vec::new(), Vec::new());
    for number in 0..recording.len() {
        let turn = recording.turn(number, true).unwrap();
        endings.push(turn.ending);
        for call in &turn.calls {
            let reply = recording.reply(number, call.position).unwrap();
            let reply = reply.map(|reply| serde_json::from_str::<Value>(&reply.json).unwrap());
            calls.push(call_row(call, &reply.unwrap_or_default()));
        }
    }
    Some(recording_value(&endings, &calls))
}

fn recording_value(endings: &[ResponseEnding], calls: &[Value]) -> Value {
    let cut_off = endings
        .iter()
        .filter(|ending| **ending == ResponseEnding::CutOff);
    json!({"turns": endings.len(), "cut_off": cut_off.count(), "calls": calls})
}

fn call_row(call: &Call, reply: &Value) -> Value {
    let input = call.input.as_ref().map_or(Value::Null, Input::to_value);
    json!([call.turn, call.position, call.id, *call.name, input, reply])
}
