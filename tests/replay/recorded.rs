//! Real recordings, against a second, naive way to pair calls with their results.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value, json};
use toolq_core::transcript::{Recording, Source};

use crate::support::Toolq;
use crate::{counts, differ};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");

/// A call and its result.
type Pair = (String, String, String, Option<String>);

/// The calls and results of a value in the order in which they stand.
fn tell(value: &Value, calls: &mut Vec<Pair>) {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    match (value["type"].as_str(), value["role"].as_str()) {
        (Some("tool_use"), _) => {
            calls.push((text("id"), text("name"), value["input"].to_string(), None));
        }
        (Some("function_call"), _) => {
            calls.push((text("call_id"), text("name"), text("arguments"), None));
        }
        (Some("tool_result"), _) => answer(&text("tool_use_id"), value, calls),
        (Some("function_call_output"), _) => answer(&text("call_id"), value, calls),
        (_, Some("tool")) => answer(&text("tool_call_id"), value, calls),
        _ => {
            for call in value["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let arguments = text(&function["arguments"]);
                calls.push((text(&call["id"]), text(&function["name"]), arguments, None));
            }
            for block in value["content"].as_array().into_iter().flatten() {
                tell(block, calls);
            }
        }
    }
}

fn answer(id: &str, result: &Value, calls: &mut [Pair]) {
    let mut backwards = calls.iter_mut().rev();
    if let Some(call) = backwards.find(|call| call.0 == id && call.3.is_none()) {
        call.3 = Some(result.to_string());
    }
}

/// The pairs of a recording, read naively.
fn naive(path: &Path) -> Vec<Pair> {
    let text = fs::read_to_string(path).unwrap();
    let mut calls = Vec::new();
    for value in Deserializer::from_str(&text).into_iter::<Value>() {
        match value.unwrap() {
            Value::Array(trials) => {
                let all = trials
                    .iter()
                    .flat_map(|trial| trial["traj"].as_array().unwrap());
                all.for_each(|message| tell(message, &mut calls));
            }
            line if !line["payload"].is_null() => {
                if line["type"] == "response_item" {
                    tell(&line["payload"], &mut calls);
                }
            }
            line if line["message"].is_object() => tell(&line["message"], &mut calls),
            document => {
                for key in ["messages", "input", "history"] {
                    let parts = document[key].as_array().into_iter().flatten();
                    parts.for_each(|part| tell(part, &mut calls));
                }
            }
        }
    }
    calls
}

/// The pairs as a replay has them.
fn paired(path: &Path) -> Vec<Pair> {
    let name = path.display().to_string();
    let source = Source::file(name, File::open(path).unwrap()).unwrap();
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
            // Of an input only the naive reader knows how it was written.
            pairs.push((call.id, call.name, String::new(), reply));
        }
    }
    pairs
}

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    for pair in &mut pairs {
        pair.2.clear();
    }
    pairs.sort();
    pairs
}

fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            recordings(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The recordings of whole conversations.
fn conversations() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let data = Path::new(DATA);
    if data.exists() {
        recordings(&data.join("claude-code"), &mut found);
        recordings(&data.join("codex/agentcmd"), &mut found);
        found.push(data.join("tau-bench/gpt-4o-airline.even-tasks.json"));
        let mut requests = Vec::new();
        for folder in [
            "pydantic-ai/anthropic",
            "ruby-llm/anthropic",
            "mirascope/openai-responses",
            "chatlas",
        ] {
            recordings(&data.join(folder), &mut requests);
        }
        requests.retain(|path| path.to_string_lossy().ends_with(".request.json"));
        requests.retain(|path| !naive(path).is_empty());
        found.extend(requests);
    }
    found
}

/// FAULTS 6: results stand in another order than calls, between them, and ids are used again.
#[test]
fn every_call_is_paired_with_its_own_result() {
    let mut answered = 0;
    for path in conversations() {
        let (naive, paired) = (sorted(naive(&path)), sorted(paired(&path)));
        assert_eq!(naive.len(), paired.len(), "{}", path.display());
        for (naive, paired) in naive.iter().zip(&paired) {
            assert_eq!(naive, paired, "{}", path.display());
        }
        answered += naive.iter().filter(|pair| pair.3.is_some()).count();
    }
    // Claude Code 927, Codex 134, tau-bench 577 are in the data's own list.
    assert!(answered == 0 || answered > 1_638, "{answered}");
}

/// A recording that is replayed against itself holds.
#[test]
fn the_recorded_sessions_hold_against_themselves() {
    let folder = Path::new(DATA).join("claude-code");
    if !folder.exists() {
        return;
    }
    let mut files = Vec::new();
    recordings(&folder, &mut files);
    let pairs: Vec<Pair> = files.iter().flat_map(|path| naive(path)).collect();
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
    let ran = Toolq::new()
        .tools(&json!({"version": 1, "tools": tools}).to_string())
        .run(&[
            "replay",
            folder.to_str().unwrap(),
            "--json",
            "-",
            "--junit",
            "x.xml",
        ]);
    let answered = pairs.iter().filter(|pair| pair.3.is_some()).count() as u64;
    let calls = pairs.len() as u64;
    assert_eq!(counts(&ran), [calls, 0, answered, answered]);
    assert_eq!(ran.json()["files"], files.len());
    let differ = differ(&ran);
    assert!(
        differ.iter().all(|(kind, _)| kind == "missing"),
        "{differ:?}"
    );
    assert!(differ.len() as u64 <= calls - answered);
    let cases = ran.file("x.xml").unwrap().matches("<testcase ").count();
    assert_eq!(cases as u64, calls);
}
