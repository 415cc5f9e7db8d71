//! Recordings as the program takes them: planned, replayed, and as the API of an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, fs, thread};

use serde_json::{Value, json};

use crate::replay::{differences, report_counts};
use crate::support::recorded_data::{files_below, read_json, recordings_dir};
use crate::support::resume_sandbox::ResumeSandbox;
use crate::support::scripted_api::{ScriptedApi, chat_response, ok_response, text_response};
use crate::support::{CliSandbox, parse_json_lines};

const TOOLS: &str = include_str!("recordings.tools.yaml");

/// Plans each recorded turn with the locks of its tools and without. Each call is estimated to take a second.
#[test]
fn locks_let_calls_of_recorded_sessions_overlap() {
    let without_locks: Vec<&str> = TOOLS
        .lines()
        .filter(|line| !line.trim_start().starts_with("locks:"))
        .collect();
    let before = plan_turns(&without_locks.join("\n"));
    let after = plan_turns(TOOLS);
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
    println!("turns with several calls that aren't safe: {changes}");
    println!("turns with several edits of files: {edits}");
    assert!(edits.gaining > 0 && edits.gaining < changes.turns);
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

/// Returns the recorded sessions of Claude Code.
fn sessions() -> Vec<PathBuf> {
    files_below(&recordings_dir().join("claude-code"), &[".jsonl"])
}

/// Returns the plans of all turns of all recorded sessions.
fn plan_turns(tools: &str) -> Vec<Value> {
    let files = sessions();
    let mut arguments = vec!["plan", "--all", "--format", "json"];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    let output = CliSandbox::new()
        .tools(tools)
        .run(&arguments)
        .assert_exit(0);
    parse_json_lines(&output.stdout)
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

/// Without execution, every recorded result matches.
#[test]
fn recorded_sessions_match_themselves() {
    let dir = recordings_dir();
    let recorded = read_json(&dir.join("calls.json"));
    let files = sessions();
    let calls: Vec<&Value> = files
        .iter()
        .map(|file| file.strip_prefix(&dir).unwrap().to_str().unwrap())
        .flat_map(|name| recorded[name]["calls"].as_array().unwrap())
        .collect();
    let tools: serde_json::Map<String, Value> = calls
        .iter()
        .map(|call| {
            let name = call[3].as_str().unwrap().to_owned();
            (name, json!({"input_schema": {"type": "object"}}))
        })
        .collect();
    let sessions_dir = dir.join("claude-code");
    let ran = CliSandbox::new()
        .tools(&json!({"version": 1, "tools": tools}).to_string())
        .run(&[
            "replay",
            sessions_dir.to_str().unwrap(),
            "--json",
            "-",
            "--junit",
            "x.xml",
        ]);
    let answered = calls.iter().filter(|call| !call[5].is_null()).count() as u64;
    let count = calls.len() as u64;
    assert_eq!(report_counts(&ran), [count, 0, answered, answered]);
    assert_eq!(ran.json()["files"], files.len());
    let differ = differences(&ran);
    assert!(
        differ.iter().all(|(kind, _)| kind == "missing"),
        "{differ:?}"
    );
    assert!(differ.len() as u64 <= count - answered);
    let cases = ran.file("x.xml").unwrap().matches("<testcase ").count();
    assert_eq!(cases, calls.len());
}

/// A model's response, and the request that its recorded client sent next.
struct RecordedExchange {
    location: String,
    api: &'static str,
    response: Value,
    next_request: Value,
}

/// Results as they are compared: id of the call and text.
type SentResults = Vec<(String, String)>;

/// Returns the exchanges that the indexes of all sources list.
fn load_exchanges() -> Vec<RecordedExchange> {
    files_below(&recordings_dir(), &["index.jsonl"])
        .iter()
        .flat_map(|index| exchanges_of(index.parent().unwrap()))
        .collect()
}

fn exchanges_of(source: &Path) -> Vec<RecordedExchange> {
    let index = fs::read_to_string(source.join("index.jsonl")).unwrap();
    let lines = parse_json_lines(&index);
    let mut exchanges: BTreeMap<(&str, u64), &Value> = BTreeMap::new();
    for line in &lines {
        let key = (line["dir"].as_str().unwrap(), line["n"].as_u64().unwrap());
        exchanges.insert(key, line);
    }
    let read = |line: &Value, what: &str| -> Option<Value> {
        let path = source
            .join(line["dir"].as_str()?)
            .join(line[what].as_str()?);
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    };
    let exchange = |((dir, n), line): (&(&str, u64), &&Value)| {
        let next = exchanges.get(&(*dir, n + 1))?;
        let api = match line["url"].as_str()? {
            url if url.ends_with("/messages") => "anthropic",
            url if url.ends_with("/chat/completions") => "openai-chat",
            _ => return None,
        };
        Some(RecordedExchange {
            location: format!("{}/{dir}/{n}", source.display()),
            api,
            response: read(line, "response")?,
            next_request: read(next, "request")?,
        })
    };
    exchanges.iter().filter_map(exchange).collect()
}

impl RecordedExchange {
    /// Returns the ids and names of the response's calls.
    fn calls(&self) -> Vec<(String, String)> {
        let (list, name) = match self.api {
            "anthropic" => (&self.response["content"], "/name"),
            _ => (
                &self.response["choices"][0]["message"]["tool_calls"],
                "/function/name",
            ),
        };
        let list = list.as_array().map_or(&[][..], Vec::as_slice).iter();
        let calls = list.filter(|call| self.api != "anthropic" || call["type"] == "tool_use");
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        calls
            .map(|call| (text(call.get("id")), text(call.pointer(name))))
            .collect()
    }

    /// Returns the results that a request carries for these calls, in order. `None` if one is an error, missing, or more than
    /// text.
    fn results_in(&self, request: &Value) -> Option<SentResults> {
        let messages = request["messages"].as_array()?;
        let mut sent = SentResults::new();
        for message in messages {
            match self.api {
                "anthropic" => {
                    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
                    for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                        if block["is_error"] == true {
                            return None;
                        }
                        sent.push((
                            block["tool_use_id"].as_str()?.to_owned(),
                            result_text(&block["content"])?,
                        ));
                    }
                }
                _ if message["role"] == "tool" => {
                    let id = message["tool_call_id"].as_str()?.to_owned();
                    sent.push((id, result_text(&message["content"])?));
                }
                _ => {}
            }
        }
        let ids: BTreeSet<String> = self.calls().into_iter().map(|(id, _)| id).collect();
        sent.retain(|(id, _)| ids.contains(id));
        (sent.len() == self.calls().len() && !sent.is_empty()).then_some(sent)
    }
}

/// Returns the text of a result, or `None` if it is more than text.
fn result_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Null => Some(String::new()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part["text"].as_str());
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}

/// Replays a response to an agent whose tools print the recorded results. Returns the results that the agent sends.
fn replay_exchange(exchange: &RecordedExchange, results: &SentResults) -> Option<SentResults> {
    let result_index = |id: &str| results.iter().position(|(other, _)| other == id);
    let script = exchange.calls().iter().fold(
        "case $TOOLQ_TOOL_USE_ID in ".to_owned(),
        |script, (id, _)| {
            let index = result_index(id).unwrap_or_default();
            format!("{script}'{id}') cat {index};; ")
        },
    ) + "esac";
    let names: BTreeSet<String> = exchange.calls().into_iter().map(|(_, name)| name).collect();
    let tool = json!({
        "input_schema": {"type": "object"}, "effect": "read", "max_output": "1MiB",
        "command": ["sh", "-c", script],
    });
    let mut tools: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), tool.clone()))
        .collect();
    let final_response = match exchange.api {
        "anthropic" => text_response("done"),
        _ => chat_response(json!({"role": "assistant", "content": "done"}), "stop"),
    };
    let api = ScriptedApi::new(&[ok_response(&exchange.response), final_response]);
    let agent = json!({"endpoint": api.url, "model": "m", "api": exchange.api, "tools": names});
    tools.insert(
        "the_agent".to_owned(),
        json!({"input_schema": {"type": "object"}, "agent": agent}),
    );
    let mut sandbox = CliSandbox::new().tools(&json!({"version": 1, "tools": tools}).to_string());
    for (index, (_, text)) in results.iter().enumerate() {
        sandbox = sandbox.file(&index.to_string(), format!("{text}\n"));
    }
    let ran = sandbox.run(&["call", "the_agent", "{}", "--no-log"]);
    let requests = api.requests();
    assert_eq!(requests.len(), 2, "{}: {}", exchange.location, ran.stderr);
    exchange.results_in(&requests[1].body)
}

/// An agent's next request carries the same results as that of the recorded client.
#[test]
fn results_are_sent_as_the_recorded_client_sent_them() {
    let mut mismatches = Vec::new();
    let mut count = 0;
    for exchange in load_exchanges() {
        let Some(mut results) = exchange.results_in(&exchange.next_request) else {
            continue;
        };
        let Some(mut sent) = replay_exchange(&exchange, &results) else {
            mismatches.push(format!("{}: no results were sent", exchange.location));
            continue;
        };
        // Clients may send results in the order in which calls finished; toolq sends them in call order.
        let call_ids: Vec<String> = exchange.calls().into_iter().map(|(id, _)| id).collect();
        assert!(
            sent.iter().map(|(id, _)| id).eq(&call_ids),
            "{}",
            exchange.location
        );
        sent.sort();
        results.sort();
        if sent != results {
            mismatches.push(format!(
                "{}: {sent:?}, recorded {results:?}",
                exchange.location
            ));
        }
        count += 1;
    }
    assert!(
        mismatches.is_empty(),
        "{}\n{}",
        mismatches.len(),
        mismatches.join("\n")
    );
    assert!(count > 0);
}

/// Runs each recording twice in one memory, with tools that all write: the first time calls each once, the second time none, and each
/// result is that of its own call.
#[test]
fn a_recording_that_runs_twice_calls_each_tool_once() {
    let dir = recordings_dir();
    let recorded = read_json(&dir.join("calls.json"));
    let recorded: Vec<(&String, &Value)> = recorded.as_object().unwrap().iter().collect();
    let next = AtomicUsize::new(0);
    let run_some = || {
        let mut outcomes = Vec::new();
        while let Some((name, summary)) = recorded.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run_twice(&dir.join(name), summary);
            outcomes.push(outcome.map_err(|why| format!("{name}: {why}")));
        }
        outcomes
    };
    let outcomes: Vec<Result<usize, String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run_some)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let failures: Vec<&String> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().err())
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {}: {failures:#?}",
        failures.len(),
        recorded.len()
    );
    let calls: usize = outcomes.iter().flatten().sum();
    println!("{calls} calls of {} recordings ran once", recorded.len());
    assert!(calls > 0);
}

/// How many recordings run at once.
const THREADS: usize = 3;
/// Each call prints what it was called with.
const ECHO: &str = r#"echo >> effects; printf '%s ' "$1"; cat"#;

/// Runs a recording twice. Returns how many calls it has that can run.
fn run_twice(file: &Path, summary: &Value) -> Result<usize, String> {
    let calls = summary["calls"].as_array().map_or(&[][..], Vec::as_slice);
    let names: BTreeSet<&str> = calls.iter().filter_map(|call| call[3].as_str()).collect();
    let tool = |name: &&str| {
        let tool = json!({
            "input_schema": {"type": "object"}, "effect": "write", "max_output": "1MiB",
            "command": ["sh", "-c", ECHO, "sh", name],
        });
        ((*name).to_owned(), tool)
    };
    let tools: serde_json::Map<String, Value> = names.iter().map(tool).collect();
    let sandbox = ResumeSandbox::new(&json!({"version": 1, "tools": tools}).to_string(), "");
    let file = file.to_str().unwrap();
    let planned = sandbox.run_toolq(&["plan", "-q", "--all", "--format", "json", file]);
    if planned.code != Some(0) {
        return Ok(0);
    }
    let turns = parse_json_lines(&planned.stdout);
    let planned: Vec<Value> = turns.iter().flat_map(planned_calls).collect();
    let effects_of_runs = [1, 2].map(|_| {
        let ran = sandbox.run_toolq(&["run", "-q", "--all", "--to", "results", file]);
        let results: Vec<Value> = parse_json_lines(&ran.stdout)
            .into_iter()
            .flat_map(|turn| turn.as_array().cloned().unwrap_or_default())
            .collect();
        check_results(&planned, &results).map(|()| sandbox.effects().len())
    });
    match effects_of_runs {
        [Ok(first), Ok(second)] if first == planned.len() && second == first => Ok(first),
        [Ok(first), Ok(second)] => Err(format!(
            "{} calls were planned, {first} ran, and {} ran again",
            planned.len(),
            second - first
        )),
        [Err(why), _] | [_, Err(why)] => Err(why),
    }
}

/// Each planned call has the result that its tool printed for it.
fn check_results(planned: &[Value], results: &[Value]) -> Result<(), String> {
    let mut ran = results.iter().filter(|result| result["status"] == "ok");
    for call in planned {
        let name = call["tool_name"].as_str().unwrap();
        let is_its_own = |result: &&Value| {
            let printed = result["content"].as_str()?.strip_prefix(name)?;
            let input: Value = serde_json::from_str(printed.trim_start()).ok()?;
            Some(result["tool_use_id"] == call["tool_use_id"] && input == call["input"])
        };
        // Those between are of calls that were sent twice.
        if !ran.any(|result| is_its_own(&result) == Some(true)) {
            return Err(format!("no result of its own for {call}"));
        }
    }
    Ok(())
}
