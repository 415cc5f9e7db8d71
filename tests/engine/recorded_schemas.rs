//! Schemas that real servers and requests declare compile. Schemas in other languages are reported with their
//! positions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolq_core::json_schema::{CompiledSchema, find_schema_errors};
use toolq_core::types::ProblemDetail;

use crate::support::recorded_data::recorded_data;

/// Returns all files below `dir` whose name ends in `suffix`, sorted.
fn files_with_suffix(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut pending = vec![dir.to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read_json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
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
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(find_schema_errors(schema, dir), [], "{label}");
    CompiledSchema::compile(schema, dir).unwrap()
}

#[test]
fn schemas_of_mcp_servers_compile() {
    let Some(data) = recorded_data() else { return };
    let mut count = 0;
    for file in files_with_suffix(&data.join("mcp"), ".json") {
        let response = read_json(&file);
        let list = response.pointer("/result/tools").and_then(Value::as_array);
        for tool in list.map_or_else(|| vec![&response], |tools| tools.iter().collect()) {
            let (name, schema) = name_and_schema(tool).unwrap();
            compile_schema(schema, &format!("{} {name}", file.display()));
            count += 1;
        }
    }
    assert_eq!(count, 173);
}

/// The data set's schemas use names of Python types, which toolq reports with a hint.
#[test]
fn schemas_in_another_language_are_reported_with_their_positions() {
    let Some(data) = recorded_data() else { return };
    let mut count = 0;
    for file in files_with_suffix(&data.join("bfcl/questions"), ".jsonl") {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let question: Value = serde_json::from_str(line).unwrap();
            for tool in question["function"].as_array().into_iter().flatten() {
                let (name, schema) = name_and_schema(tool).unwrap();
                let found = find_schema_errors(schema, Path::new("."));
                assert!(!found.is_empty(), "{} {name}", file.display());
                for error in found {
                    assert!(schema.pointer(&error.pointer).is_some(), "{error:?}");
                    assert!(error.hint.is_some(), "{} {name}: {error:?}", file.display());
                }
                count += 1;
            }
        }
    }
    assert!(count > 2_000, "{count}");
}

/// Collects the name and input of each call in a response or request, in any form.
fn collect_calls(document: &Value, found: &mut Vec<(String, Value)>) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| collect_calls(item, found)),
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let arguments = |text: &str| serde_json::from_str(text).unwrap_or_default();
            match (text("type"), text("name"), text("arguments")) {
                (Some("tool_use"), Some(name), _) => {
                    found.push((name.to_owned(), members["input"].clone()));
                }
                (_, Some(name), Some(text)) => found.push((name.to_owned(), arguments(text))),
                _ => members
                    .values()
                    .for_each(|value| collect_calls(value, found)),
            }
        }
        _ => {}
    }
}

#[test]
fn recorded_inputs_validate_as_declared() {
    let Some(data) = recorded_data() else { return };
    let (mut schemas, mut inputs, mut invalid) = (0, 0, Vec::new());
    for file in files_with_suffix(data, ".request.json") {
        let request = read_json(&file);
        let declared: Vec<(&str, CompiledSchema)> = request["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(name_and_schema)
            .map(|(name, schema)| {
                (
                    name,
                    compile_schema(schema, &format!("{} {name}", file.display())),
                )
            })
            .collect();
        schemas += declared.len();
        let response = PathBuf::from(file.to_string_lossy().replace(".request.", ".response."));
        let mut found = Vec::new();
        for part in ["messages", "input"] {
            collect_calls(&request[part], &mut found);
        }
        if response.is_file() {
            collect_calls(&read_json(&response), &mut found);
        }
        for (name, input) in found {
            let Some((_, schema)) = declared.iter().find(|(tool, _)| *tool == name) else {
                continue;
            };
            inputs += 1;
            if !schema.accepts(&input) {
                invalid.push((name, schema.problem_details(&input)));
            }
        }
    }
    assert!(schemas > 1_000 && inputs > 800, "{schemas} {inputs}");
    // One model guessed the input of a tool it hadn't looked up. Another one's prompt provoked an invalid input.
    let known = ["stock_lookup", "get_something_by_name"];
    let other = invalid
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()));
    assert_eq!(other.count(), 0, "{invalid:#?}");
    let line = |detail: &ProblemDetail| format!("{}: {}", detail.path, detail.message);
    let lines: BTreeSet<String> = invalid
        .iter()
        .flat_map(|(_, all)| all.iter().map(line))
        .collect();
    assert!(
        lines.contains("/ticker: is not allowed; known: symbol"),
        "{lines:?}"
    );
}
