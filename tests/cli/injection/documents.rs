//! Attacks every command that the documents and fixtures declare, and serves ordinary values with it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use toolq_core::json_schema::CompiledSchema;
use toolq_core::types::{Backing, CommandBacking, StdinSource, Tool};

use crate::injection::declared_files::{DeclaredFile, each_tool};
use crate::support::{CliSandbox, full_or_short, model_response, repository_root};

/// Tools that hand a value to a shell on purpose.
const SHELLS: [&str; 2] = ["shell", "bash"];
/// What a tool reads that runs its input on purpose.
const CODE: &str = "{script}";
const SECRET: &str = "the text of a file outside";

/// Values that programs could take for options, other files, their own commands, or code. `dir` is outside the root. The first
/// are one of each kind.
fn attacks(dir: &str) -> Vec<String> {
    let touch = format!("touch {dir}/canary");
    let mut attacks = vec![
        format!("--output={dir}/canary"),
        format!("|{touch}"),
        format!("'; {touch}; '"),
        format!("SELECT 1;\n.shell {touch}"),
        "../../secret".to_owned(),
        "-delete".to_owned(),
        format!("@{dir}/secret"),
        format!("$({touch})"),
        "-n".to_owned(),
        "-5".to_owned(),
        format!("-o{dir}/canary"),
        format!("--files0-from={dir}/secret"),
        "--upload-pack=touch".to_owned(),
        format!("{touch}|"),
        format!(".shell {touch}"),
        format!("SELECT 1\n/\n.shell {touch}"),
        format!(".read {dir}/secret"),
        format!("SELECT readfile('{dir}/secret')"),
        format!("SELECT data FROM fsdir('{dir}/secret')"),
        format!("VACUUM INTO '{dir}/canary'"),
        format!("SELECT writefile('{dir}/canary', 'x')"),
        format!("`{touch}`"),
        format!("\"; {touch}; \""),
        format!("a\n{touch}\nb"),
        format!("a[$({touch})]"),
        format!("A=$(shell {touch})"),
        format!("ext::sh -c {}", touch.replace(' ', "% ")),
        format!("{dir}/secret"),
        "../secret".to_owned(),
        "out/secret".to_owned(),
        ".".to_owned(),
    ];
    attacks.truncate(full_or_short(usize::MAX, 5));
    attacks
}

/// Values that a tool must serve.
pub const ORDINARY: [&str; 5] = ["a b", "it's", "src", "ü", "x.txt"];

/// Returns a value that the schema accepts.
fn ordinary_value(schema: &Value) -> Value {
    if let Some(Value::Array(all)) = schema.get("enum") {
        return all[0].clone();
    }
    let compiled = CompiledSchema::compile(schema).unwrap();
    let candidates = [
        json!("word"),
        json!("EUR"),
        json!("invoice-7"),
        json!("A-7"),
        json!("2026"),
        json!("250.00"),
        json!(1),
        json!(true),
        json!(["src"]),
        json!([]),
        json!({}),
        json!(null),
    ];
    let accepted = candidates.into_iter().find(|value| compiled.accepts(value));
    accepted.unwrap_or_else(|| panic!("no value for {schema}"))
}

/// Returns an input of the tool in which one value is replaced: `name` is that value.
fn input_with(tool: &Tool, name: &str, value: &Value) -> Value {
    let schema = tool.input_schema();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut input = Map::new();
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        if property == name {
            input.insert(property.clone(), value.clone());
        } else if required.iter().any(|name| name == property) {
            input.insert(property.clone(), ordinary_value(schema));
        }
    }
    Value::Object(input)
}

/// Returns a call per property that takes a text, or an array of texts, and per value.
pub fn calls_with(tool: &Tool, values: &[String]) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    for (name, schema) in tool.input_schema()["properties"]
        .as_object()
        .into_iter()
        .flatten()
    {
        for value in values {
            let value = match schema["type"].as_str() {
                Some("string") => json!(value),
                Some("array") if schema["items"]["type"] == "string" => json!(["src", value]),
                _ => continue,
            };
            calls.push((tool.name.clone(), input_with(tool, name, &value)));
        }
    }
    calls
}

/// Copies a directory of the repository into the sandbox.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (source, target) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if source.is_dir() {
            copy_tree(&source, &target);
        } else {
            fs::copy(source, target).unwrap();
        }
    }
}

/// Runs calls of a file in a sandbox. The root is `work/`; `secret` lies outside, and `work/out` links to the outside.
/// Returns the text of each result, after checking that nothing was run, read or written outside.
fn run_calls(
    file: &DeclaredFile,
    calls: &[(String, Value)],
    sandbox: CliSandbox,
) -> Vec<(String, bool)> {
    let calls: Vec<(&str, Value)> = calls
        .iter()
        .map(|(name, input)| (name.as_str(), input.clone()))
        .collect();
    let work = sandbox.path().join("work");
    copy_tree(&repository_root().join("fixtures"), &work.join("fixtures"));
    fs::create_dir_all(work.join("src")).unwrap();
    fs::write(work.join("src/kept"), "kept\n").unwrap();
    for root in [work.clone(), work.join("fixtures/coding/workspace")] {
        symlink(sandbox.path(), root.join("out")).unwrap();
    }
    fs::write(sandbox.path().join("secret"), SECRET).unwrap();
    let database = ["app.db", "CREATE TABLE t(x)"];
    // Without sqlite3, its tools fail.
    let _ = Command::new("sqlite3")
        .args(database)
        .current_dir(&work)
        .output();
    let tools = work.join(&file.dir).join("tools.yaml");
    fs::create_dir_all(tools.parent().unwrap()).unwrap();
    fs::write(&tools, &file.text).unwrap();
    let tools = tools.to_string_lossy().into_owned();
    let ran = sandbox
        .stdin(model_response(&calls))
        .in_dir("work")
        .run(&["run", "-q", "-j", "4", "-c", &tools]);
    assert!(
        matches!(ran.code, 0 | 3 | 6),
        "{}: {}",
        file.name,
        ran.stderr
    );
    let texts = ran.result_texts();
    assert_eq!(texts.len(), calls.len(), "{}", file.name);
    let path = ran.dir.path();
    for place in [
        "canary",
        "work/canary",
        "work/fixtures/coding/workspace/canary",
    ] {
        assert!(!path.join(place).exists(), "{}: a value was run", file.name);
    }
    assert_eq!(
        fs::read_to_string(path.join("secret")).unwrap(),
        SECRET,
        "{}",
        file.name
    );
    assert!(
        path.join("work/src/kept").exists(),
        "{}: a value deleted a file",
        file.name
    );
    for ((name, input), (text, _)) in calls.iter().zip(&texts) {
        assert!(
            !text.contains(SECRET),
            "{}: {name} {input} read a file outside",
            file.name
        );
    }
    texts
}

/// Returns the schema of a tool's input.
pub fn compiled_schema(tool: &Tool) -> CompiledSchema {
    CompiledSchema::compile(tool.input_schema()).unwrap()
}

/// Calls `visit` with the commands of each file whose inputs may be attacked.
fn each_command(mut visit: impl FnMut(&DeclaredFile, &Tool, &CommandBacking)) {
    each_tool(|file, tool| {
        let Some(Backing::Command(command)) = &tool.backing else {
            return;
        };
        let runs_code = SHELLS.contains(&tool.name.as_str())
            || matches!(&command.stdin, StdinSource::Template(text) if text.to_string() == CODE);
        if !runs_code && !tool.needs_describe() {
            visit(file, tool, command);
        }
    });
}

/// No declaration in a document or fixture lets a value run something, or leave the root.
#[test]
fn no_documented_command_runs_a_value() {
    let mut attacked = 0;
    each_command(|file, tool, _| {
        let sandbox = CliSandbox::new();
        let values = attacks(&sandbox.path().to_string_lossy());
        let calls = calls_with(tool, &values);
        if !calls.is_empty() {
            run_calls(file, &calls, sandbox);
            attacked += 1;
        }
    });
    assert!(attacked >= 30, "only {attacked} commands were attacked");
}

/// The same declarations serve ordinary values: no such value is refused, unless the schema says so.
#[test]
fn every_documented_command_serves_ordinary_values() {
    let values: Vec<String> = ORDINARY.map(str::to_owned).into();
    let values = &values[..full_or_short(ORDINARY.len(), 2)];
    let mut served = 0;
    each_command(|file, tool, command| {
        let schema = compiled_schema(tool);
        let mut calls = calls_with(tool, values);
        calls.extend(
            calls_with(tool, &["-n".to_owned()])
                .into_iter()
                .filter(|(_, input)| {
                    let paths = tool.paths.iter().filter_map(|path| input.get(&path[0]));
                    paths
                        .into_iter()
                        .any(|value| value.to_string().contains("-n"))
                }),
        );
        // A program that takes a leading dash gets one.
        for name in &command.dashes {
            calls.push((tool.name.clone(), input_with(tool, &name[0], &json!("-5"))));
        }
        calls.retain(|(_, input)| schema.accepts(input));
        if calls.is_empty() {
            return;
        }
        let texts = run_calls(file, &calls, CliSandbox::new());
        for ((name, input), (text, is_error)) in calls.iter().zip(&texts) {
            // A format that the file asserts may refuse a value, but the rules for values don't.
            let is_refused = *is_error
                && (text.contains("must not start with `-`") || text.contains("working directory"));
            assert!(!is_refused, "{}: {name} {input}: {text}", file.name);
            served += 1;
        }
    });
    assert!(
        served >= full_or_short(100, 40),
        "only {served} calls were served"
    );
}
