//! What locks gain for calls that models have really made: those of the recorded sessions next to the repository.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::recorded_data::recorded_data;
use crate::support::{CliSandbox, eprint_uncaptured, parse_json_lines};

const TOOLS: &str = include_str!("recorded_tools.yaml");

/// Plans each recorded turn with the locks of its tools and without. Each call is estimated to take a second.
#[test]
fn locks_let_calls_of_recorded_sessions_overlap() {
    let Some(data) = recorded_data() else {
        return;
    };
    let without_locks: Vec<&str> = TOOLS
        .lines()
        .filter(|line| !line.trim_start().starts_with("locks:"))
        .collect();
    let before = plan_turns(data, &without_locks.join("\n"));
    let after = plan_turns(data, TOOLS);
    assert_eq!(before.len(), after.len());
    let (mut changes, mut edits) = (GainTotal::default(), GainTotal::default());
    for (before, after) in before.iter().zip(&after) {
        let calls = planned_calls(after);
        // Without any locks in a turn, its batches say it all.
        if calls.iter().any(|call| call.get("waits_for").is_some()) {
            check_waits(&calls);
        }
        let count =
            |condition: fn(&Value) -> bool| calls.iter().filter(|call| condition(call)).count();
        if count(|call| call["concurrency_safe"] == false) > 1 {
            changes.add(before, after);
        }
        if count(is_edit) > 1 {
            edits.add(before, after);
        }
    }
    eprint_uncaptured(format_args!(
        "turns with several calls that aren't safe: {changes}"
    ));
    eprint_uncaptured(format_args!("turns with several edits of files: {edits}"));
    assert_eq!((changes.turns, changes.gaining), (79, 23));
    assert_eq!((edits.turns, edits.gaining), (35, 22));
    assert_eq!((edits.seconds_before, edits.seconds_after), (150, 108));
}

/// How many turns take less time with locks.
#[derive(Default)]
struct GainTotal {
    turns: usize,
    gaining: usize,
    seconds_before: u64,
    seconds_after: u64,
}

impl GainTotal {
    fn add(&mut self, before: &Value, after: &Value) {
        let [before, after] =
            [before, after].map(|turn| turn["estimate"]["planned_ms"].as_u64().unwrap() / 1_000);
        assert!(after <= before);
        self.turns += 1;
        self.gaining += usize::from(after < before);
        self.seconds_before += before;
        self.seconds_after += after;
    }
}

impl fmt::Display for GainTotal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            turns,
            gaining,
            seconds_before,
            seconds_after,
        } = self;
        write!(
            formatter,
            "{gaining} of {turns} overlap more; at a second each, all take {seconds_after} s instead of {seconds_before} s"
        )
    }
}

/// Returns the plans of all turns of all recorded sessions.
fn plan_turns(data: &Path, tools: &str) -> Vec<Value> {
    let mut files = Vec::new();
    collect_sessions(&data.join("claude-code"), &mut files);
    files.sort();
    let mut arguments = vec!["plan", "--all", "--format", "json"];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = CliSandbox::new()
        .tools(tools)
        .run(&arguments)
        .assert_exit(0);
    parse_json_lines(&output.stdout)
}

fn collect_sessions(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_sessions(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
}

fn planned_calls(turn: &Value) -> Vec<Value> {
    let batches = turn["batches"].as_array().unwrap().iter();
    batches
        .flat_map(|batch| batch["calls"].as_array().unwrap().clone())
        .collect()
}

fn is_edit(call: &Value) -> bool {
    call["tool_name"] == "Edit" || call["tool_name"] == "Write"
}

/// Checks the order of a turn: a call waits, directly or through others, for exactly those that it conflicts with, and
/// for those that these wait for.
fn check_waits(calls: &[Value]) {
    let mut waits: Vec<Vec<bool>> = Vec::new();
    let mut expected: Vec<Vec<bool>> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let named = call["waits_for"].as_array().into_iter().flatten();
        let named: Vec<usize> = named
            .map(|other| usize::try_from(other.as_u64().unwrap()).unwrap())
            .collect();
        let conflicting: Vec<usize> = (0..at)
            .filter(|other| conflict(&calls[*other], call))
            .collect();
        let closure = |direct: &[usize], rows: &[Vec<bool>]| -> Vec<bool> {
            let through = |other| {
                direct
                    .iter()
                    .any(|via| *via == other || rows[*via].get(other) == Some(&true))
            };
            (0..at).map(through).collect()
        };
        let (row, expected_row) = (closure(&named, &waits), closure(&conflicting, &expected));
        assert_eq!(row, expected_row, "{call}");
        waits.push(row);
        expected.push(expected_row);
    }
}

/// Whether two calls can't run together, by what their tools do.
fn conflict(first: &Value, second: &Value) -> bool {
    let is_safe = |call: &Value| call["effect"] == "read";
    match (touched(first), touched(second)) {
        (Some(one), Some(other)) => {
            let is_below =
                |path: &str, dir: &str| path == dir || path.starts_with(&format!("{dir}/"));
            let meet = is_below(one, other) || is_below(other, one);
            meet && !(is_safe(first) && is_safe(second))
        }
        _ => !(is_safe(first) && is_safe(second)),
    }
}

/// Returns what a call says that it touches.
fn touched(call: &Value) -> Option<&str> {
    let input = &call["input"];
    match call["tool_name"].as_str().unwrap() {
        "Edit" | "Write" | "Read" => input["file_path"].as_str(),
        "Grep" | "Glob" => input["path"].as_str(),
        "LSP" => input["filePath"].as_str(),
        "TodoWrite" => Some("todos"),
        _ => None,
    }
}
