//! The library as an embedder uses it: messages in, results, plans and events out.

use std::future::{Future as _, IntoFuture as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use toolq_embed::{DeclarationFormat, Error, Event, Status, Toolq, ToolqBuilder};

use crate::support::examples::find_example;
use crate::support::repository_root;

const TOOLS: &str = r#"
version: 1
tools:
  look:
    input_schema: {type: object, properties: {text: {type: string}}, required: [text], additionalProperties: false}
    effect: read
    command: [sh, -c, 'printf "%s" "$1"', sh, "{text}"]
  fail:
    input_schema: {type: object}
    effect: read
    command: [sh, -c, "echo broken >&2; exit 3"]
  hang:
    input_schema: {type: object}
    effect: write
    command: [sh, -c, "echo $$ > pid; sleep 1000"]
  pay:
    input_schema: {type: object}
    effect: write
    command: [sh, -c, "echo paid >> payments"]
"#;

struct EmbedSandbox(TempDir);

impl EmbedSandbox {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().display();
        std::fs::write(
            dir.path().join("tools.yaml"),
            TOOLS.replacen("version: 1", &format!("version: 1\nroot: {root}"), 1),
        )
        .unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn builder(&self) -> ToolqBuilder {
        Toolq::builder().tools_file(self.path("tools.yaml"))
    }
}

fn message(calls: &[(&str, &str, Value)]) -> String {
    let blocks = calls.iter().map(
        |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
    );
    json!({"role": "assistant", "content": blocks.collect::<Vec<_>>()}).to_string()
}

#[tokio::test]
async fn every_call_gets_its_result_in_order() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let calls = message(&[
        ("a", "look", json!({"text": "one"})),
        ("b", "fail", json!({})),
        ("c", "unknown", json!({})),
        ("d", "look", json!({"text": "two"})),
    ]);
    let reply = toolq.answer(&calls).await.unwrap();

    let ids: Vec<&str> = reply
        .results
        .iter()
        .map(|result| result.tool_use_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let errors: Vec<bool> = reply.results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, true, true, false]);
    assert!(reply.has_errors());
    assert_eq!(reply.results[0].text, "one");
    let statuses: Vec<&str> = reply
        .results
        .iter()
        .map(|result| result.status.as_str())
        .collect();
    assert_eq!(statuses, ["ok", "failed", "unknown_tool", "ok"]);

    let json: Value = serde_json::from_str(reply.as_json()).unwrap();
    assert_eq!(json["role"], "user");
    assert_eq!(json["content"][3]["content"], "two");
}

#[tokio::test]
async fn a_reply_has_the_dialect_of_its_message() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let chat = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{\"text\":\"hi\"}"}}
    ]});
    let reply = toolq.answer(chat.to_string()).await.unwrap();
    let json: Value = serde_json::from_str(reply.as_json()).unwrap();
    assert_eq!(
        json,
        json!([{"role": "tool", "tool_call_id": "a", "content": "hi"}])
    );
}

#[tokio::test]
async fn a_plan_runs_nothing() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox
        .builder()
        .concurrency(NonZeroUsize::new(2).unwrap())
        .build()
        .unwrap();
    let calls = message(&[
        ("a", "look", json!({"text": "one"})),
        ("b", "look", json!({"text": "two"})),
        ("c", "hang", json!({})),
        ("d", "look", json!({})),
    ]);
    let plan = toolq.plan(&calls).unwrap();
    let turn = &plan.turns[0];
    assert_eq!(turn.batches, [vec!["a", "b"], vec!["c"]]);
    assert_eq!(turn.rejected[0].tool_use_id, "d");
    assert_eq!(turn.rejected[0].reason, "invalid_input");
    assert!(plan.to_string().contains("2 in parallel"), "{plan}");
    assert!(serde_json::from_str::<Value>(plan.as_json()).is_ok());
    assert!(!sandbox.path("pid").exists());
}

#[tokio::test]
async fn events_arrive_in_order() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let mut seen = Vec::new();
    toolq
        .answer(message(&[("a", "look", json!({"text": "one"}))]))
        .events(|event| {
            seen.push(match event {
                Event::Queued { call } => format!("queued {}", call.tool_use_id),
                Event::Started { attempt, .. } => format!("started {attempt}"),
                Event::Finished { status, .. } => format!("finished {status}"),
                Event::TurnFinished { turn } => format!("turn {turn}"),
                other => format!("{other:?}"),
            });
        })
        .await
        .unwrap();
    assert_eq!(seen, ["queued a", "started 1", "finished ok", "turn 0"]);
}

/// A host that acts on an event may end right then.
#[tokio::test]
async fn an_event_is_on_record_before_the_callback_has_it() {
    let sandbox = EmbedSandbox::new();
    let log = sandbox.path("session.jsonl");
    let toolq = sandbox.builder().log(&log).build().unwrap();
    let mut seen = Vec::new();
    let calls = [("a", "pay", json!({})), ("b", "nobody", json!({}))];
    toolq
        .answer(message(&calls))
        .events(|event| {
            let records = std::fs::read_to_string(&log).unwrap();
            let last = match event {
                Event::Queued { .. } => "tool_call",
                Event::Started { .. } => "tool_start",
                Event::Finished { .. } => "tool_",
                _ => return,
            };
            let last_record = records.lines().last().unwrap();
            seen.push(last_record.contains(&format!(r#""type":"{last}"#)));
        })
        .await
        .unwrap();
    assert_eq!(seen, [true; 5]);
}

#[test]
fn every_problem_of_a_tools_file_is_reported_with_its_position() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("tools.yaml");
    std::fs::write(
        &path,
        "version: 1\ntools:\n  a: {comand: [ls]}\n  b:\n    timeout: soon\n    command: [ls]\n",
    )
    .unwrap();
    let error = Toolq::builder().tools_file(&path).build().err().unwrap();
    let Error::InvalidToolsFile { problems, .. } = &error else {
        panic!("{error}");
    };
    assert!(problems.len() >= 2, "{error}");
    assert_eq!((problems[0].line, problems[0].column), (3, 3), "{error}");
    assert!(error.to_string().contains("did you mean"), "{error}");
    assert!(matches!(Toolq::builder().build(), Err(Error::NoToolsFile)));
}

#[tokio::test]
async fn a_message_that_is_not_json_is_an_error_and_nothing_is_lost() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let error = toolq.answer("not json").await.unwrap_err();
    assert!(matches!(error, Error::InvalidMessage { .. }), "{error}");
    assert!(error.to_string().contains("message:1:2"), "{error}");
    let reply = toolq
        .answer(message(&[("a", "look", json!({"text": "after"}))]))
        .await
        .unwrap();
    assert_eq!(reply.results[0].text, "after");
    assert_eq!(toolq.answer(message(&[])).await.unwrap().as_json(), "");
}

#[tokio::test]
async fn messages_of_one_toolq_share_a_log() {
    let sandbox = EmbedSandbox::new();
    let log = sandbox.path("session.jsonl");
    let toolq = sandbox.builder().log(&log).build().unwrap();
    for text in ["one", "two"] {
        let calls = message(&[(text, "look", json!({"text": text}))]);
        toolq.answer(calls).await.unwrap();
    }
    toolq.close().unwrap();
    let verify = || toolq_log::verify_log(&log, std::fs::File::open(&log).unwrap());
    // A process that another test is starting has inherited the log, until it executes its program.
    while matches!(verify(), Err(toolq_log::LogError::InUse(_))) {
        std::thread::yield_now();
    }
    verify().unwrap();
    let turns = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["type"] == "tool_result")
        .count();
    assert_eq!(turns, 2);
    // The session was closed, so another one can be appended to the log.
    sandbox.builder().log(&log).build().unwrap();
}

/// As with `toolq run`: the log of a run that was killed says that the call may have taken effect.
#[tokio::test]
async fn a_call_that_started_in_the_log_given_as_a_message_is_in_doubt() {
    let sandbox = EmbedSandbox::new();
    let log = sandbox.path("session.jsonl");
    let toolq = sandbox.builder().log(&log).build().unwrap();
    let calls = message(&[("a", "pay", json!({})), ("b", "pay", json!({}))]);
    toolq.answer(&calls).await.unwrap();
    toolq.close().unwrap();
    let payments = std::fs::read_to_string(sandbox.path("payments")).unwrap();
    assert_eq!(payments, "paid\npaid\n");

    let records = std::fs::read_to_string(&log).unwrap();
    let start = records.find("\"tool_start\"").unwrap();
    let end = start + records[start..].find('\n').unwrap() + 1;
    let toolq = sandbox.builder().build().unwrap();
    let reply = toolq.answer(&records[..end]).await.unwrap();
    let statuses: Vec<&Status> = reply.results.iter().map(|result| &result.status).collect();
    assert_eq!(statuses, [&Status::InDoubt, &Status::NotExecuted]);
    let again = std::fs::read_to_string(sandbox.path("payments")).unwrap();
    assert_eq!(again, payments);
}

/// Begins to answer a message, and drops the answer once its call is running.
async fn drop_running_answer(sandbox: &EmbedSandbox, toolq: &Toolq) {
    let started = async {
        while !is_pid_written(&sandbox.path("pid")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = toolq.answer(message(&[("a", "hang", json!({}))])) => panic!("the call must hang"),
        () = started => {}
    }
}

/// A user of the library may drop an answer that is in progress.
#[tokio::test]
async fn dropping_an_answer_kills_its_programs() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    drop_running_answer(&sandbox, &toolq).await;
    let pid = std::fs::read_to_string(sandbox.path("pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    while is_running(&process) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let calls = message(&[("b", "look", json!({"text": "after"}))]);
    assert_eq!(toolq.answer(calls).await.unwrap().results[0].text, "after");
}

/// The log would otherwise have different calls under the same numbers.
#[tokio::test]
async fn a_message_after_a_dropped_answer_has_turns_of_its_own() {
    let sandbox = EmbedSandbox::new();
    let log = sandbox.path("session.jsonl");
    let toolq = sandbox.builder().log(&log).build().unwrap();
    drop_running_answer(&sandbox, &toolq).await;
    let calls = message(&[("b", "look", json!({"text": "after"}))]);
    toolq.answer(calls).await.unwrap();
    toolq.close().unwrap();
    let records = std::fs::read_to_string(&log).unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = records.filter(|record| record["type"] == "tool_call");
    let turns: Vec<(Value, Value)> = calls
        .map(|record| record["metadata"].clone())
        .map(|call| (call["tool_use_id"].clone(), call["turn"].clone()))
        .collect();
    assert_eq!(turns, [(json!("a"), json!(0)), (json!("b"), json!(1))]);
}

fn is_pid_written(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|pid| pid.ends_with('\n'))
}

/// Returns whether a process exists and isn't a zombie.
fn is_running(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_streamed_call_starts_before_its_message_ends() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let (mut writer, reader) = tokio::io::duplex(64 << 10);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let answer = tokio::spawn(async move {
        let request = toolq.answer_stream(reader).events(move |event| {
            seen.lock().unwrap().push(event.clone());
        });
        request.await.unwrap()
    });
    for event in [
        json!({"type": "message_start", "message": {"role": "assistant"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"text\":\"early\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
    ] {
        write_event(&mut writer, &event).await;
    }
    let is_finished = |event: &Event| matches!(event, Event::Finished { .. });
    while !events.lock().unwrap().iter().any(is_finished) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    write_event(
        &mut writer,
        &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
    )
    .await;
    write_event(&mut writer, &json!({"type": "message_stop"})).await;
    drop(writer);
    let reply = answer.await.unwrap();
    assert_eq!(reply.results[0].text, "early");
}

async fn write_event(writer: &mut tokio::io::DuplexStream, event: &Value) {
    let kind = event["type"].as_str().unwrap();
    let text = format!("event: {kind}\ndata: {event}\n\n");
    writer.write_all(text.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_breaks_off_keeps_its_results() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let unfinished = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":",
        "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"look\",\"input\":{}}}\n\n",
    );
    let reply = toolq.answer_stream(unfinished.as_bytes()).await.unwrap();
    assert_eq!(reply.results.len(), 1);
    assert!(reply.results[0].is_error);
    assert!(reply.problem.unwrap().contains("stream"));
    let error = toolq.answer_stream(&b"not a stream"[..]).await;
    assert!(error.is_err() || error.unwrap().results.is_empty());
}

#[test]
fn the_example_answers_the_fixture() {
    let output = Command::new(find_example("embed"))
        .args(["tools.yaml", "fixtures/response.json"])
        .current_dir(repository_root())
        .output()
        .unwrap();
    assert!(output.status.success());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["content"].as_array().unwrap().len(), 7);
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(progress.contains("toolu_01: started"), "{progress}");
    assert!(progress.contains("toolu_07: unknown_tool"), "{progress}");
}

#[test]
fn each_runtime_runs_its_own_commands() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    for text in ["one", "two", "three"] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let calls = message(&[("a", "look", json!({"text": text}))]);
        let reply = runtime.block_on(toolq.answer(calls).into_future()).unwrap();
        assert_eq!(reply.results[0].text, text);
    }
}

#[test]
fn without_a_runtime_nothing_is_answered() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let calls = message(&[("a", "look", json!({"text": "one"}))]);
    let mut answer = std::pin::pin!(toolq.answer(calls).into_future());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let result = answer.as_mut().poll(&mut context);
    assert!(matches!(
        result,
        std::task::Poll::Ready(Err(Error::NoRuntime))
    ));
}

#[tokio::test]
async fn declarations_are_those_of_the_command_line() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let declared = toolq.declarations(DeclarationFormat::Anthropic).await;
    let printed = Command::new(env!("CARGO_BIN_EXE_toolq"))
        .args(["tools", "--format", "anthropic", "-c"])
        .arg(sandbox.path("tools.yaml"))
        .output()
        .unwrap();
    assert_eq!(
        declared.unwrap(),
        String::from_utf8(printed.stdout).unwrap().trim_end()
    );
}

#[tokio::test]
async fn a_stream_given_as_a_message_says_what_to_call() {
    let sandbox = EmbedSandbox::new();
    let toolq = sandbox.builder().build().unwrap();
    let error = toolq.answer("event: message_start\n").await.unwrap_err();
    assert!(error.to_string().contains("answer_stream"), "{error}");
    let error = toolq.answer(" \n").await.unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
}
