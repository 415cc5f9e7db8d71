//! Schemas that real servers and requests declare hold; those of another language are problems with their places.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops where it can't read its recordings, and says where it has none"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolq_core::json_schema::{Schema, schema_faults};
use toolq_core::types::Detail;

/// The recordings beside the repository; none in a clone without them.
fn recordings() -> Option<PathBuf> {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data"));
    if data.is_dir() {
        return Some(data.to_owned());
    }
    println!("no recordings beside the repository: nothing to compare with");
    None
}

/// Every file below `folder` whose name ends so, sorted.
fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// The name and the schema of a declared tool, in any of the three forms.
fn declaration(tool: &Value) -> Option<(&str, &Value)> {
    let declared = tool.get("function").unwrap_or(tool);
    let schema = ["input_schema", "inputSchema", "parameters"]
        .iter()
        .find_map(|key| declared.get(key))?;
    Some((declared.get("name")?.as_str()?, schema))
}

fn compiled(schema: &Value, place: &str) -> Schema {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(schema_faults(schema, dir), [], "{place}");
    Schema::compile(schema, dir).unwrap()
}

#[test]
fn the_schemas_of_mcp_servers_hold() {
    let Some(data) = recordings() else { return };
    let mut count = 0;
    for file in files(&data.join("mcp"), ".json") {
        let answer = json(&file);
        let list = answer.pointer("/result/tools").and_then(Value::as_array);
        for tool in list.map_or_else(|| vec![&answer], |tools| tools.iter().collect()) {
            let (name, schema) = declaration(tool).unwrap();
            compiled(schema, &format!("{} {name}", file.display()));
            count += 1;
        }
    }
    assert_eq!(count, 173);
}

/// FAULTS 28.
#[test]
fn schemas_of_another_language_are_schema_faults_with_places() {
    let Some(data) = recordings() else { return };
    let mut count = 0;
    for file in files(&data.join("bfcl/questions"), ".jsonl") {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let question: Value = serde_json::from_str(line).unwrap();
            for tool in question["function"].as_array().into_iter().flatten() {
                let (name, schema) = declaration(tool).unwrap();
                let found = schema_faults(schema, Path::new("."));
                assert!(!found.is_empty(), "{} {name}", file.display());
                for fault in found {
                    assert!(schema.pointer(&fault.pointer).is_some(), "{fault:?}");
                    assert!(fault.hint.is_some(), "{} {name}: {fault:?}", file.display());
                }
                count += 1;
            }
        }
    }
    assert!(count > 2_000, "{count}");
}

/// The calls of an answer, in any form: name and input.
fn calls(answer: &Value, found: &mut Vec<(String, Value)>) {
    match answer {
        Value::Array(items) => items.iter().for_each(|item| calls(item, found)),
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let arguments = |text: &str| serde_json::from_str(text).unwrap_or_default();
            match (text("type"), text("name"), text("arguments")) {
                (Some("tool_use"), Some(name), _) => {
                    found.push((name.to_owned(), members["input"].clone()));
                }
                (_, Some(name), Some(text)) => found.push((name.to_owned(), arguments(text))),
                _ => members.values().for_each(|value| calls(value, found)),
            }
        }
        _ => {}
    }
}

#[test]
fn recorded_inputs_validate_as_declared() {
    let Some(data) = recordings() else { return };
    let (mut schemas, mut inputs, mut invalid) = (0, 0, Vec::new());
    for file in files(&data, ".request.json") {
        let request = json(&file);
        let declared: Vec<(&str, Schema)> = request["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(declaration)
            .map(|(name, schema)| {
                (
                    name,
                    compiled(schema, &format!("{} {name}", file.display())),
                )
            })
            .collect();
        schemas += declared.len();
        let response = PathBuf::from(file.to_string_lossy().replace(".request.", ".response."));
        let mut found = Vec::new();
        for part in ["messages", "input"] {
            calls(&request[part], &mut found);
        }
        if response.is_file() {
            calls(&json(&response), &mut found);
        }
        for (name, input) in found {
            let Some((_, schema)) = declared.iter().find(|(tool, _)| *tool == name) else {
                continue;
            };
            inputs += 1;
            if !schema.accepts(&input) {
                invalid.push((name, schema.details(&input)));
            }
        }
    }
    assert!(schemas > 1_000 && inputs > 800, "{schemas} {inputs}");
    // One model guessed the input of a tool that it had not searched for; another was provoked by its prompt.
    let known = ["stock_lookup", "get_something_by_name"];
    let other = invalid
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()));
    assert_eq!(other.count(), 0, "{invalid:#?}");
    let line = |detail: &Detail| format!("{}: {}", detail.path, detail.message);
    let lines: BTreeSet<String> = invalid
        .iter()
        .flat_map(|(_, all)| all.iter().map(line))
        .collect();
    assert!(
        lines.contains("/ticker: is not allowed; known: symbol"),
        "{lines:?}"
    );
}
