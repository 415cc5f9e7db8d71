//! Programs that try to get out of their sandbox. All of them fail. The same programs succeed without a sandbox, which shows
//! that each attempt can succeed. Each program also has to do its allowed work inside, since one that can't even start would
//! prove nothing.

pub mod attempts;
pub mod outside;
mod system_calls;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::{Value, json};

use crate::skipped_test::skip_test;
use crate::{PLAY, beside_others};
use attempts::{Attempt, Tool};
use outside::Outside;

/// The attempt that needs a descriptor from the test.
const INHERITS_DESCRIPTOR: &str = "reads_an_inherited_descriptor";

/// Returns a trial for each attempt. All of them together take a few seconds.
pub fn trials(is_listing: bool) -> Vec<Trial> {
    let missing = procfence::missing_protections(&procfence::NetworkAccess::TcpPorts(Vec::new()));
    let unconfined = (!missing.is_empty())
        .then(|| format!("this system can't confine {}", missing.join(", or ")));
    attempts::ALL
        .iter()
        .map(|attempt| {
            let skip_reason = attempt.skip_reason().map(str::to_owned);
            let skip_reason = unconfined.clone().or(skip_reason);
            // Other runners learn from the list what is ignored. This harness says why when it comes to it.
            let is_ignored = is_listing && skip_reason.is_some();
            let name = format!("sandbox::{}", attempt.name);
            let trial = name.clone();
            let run = move || match skip_reason {
                Some(reason) => {
                    skip_test(&trial, &reason);
                    Ok(Completion::ignored_with(reason))
                }
                None => beside_others(|| check_attempt(attempt)),
            };
            Trial::ignorable_test(name, run).with_ignored_flag(is_ignored)
        })
        .collect()
}

/// Makes an attempt without a sandbox and in one, and checks how it ends.
fn check_attempt(attempt: &Attempt) -> Result<Completion, Failed> {
    let outside = Outside::new();
    write_tools(&outside);
    let [mut free, confined] = run_calls(&outside, attempt);
    if attempt.name == INHERITS_DESCRIPTOR {
        // toolq closes it for every program.
        free = run_directly(&outside, attempt.name);
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
            let message = format!("not so: {expectation}\n  without: {free}\n  inside: {confined}");
            return Err(message.into());
        }
    }
    Ok(Completion::Completed)
}

/// Runs an attempt without toolq.
fn run_directly(outside: &Outside, name: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([PLAY, "attempt", name]);
    command.arg(outside.prepare("free-inherited"));
    let output = run_with_descriptor(command, outside);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that inherits a descriptor of a file outside.
fn run_with_descriptor(mut command: Command, outside: &Outside) -> Output {
    let canary = fs::File::open(outside.prepare("inherited").join("canary")).unwrap();
    let inherit =
        move || rustix::io::fcntl_setfd(&canary, rustix::io::FdFlags::empty()).map_err(Into::into);
    // SAFETY: the function only makes one call, which is async-signal-safe.
    unsafe { command.pre_exec(inherit) };
    command
        .current_dir(outside.root())
        .stdin(Stdio::null())
        .output()
        .unwrap()
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
            "command": [program, PLAY, "attempt", "{name}", "{place}"],
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

/// Returns what an attempt printed without a sandbox and in one.
fn run_calls(outside: &Outside, attempt: &Attempt) -> [String; 2] {
    let confined = match attempt.tool {
        Tool::Reader => "reader",
        Tool::Writer => "writer",
        Tool::Client => "client",
        Tool::Open => "open",
    };
    let calls = ["free", confined].map(|tool| {
        let place = outside.prepare(&format!("{tool}-{}", attempt.name));
        let input = json!({"name": attempt.name, "place": place});
        json!({"type": "tool_use", "id": tool, "name": tool, "input": input})
    });
    let message = json!({"role": "assistant", "content": calls}).to_string();
    fs::write(outside.root().join("message.json"), message).unwrap();
    let mut toolq = Command::new(env!("CARGO_BIN_EXE_toolq"));
    toolq.args(["run", "--no-log", "message.json"]);
    let output = run_with_descriptor(toolq, outside);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    [0, 1].map(|at| {
        let text = answer["content"][at]["content"].as_str();
        text.unwrap_or_default().to_owned()
    })
}
