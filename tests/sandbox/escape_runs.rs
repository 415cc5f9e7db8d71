//! Runs all attempts, without a sandbox and in one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::attempts::{self, Attempt, Tool};
use crate::outside::Outside;

/// The attempt that needs a descriptor from the test.
const INHERITS_DESCRIPTOR: &str = "reads_an_inherited_descriptor";

/// Runs each attempt that `is_chosen` names, and checks how it ends.
pub fn run_all(is_chosen: impl Fn(&str) -> bool) {
    let network = procfence::NetworkAccess::TcpPorts(Vec::new());
    let missing = procfence::missing_protections(&network);
    if !missing.is_empty() {
        println!(
            "all skipped: this system can't confine {}",
            missing.join(", or ")
        );
        return;
    }
    let outside = Outside::new();
    let chosen: Vec<&Attempt> = attempts::ALL
        .iter()
        .filter(|attempt| is_chosen(attempt.name))
        .filter(|attempt| match attempt.skip_reason() {
            Some(reason) => {
                println!("skipped: {}: {reason}", attempt.name);
                false
            }
            None => true,
        })
        .collect();
    write_tools(&outside);
    let mut problems = Vec::new();
    // Everything that is started from here inherits it.
    let place = outside.prepare("free-inherited");
    let inherited = fs::File::open(place.join("canary")).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let results = run_calls(&outside, &chosen);
    for (attempt, [mut free, confined]) in chosen.iter().zip(results) {
        if attempt.name == INHERITS_DESCRIPTOR {
            // toolq closes it for every program.
            free = run_directly(&outside, attempt.name, &place);
        }
        let expectations = [
            (free.contains("worked"), "does its work without a sandbox"),
            (free.contains("escaped"), "gets out without a sandbox"),
            (confined.contains("worked"), "does its work inside"),
            // The system kills a program whose calls have other numbers.
            (
                confined.contains("stayed") || confined.contains("SIGSYS"),
                "stays inside",
            ),
        ];
        for (holds, expectation) in expectations {
            if !holds {
                problems.push(format!(
                    "{}: not so: {expectation}\n  without: {free}\n  inside: {confined}",
                    attempt.name
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{} attempts, none got out", chosen.len());
}

/// Runs an attempt without toolq.
fn run_directly(outside: &Outside, name: &str, place: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    let command = command.args(["program", name]).arg(place);
    let output = command.current_dir(outside.root()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Declares the same program without a sandbox, and in each of the sandboxes.
fn write_tools(outside: &Outside) {
    let program = std::env::current_exe().unwrap();
    let tool = |sandbox: Value| {
        json!({
            "input_schema": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "place": {"type": "string"}},
                "required": ["name", "place"],
            },
            "sandbox": sandbox,
            "command": [program, "program", "{name}", "{place}"],
        })
    };
    let tools = json!({
        "version": 1,
        "tools": {
            "free": tool(json!(false)),
            "reader": tool(json!({})),
            "writer": tool(json!({"write": ["root"]})),
            "client": tool(json!({"network": [outside.tcp_port()]})),
            "open": tool(json!({"network": "all"})),
        },
    });
    fs::write(outside.root().join("tools.yaml"), tools.to_string()).unwrap();
}

/// Returns what each attempt printed without a sandbox and in one.
fn run_calls(outside: &Outside, attempts: &[&Attempt]) -> Vec<[String; 2]> {
    let mut calls = Vec::new();
    for attempt in attempts {
        let confined = match attempt.tool {
            Tool::Reader => "reader",
            Tool::Writer => "writer",
            Tool::Client => "client",
            Tool::Open => "open",
        };
        for tool in ["free", confined] {
            let place = outside.prepare(&format!("{tool}-{}", attempt.name));
            let input = json!({"name": attempt.name, "place": place});
            let id = calls.len().to_string();
            calls.push(json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
        }
    }
    let message = json!({"role": "assistant", "content": calls}).to_string();
    fs::write(outside.root().join("message.json"), message).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["run", "--no-log", "message.json"])
        .current_dir(outside.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let results = answer["content"].as_array().unwrap().iter();
    let texts = results.map(|result| result["content"].as_str().unwrap_or_default().to_owned());
    let texts: Vec<String> = texts.collect();
    let pairs = texts.chunks_exact(2);
    pairs
        .map(|pair| [pair[0].clone(), pair[1].clone()])
        .collect()
}
