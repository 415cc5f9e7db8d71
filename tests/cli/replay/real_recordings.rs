//! Real recordings, compared with a second, naive implementation of pairing calls with their results.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value, json};
use toolq_core::transcript::{InputSource, Recording};

use crate::replay::{differences, report_counts};
use crate::support::CliSandbox;
use crate::support::recorded_data::recorded_data;

/// A call and its result: ID, tool, input, result.
type RecordedCall = (String, String, String, Option<String>);

/// Collects the calls and results of a value in order.
fn collect_calls(value: &Value, calls: &mut Vec<RecordedCall>) {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match (value["type"].as_str(), value["role"].as_str()) {
        (Some("tool_use"), _) => {
            calls.push((text("id"), text("name"), value["input"].to_string(), None));
        }
        (Some("function_call"), _) => {
            calls.push((text("call_id"), text("name"), text("arguments"), None));
        }
        (Some("tool_result"), _) => attach_result(&text("tool_use_id"), value, calls),
        (Some("function_call_output"), _) => attach_result(&text("call_id"), value, calls),
        (_, Some("tool")) => attach_result(&text("tool_call_id"), value, calls),
        _ => {
            for call in value["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let arguments = text(&function["arguments"]);
                calls.push((text(&call["id"]), text(&function["name"]), arguments, None));
            }
            for block in value["content"].as_array().into_iter().flatten() {
                collect_calls(block, calls);
            }
        }
    }
}

fn attach_result(id: &str, result: &Value, calls: &mut [RecordedCall]) {
    let mut backwards = calls.iter_mut().rev();
    if let Some(call) = backwards.find(|call| call.0 == id && call.3.is_none()) {
        call.3 = Some(result.to_string());
    }
}

/// Returns the calls and results of a recording, read naively.
fn read_naively(path: &Path) -> Vec<RecordedCall> {
    let text = fs::read_to_string(path).unwrap();
    let mut calls = Vec::new();
    for value in Deserializer::from_str(&text).into_iter::<Value>() {
        match value.unwrap() {
            Value::Array(trials) => {
                let all = trials
                    .iter()
                    .flat_map(|trial| trial["traj"].as_array().unwrap());
                all.for_each(|message| collect_calls(message, &mut calls));
            }
            line if !line["payload"].is_null() => {
                if line["type"] == "response_item" {
                    collect_calls(&line["payload"], &mut calls);
                }
            }
            line if line["message"].is_object() => collect_calls(&line["message"], &mut calls),
            document => {
                for key in ["messages", "input", "history"] {
                    let parts = document[key].as_array().into_iter().flatten();
                    parts.for_each(|part| collect_calls(part, &mut calls));
                }
            }
        }
    }
    calls
}

/// Returns the calls and results of a recording, as read by a replay.
fn read_as_replay(path: &Path) -> Vec<RecordedCall> {
    let name = path.display().to_string();
    let source = InputSource::from_file(name, File::open(path).unwrap()).unwrap();
    let recording = Recording::read(source, None, 256 << 20).unwrap();
    let mut pairs = Vec::new();
    for turn in 0..recording.len() {
        for call in recording.turn(turn, true).unwrap().calls {
            let reply = recording.reply(turn, call.position).unwrap();
            let reply = reply.map(|reply| {
                serde_json::from_str::<Value>(&reply.json)
                    .unwrap()
                    .to_string()
            });
            // Inputs aren't compared: only the naive reader keeps them verbatim.
            pairs.push((call.id, call.name.to_string(), String::new(), reply));
        }
    }
    pairs
}

fn sorted(mut pairs: Vec<RecordedCall>) -> Vec<RecordedCall> {
    for pair in &mut pairs {
        pair.2.clear();
    }
    pairs.sort();
    pairs
}

fn collect_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Returns the recordings of conversations that have calls.
fn conversation_files(data: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect_files(&data.join("claude-code"), &mut found);
    collect_files(&data.join("codex/agentcmd"), &mut found);
    found.push(data.join("tau-bench/gpt-4o-airline.even-tasks.json"));
    let mut requests = Vec::new();
    for dir in [
        "pydantic-ai/anthropic",
        "ruby-llm/anthropic",
        "mirascope/openai-responses",
        "chatlas",
    ] {
        collect_files(&data.join(dir), &mut requests);
    }
    requests.retain(|path| path.to_string_lossy().ends_with(".request.json"));
    requests.retain(|path| !read_naively(path).is_empty());
    found.extend(requests);
    found
}

/// Results may come in a different order than their calls, or between them, and IDs may be reused.
#[test]
fn every_call_is_paired_with_its_own_result() {
    let Some(data) = recorded_data() else { return };
    let mut result_count = 0;
    for path in conversation_files(data) {
        let (naive, paired) = (sorted(read_naively(&path)), sorted(read_as_replay(&path)));
        assert_eq!(naive.len(), paired.len(), "{}", path.display());
        for (naive, paired) in naive.iter().zip(&paired) {
            assert_eq!(naive, paired, "{}", path.display());
        }
        result_count += naive.iter().filter(|pair| pair.3.is_some()).count();
    }
    // The data set lists 927 calls of Claude Code, 134 of Codex, and 577 of tau-bench.
    assert!(result_count > 1_638, "{result_count}");
}

/// Without execution, every recorded result matches.
#[test]
fn recorded_sessions_match_themselves() {
    let Some(data) = recorded_data() else { return };
    let dir = data.join("claude-code");
    let mut files = Vec::new();
    collect_files(&dir, &mut files);
    let pairs: Vec<RecordedCall> = files.iter().flat_map(|path| read_naively(path)).collect();
    let names: BTreeSet<&str> = pairs.iter().map(|pair| pair.1.as_str()).collect();
    let tools: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| {
            (
                (*name).to_owned(),
                json!({"input_schema": {"type": "object"}}),
            )
        })
        .collect();
    let ran = CliSandbox::new()
        .tools(&json!({"version": 1, "tools": tools}).to_string())
        .run(&[
            "replay",
            dir.to_str().unwrap(),
            "--json",
            "-",
            "--junit",
            "x.xml",
        ]);
    let result_count = pairs.iter().filter(|pair| pair.3.is_some()).count() as u64;
    let calls = pairs.len() as u64;
    assert_eq!(report_counts(&ran), [calls, 0, result_count, result_count]);
    assert_eq!(ran.json()["files"], files.len());
    let differ = differences(&ran);
    assert!(
        differ.iter().all(|(kind, _)| kind == "missing"),
        "{differ:?}"
    );
    assert!(differ.len() as u64 <= calls - result_count);
    let cases = ran.file("x.xml").unwrap().matches("<testcase ").count();
    assert_eq!(cases as u64, calls);
}
