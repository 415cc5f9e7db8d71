//! Tools that the host process serves.

use std::fs;

use serde_json::{Value, json};

use crate::follow_control::host::{Host, SECRET};
use crate::support::parse_json_lines;

const TOOLS: &str = r"
version: 1
secrets: [TOKEN]
defaults: {timeout: 60s}
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
";

/// Returns the types of the records about one call, in order.
fn records_of(log: &str, tool_use_id: &str) -> Vec<String> {
    let records = parse_json_lines(log);
    let records = records
        .iter()
        .filter(|record| record["metadata"]["tool_use_id"] == tool_use_id);
    records
        .map(|record| record["type"].as_str().unwrap().to_owned())
        .collect()
}

/// Reads run together and a write alone, inputs are checked and coerced, and each call is on record and masked.
#[test]
fn host_calls_are_like_any_others() {
    let mut host = Host::start(TOOLS, &[]);
    let count =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    host.announce(json!({
        "read": {"effect": "read", "input_schema": count},
        "write": {},
    }));
    host.turn(
        "a",
        &[
            ("read", json!({"n": "3"})),
            ("read", json!({})),
            ("look", json!({})),
            ("read", json!({"n": 4})),
            ("write", json!({})),
            ("read", json!({"n": 5})),
        ],
    );
    // Those that run together come in any order.
    let mut reads = [host.read_type("call"), host.read_type("call")];
    reads.sort_by_key(|call| call["call"]["tool_use_id"].to_string());
    let [one, other] = reads;
    assert_eq!(one["call"]["input"], json!({"n": 3}), "{one}");
    assert_eq!(one["call"]["effect"], "read", "{one}");
    assert_eq!(one["call"]["timeout_ms"], 60_000, "{one}");
    assert_eq!(
        (&one["id"], &other["call"]["tool_use_id"]),
        (&json!("a"), &json!("t3"))
    );
    host.answer_call(&other, &json!("four"));
    host.answer_call(&one, &json!(format!("three {SECRET}")));
    let write = host.read_type("call");
    assert_eq!(write["call"]["tool_name"], "write", "{write}");
    // Nothing else is started until the write has its result.
    host.send(r#"{"type":"cancel","id":"nobody"}"#);
    host.read_type("error");
    host.answer_call(&write, &json!("written"));
    let last = host.read_type("call");
    host.answer_call(&last, &json!("five"));
    let answer = host.read_type("answer");
    let results: Vec<(&str, bool)> = answer["message"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            (
                result["content"].as_str().unwrap(),
                result["is_error"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(results[0], ("three [masked]", false));
    assert!(results[1].0.contains('n') && results[1].1, "{results:?}");
    assert_eq!(
        &results[2..],
        [
            ("seen", false),
            ("four", false),
            ("written", false),
            ("five", false)
        ]
    );
    let log = fs::read_to_string(host.dir.join("log.jsonl")).unwrap();
    for id in ["t0", "t3", "t4", "t5"] {
        assert_eq!(
            records_of(&log, id),
            ["tool_call", "tool_start", "tool_result"],
            "{log}"
        );
    }
    assert!(!log.contains(SECRET));
    assert_eq!(host.end().code, 3);
}

/// What a result can have, and what the model reads then.
#[test]
fn results_have_text_blocks_or_json() {
    let mut host = Host::start("", &[]);
    host.announce(json!({
        "text": {"effect": "read"},
        "blocks": {"effect": "read", "output": "content"},
        "json": {"effect": "read", "output": "json", "output_schema": {"type": "object"}},
    }));
    let pixel = "iVBORw0KGgo=";
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}});
    let text = json!({"type": "text", "text": "seen"});
    for (tool, content, expected) in [
        ("text", json!("plain"), json!("plain")),
        ("text", json!(""), json!("(no output)")),
        ("text", Value::Null, json!("(no output)")),
        ("text", json!([text, image]), json!([text, image])),
        (
            "blocks",
            json!("plain"),
            json!([{"type": "text", "text": "plain"}]),
        ),
        ("blocks", json!([image]), json!([image])),
        ("json", json!({"a": 1.50}), json!(r#"{"a":1.5}"#)),
        ("json", json!(r#"{"a": 2}"#), json!(r#"{"a":2}"#)),
    ] {
        host.turn("a", &[(tool, json!({}))]);
        let call = host.read_type("call");
        host.answer_call(&call, &content);
        let answer = host.read_type("answer");
        let result = &answer["message"][0];
        assert_eq!(
            (&result["content"], &result["is_error"]),
            (&expected, &json!(false)),
            "{tool}"
        );
    }
    for (tool, content, words) in [
        (
            "text",
            json!({"a": 1}),
            "a text or a list of content blocks",
        ),
        ("blocks", json!([{"type": "text"}]), "content block"),
        ("json", json!("no json"), "JSON"),
        ("json", json!([1]), "object"),
    ] {
        host.turn("a", &[(tool, json!({}))]);
        let call = host.read_type("call");
        host.answer_call(&call, &content);
        let answer = host.read_type("answer");
        let result = &answer["message"][0];
        let text = result["content"].as_str().unwrap();
        assert!(
            result["is_error"] == true && text.contains(words),
            "{tool}: {text}"
        );
    }
    host.turn("a", &[("text", json!({}))]);
    host.read_type("call");
    host.send(r#"{"type":"result","id":"a","tool_use_id":"t0","content":[{"type":"text","text":"no such city"}],"is_error":true}"#);
    let answer = host.read_type("answer");
    let text = answer["message"][0]["content"].as_str().unwrap();
    assert!(
        text.contains("no such city") && answer["message"][0]["is_error"] == true,
        "{text}"
    );
    assert_eq!(host.end().code, 0);
}

/// A call that times out is answered; if it writes, it is in doubt. What comes later counts for nothing.
#[test]
fn late_results_are_dropped() {
    let mut host = Host::start("", &[]);
    host.announce(json!({
        "read": {"effect": "read", "timeout": "100ms", "retry": {"times": 1, "on": ["timeout"]}},
        "write": {"timeout": "100ms"},
    }));
    host.turn("a", &[("read", json!({}))]);
    let first = host.read_type("call");
    let canceled = host.read_type("cancel_call");
    assert_eq!(
        canceled,
        json!({"type": "cancel_call", "id": "a", "number": first["number"], "tool_use_id": "t0"})
    );
    let second = host.read_type("call");
    assert_eq!(
        (&first["call"]["attempt"], &second["call"]["attempt"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        first["call"]["idempotency_key"],
        second["call"]["idempotency_key"]
    );
    host.answer_call(&first, &json!("late"));
    host.answer_call(&second, &json!("in time"));
    assert_eq!(host.read_type("answer")["message"][0]["content"], "in time");

    host.turn("a", &[("write", json!({}))]);
    let write = host.read_type("call");
    host.read_type("cancel_call");
    let answer = host.read_type("answer");
    let text = answer["message"][0]["content"].as_str().unwrap();
    assert!(
        text.starts_with("In doubt: write may have done its work"),
        "{text}"
    );
    // An error would be taken for the end of the turn. The second time, nothing was given up.
    host.answer_call(&write, &json!("late"));
    host.answer_call(&write, &json!("again"));
    assert_refused(&mut host, "t0");
    assert_eq!(host.end().code, 3);
}

fn assert_refused(host: &mut Host, id: &str) {
    let message = host.read_type("error")["error"]["message"].to_string();
    let expected = format!("no call {id} of this turn waits for a result");
    assert!(message.contains(&expected), "{message}");
}

#[test]
fn a_canceled_turn_gives_its_host_calls_up() {
    let mut host = Host::start("", &[]);
    host.announce(json!({"read": {"effect": "read"}, "write": {}}));
    host.turn("a", &[("read", json!({})), ("write", json!({}))]);
    let read = host.read_type("call");
    host.send(r#"{"type":"cancel","id":"a"}"#);
    assert_eq!(host.read_type("cancel_call")["number"], read["number"]);
    let answer = host.read_type("answer");
    let errors: Vec<&Value> = answer["message"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["is_error"])
        .collect();
    assert_eq!(errors, [true, true]);
    assert_eq!(host.end().code, 0);
}

/// Without its stdin, toolq can't be answered any more.
#[test]
fn calls_end_with_stdin() {
    let mut host = Host::start("", &[]);
    host.announce(json!({"read": {"effect": "read"}, "write": {}}));
    host.turn("a", &[("read", json!({})), ("write", json!({}))]);
    let read = host.read_type("call");
    host.answer_call(&read, &json!("x"));
    let write = host.read_type("call");
    assert_eq!(write["call"]["tool_name"], "write", "{write}");
    host.turn("b", &[("write", json!({}))]);
    let end = host.end();
    assert_eq!(end.code, 3);
    let answers: Vec<String> = end.lines.iter().map(Value::to_string).collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(
        answers[0].contains("In doubt") && answers[0].contains("closed its end of the pipe"),
        "{answers:?}"
    );
    let within = "may have done its work: the host process sent no complete response";
    assert!(answers[0].contains(within), "{answers:?}");
    assert!(
        answers[1].contains("The host process could not be reached"),
        "{answers:?}"
    );
}

/// A call that needs an approval is sent to the host only after the yes.
#[test]
fn host_calls_wait_for_their_approval() {
    let mut host = Host::start("", &[]);
    host.announce(json!({"pay": {"approve": true}}));
    host.turn("a", &[("pay", json!({})), ("pay", json!({}))]);
    let asked = host.read_type("approval");
    assert_eq!(asked["call"]["runs"], json!({"host": "pay"}), "{asked}");
    host.send(r#"{"type":"approve","id":"a","question":1,"decision":"no"}"#);
    host.read_type("approval");
    host.send(r#"{"type":"approve","id":"a","question":2,"decision":"yes"}"#);
    let call = host.read_type("call");
    assert_eq!(call["call"]["tool_use_id"], "t1");
    host.answer_call(&call, &json!("paid"));
    let answer = host.read_type("answer");
    assert!(
        answer["message"][0]["content"]
            .as_str()
            .unwrap()
            .starts_with("Denied"),
        "{answer}"
    );
    assert_eq!(answer["message"][1]["content"], "paid");
    let log = fs::read_to_string(host.dir.join("log.jsonl")).unwrap();
    assert_eq!(
        records_of(&log, "t1"),
        ["tool_call", "approval", "tool_start", "tool_result"]
    );
    assert_eq!(host.end().code, 0);
}
