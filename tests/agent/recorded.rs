//! Recorded conversations played as the API: toolq's next request carries the recorded results as the recorded client
//! sent them.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment of the tests themselves"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use redact::Mask;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolq_core::check::Checker;
use toolq_core::json::Input;
use toolq_core::os::Environment;
use toolq_core::tools_file::load;
use toolq_core::types::{Answer, Call, CallRef, Event, Refused, Sink};
use toolq_engine::{Budgets, Delivery, Engine, EngineSettings, Resolver};

use crate::api::{Api, completion, ok, text};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");
/// Where they come from, and how many answers with calls that were answered well by texts alone each has.
const SOURCES: [(&str, usize); 4] = [
    ("pydantic-ai", 57),
    ("ruby-llm", 36),
    ("mirascope", 33),
    ("langchain-anthropic", 2),
];

/// An answer of a model, and what its recorded client sent next.
struct Pair {
    place: String,
    api: &'static str,
    answer: Value,
    next: Value,
}

/// A result as it is compared: whose, and its text.
type Sent = Vec<(String, String)>;

fn pairs(source: &str) -> Vec<Pair> {
    let folder = Path::new(DATA).join(source);
    let index = fs::read_to_string(folder.join("index.jsonl")).unwrap();
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
        let path = folder
            .join(line["dir"].as_str()?)
            .join(line[what].as_str()?);
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    };
    let pair = |((dir, n), line): (&(&str, u64), &&Value)| {
        let next = exchanges.get(&(*dir, n + 1))?;
        let api = match line["url"].as_str()? {
            url if url.ends_with("/messages") => "anthropic",
            url if url.ends_with("/chat/completions") => "openai-chat",
            _ => return None,
        };
        Some(Pair {
            place: format!("{source}/{dir}/{n}"),
            api,
            answer: read(line, "response")?,
            next: read(next, "request")?,
        })
    };
    exchanges.iter().filter_map(pair).collect()
}

impl Pair {
    /// The ids and names of the calls.
    fn calls(&self) -> Vec<(String, String)> {
        let (list, name) = match self.api {
            "anthropic" => (&self.answer["content"], "/name"),
            _ => (
                &self.answer["choices"][0]["message"]["tool_calls"],
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

    /// The results that a request carries for these calls, in its order; none where one is an error or missing.
    fn sent(&self, request: &Value) -> Option<Sent> {
        let messages = request["messages"].as_array()?;
        let mut sent = Sent::new();
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
                            words(&block["content"])?,
                        ));
                    }
                }
                _ if message["role"] == "tool" => {
                    let id = message["tool_call_id"].as_str()?.to_owned();
                    sent.push((id, words(&message["content"])?));
                }
                _ => {}
            }
        }
        let ids: BTreeSet<String> = self.calls().into_iter().map(|(id, _)| id).collect();
        sent.retain(|(id, _)| ids.contains(id));
        (sent.len() == self.calls().len() && !sent.is_empty()).then_some(sent)
    }
}

/// The text of a result; none where it is more than text.
fn words(content: &Value) -> Option<String> {
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

struct Nobody;

impl Sink for Nobody {
    fn tell(&mut self, _: &[Event<'_>]) -> Result<(), Refused> {
        Ok(())
    }
}

impl Delivery for Nobody {
    fn deliver(&mut self, _: &CallRef, _: Answer, _: &mut dyn Sink) {}
    fn drained(&mut self, _: &mut dyn Sink) {}
}

/// Plays the answer to an agent whose tools print what the recording has, and gives the results that it sends.
fn play(
    pair: &Pair,
    results: &Sent,
    folder: &Path,
    runtime: &tokio::runtime::Runtime,
) -> Option<Sent> {
    for (at, (_, text)) in results.iter().enumerate() {
        fs::write(folder.join(at.to_string()), format!("{text}\n")).unwrap();
    }
    let of = |id: &str| results.iter().position(|(other, _)| other == id);
    let script = pair.calls().iter().fold(
        "case $TOOLQ_TOOL_USE_ID in ".to_owned(),
        |script, (id, _)| format!("{script}'{id}') cat {};; ", of(id).unwrap_or_default()),
    ) + "esac";
    let mut tools = serde_json::Map::new();
    let names: BTreeSet<String> = pair.calls().into_iter().map(|(_, name)| name).collect();
    for name in &names {
        let tool = json!({
            "input_schema": {"type": "object"}, "effect": "read", "max_output": "1MiB",
            "command": ["sh", "-c", script],
        });
        tools.insert(name.clone(), tool);
    }
    let end = match pair.api {
        "anthropic" => text("done"),
        _ => completion(json!({"role": "assistant", "content": "done"}), "stop"),
    };
    let api = Api::new(&[ok(&pair.answer), end]);
    let agent = json!({"endpoint": api.url, "model": "m", "api": pair.api, "tools": names});
    tools.insert(
        "the_agent".to_owned(),
        json!({"input_schema": {"type": "object"}, "agent": agent}),
    );
    let file = json!({"version": 1, "tools": tools}).to_string();
    let tools = std::sync::Arc::new(load(&file, folder, folder).tools?);
    let call = Call {
        turn: 0,
        position: 0,
        id: "t".to_owned(),
        name: "the_agent".to_owned(),
        input: Ok(Input::empty()),
        within: None,
    };
    let checked = Checker::new(std::sync::Arc::clone(&tools)).call(call);
    let path = std::env::var_os("PATH").unwrap();
    let environment = [("PATH".into(), path)].into_iter().collect::<Environment>();
    let mut engine = Engine::new(EngineSettings {
        jobs: tools.concurrency,
        tools,
        outputs: None,
        supervisor: None,
        environment: std::sync::Arc::new(environment),
        resolver: Resolver::system(),
        mask: std::sync::Arc::new(Mask::default()),
        task: "task".to_owned(),
        budgets: Budgets::default(),
        memory: None,
    });
    runtime.block_on(engine.turn(0, vec![checked], &mut Nobody, &mut Nobody));
    let heard = api.heard();
    assert_eq!(heard.len(), 2, "{}", pair.place);
    pair.sent(&heard[1].body)
}

#[test]
fn the_next_request_is_that_of_the_recorded_client() {
    if !Path::new(DATA).exists() {
        #[expect(clippy::print_stdout, reason = "a test that says why it was skipped")]
        {
            println!("skipped: the recorded data are not beside this repository");
        }
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut wrong, mut counts) = (Vec::new(), Vec::new());
    for (source, _) in SOURCES {
        let mut played = 0;
        for pair in pairs(source) {
            let Some(results) = pair.sent(&pair.next) else {
                continue;
            };
            let folder = TempDir::new().unwrap();
            let path: PathBuf = folder.path().into();
            let Some(mut sent) = play(&pair, &results, &path, &runtime) else {
                wrong.push(format!("{}: nothing was sent", pair.place));
                continue;
            };
            // Clients sent results in the order in which calls ended; toolq sends them as they were asked.
            let asked: Vec<String> = pair.calls().into_iter().map(|(id, _)| id).collect();
            assert!(sent.iter().map(|(id, _)| id).eq(&asked), "{}", pair.place);
            let mut results = results;
            sent.sort();
            results.sort();
            if sent != results {
                wrong.push(format!("{}: {sent:?}, recorded {results:?}", pair.place));
            }
            played += 1;
        }
        counts.push((source, played));
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(counts, SOURCES);
}
