//! Replays recorded conversations as the API. toolq's next request must carry the same results as that of the recorded
//! client.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment of the tests themselves"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redact::Mask;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::tools_file::parse_tools_file;
use toolq_core::types::{Call, CallAnswer, CallRef, EmitError, Event, EventSink};
use toolq_engine::{AnswerDelivery, BudgetLimits, Engine, EngineSettings, Resolver};

use crate::support::recorded_data::{DATA_DIR, recorded_data};
use crate::support::scripted_api::{ScriptedApi, chat_response, ok_response, text_response};

/// The sources of recordings, and how many usable responses each has: with calls whose results were all successful texts.
const SOURCES: [(&str, usize); 4] = [
    ("pydantic-ai", 57),
    ("ruby-llm", 36),
    ("mirascope", 33),
    ("langchain-anthropic", 2),
];

/// A model's response, and the request that its recorded client sent next.
struct RecordedExchange {
    location: String,
    api: &'static str,
    response: Value,
    next_request: Value,
}

/// Results as they are compared: id of the call and text.
type SentResults = Vec<(String, String)>;

fn load_exchanges(source: &str) -> Vec<RecordedExchange> {
    let source_dir = Path::new(DATA_DIR).join(source);
    let index = fs::read_to_string(source_dir.join("index.jsonl")).unwrap();
    let lines: Vec<Value> = index
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut exchanges: BTreeMap<(&str, u64), &Value> = BTreeMap::new();
    for line in &lines {
        let key = (line["dir"].as_str().unwrap(), line["n"].as_u64().unwrap());
        exchanges.insert(key, line);
    }
    let read = |line: &Value, what: &str| -> Option<Value> {
        let path = source_dir
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
            location: format!("{source}/{dir}/{n}"),
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

struct NullSink;

impl EventSink for NullSink {
    fn emit(&mut self, _: &[Event<'_>]) -> Result<(), EmitError> {
        Ok(())
    }
}

impl AnswerDelivery for NullSink {
    fn deliver(&mut self, _: &Arc<CallRef>, _: CallAnswer, _: &mut dyn EventSink) {}
    fn finish_turn(&mut self, _: &mut dyn EventSink) {}
}

/// Replays a response to an agent whose tools print the recorded results. Returns the results that the agent sends.
fn replay_exchange(
    exchange: &RecordedExchange,
    results: &SentResults,
    dir: &Path,
    runtime: &tokio::runtime::Runtime,
) -> Option<SentResults> {
    for (at, (_, text)) in results.iter().enumerate() {
        fs::write(dir.join(at.to_string()), format!("{text}\n")).unwrap();
    }
    let result_index = |id: &str| results.iter().position(|(other, _)| other == id);
    let script = exchange.calls().iter().fold(
        "case $TOOLQ_TOOL_USE_ID in ".to_owned(),
        |script, (id, _)| {
            format!(
                "{script}'{id}') cat {};; ",
                result_index(id).unwrap_or_default()
            )
        },
    ) + "esac";
    let mut tools = serde_json::Map::new();
    let names: BTreeSet<String> = exchange.calls().into_iter().map(|(_, name)| name).collect();
    for name in &names {
        let tool = json!({
            "input_schema": {"type": "object"}, "effect": "read", "max_output": "1MiB",
            "command": ["sh", "-c", script],
        });
        tools.insert(name.clone(), tool);
    }
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
    let file = json!({"version": 1, "tools": tools}).to_string();
    let tools = Arc::new(parse_tools_file(&file, dir, dir).tools?);
    let call = Call {
        turn: 0,
        position: 0,
        id: "t".to_owned(),
        name: "the_agent".into(),
        input: Ok(Input::empty()),
        parent: None,
    };
    let checked = CallChecker::new(Arc::clone(&tools)).check_call(call);
    let path = std::env::var_os("PATH").unwrap();
    let environment = [("PATH".into(), path)].into_iter().collect::<Environment>();
    let mut engine = Engine::new(EngineSettings {
        host_tools: None,
        approver: None,
        jobs: tools.concurrency,
        tools,
        output_dir: None,
        log_files: Vec::new(),
        supervisor_program: None,
        reaper_pools: None,
        confinement: None,
        environment: Arc::new(environment),
        resolver: Resolver::system(),
        mask: Arc::new(Mask::default()),
        trace: None,
        task_id: "task".to_owned(),
        budget_limits: BudgetLimits::default(),
        agent_history: None,
        logged_results: None,
    });
    runtime.block_on(engine.run_turn(0, vec![checked], &mut NullSink, &mut NullSink));
    let requests = api.requests();
    assert_eq!(requests.len(), 2, "{}", exchange.location);
    exchange.results_in(&requests[1].body)
}

#[test]
fn results_are_sent_as_the_recorded_client_sent_them() {
    if recorded_data().is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut mismatches, mut counts) = (Vec::new(), Vec::new());
    for (source, _) in SOURCES {
        let mut exchange_count = 0;
        for exchange in load_exchanges(source) {
            let Some(results) = exchange.results_in(&exchange.next_request) else {
                continue;
            };
            let temp_dir = TempDir::new().unwrap();
            let path: PathBuf = temp_dir.path().into();
            let Some(mut sent) = replay_exchange(&exchange, &results, &path, &runtime) else {
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
            let mut results = results;
            sent.sort();
            results.sort();
            if sent != results {
                mismatches.push(format!(
                    "{}: {sent:?}, recorded {results:?}",
                    exchange.location
                ));
            }
            exchange_count += 1;
        }
        counts.push((source, exchange_count));
    }
    assert!(
        mismatches.is_empty(),
        "{}\n{}",
        mismatches.len(),
        mismatches.join("\n")
    );
    assert_eq!(counts, SOURCES);
}
