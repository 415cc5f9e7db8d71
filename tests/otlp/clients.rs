//! `serve --otlp`: calls of clients that are in a trace of their own.

use serde_json::{Value, json};

use crate::receiver::{OtlpReceiver, ReceivedSpan};
use crate::support::CliSandbox;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TOOLS: &str = r#"
version: 1
tools:
  env: {input_schema: {type: object}, effect: read, command: [sh, -c, "echo $TRACEPARENT $TRACESTATE"]}
"#;

/// Calls `env` with each `_meta`, and returns the texts of the answers. `receiver` gets the spans.
fn call_with(metas: &[Value], receiver: &OtlpReceiver) -> Vec<String> {
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 100, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    let call = |(id, meta): (usize, &Value)| {
        let params = json!({"name": "env", "arguments": {}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    lines.extend(metas.iter().enumerate().map(call));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let input = lines.join("\n") + "\n";
    // The input ends once there is an answer to each request.
    let script = format!(
        "touch out; {{ cat in; until [ \"$(wc -l < out)\" -eq {} ]; do sleep 0.05; done; }} | \"$TOOLQ\" serve -q --otlp {} > out && cat out",
        metas.len() + 1,
        receiver.url
    );
    let sandbox = CliSandbox::new().tools(TOOLS).file("in", input);
    let ran = sandbox.run_shell(&script).assert_exit(0);
    let answers: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = |id: usize| {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        text.trim().to_owned()
    };
    (0..metas.len()).map(text).collect()
}

/// Returns trace, parent and state of the span with this id.
fn place<'a>(spans: &'a [ReceivedSpan], id: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let span = spans.iter().find(|span| span.span_id == id)?;
    Some((&span.trace_id, &span.parent_id, &span.trace_state))
}

#[test]
fn a_call_is_in_the_trace_of_its_client() {
    let receiver = OtlpReceiver::new();
    let metas = [
        json!({"traceparent": PARENT, "tracestate": "vendor=a"}),
        json!({"traceparent": PARENT.replace("-01", "-00")}),
        json!({"traceparent": 7, "tracestate": []}),
        json!({}),
    ];
    let texts = call_with(&metas, &receiver);
    let spans = receiver.spans();
    let root = spans.iter().find(|span| span.name == "toolq").unwrap();
    let own_trace = &*root.trace_id;
    let client_trace = &PARENT[3..35];
    assert_ne!(own_trace, client_trace);
    let span_id = |text: &str| text[36..52].to_owned();
    let [first, unsampled, ill_formed, alone] = [0, 1, 2, 3].map(|index| texts[index].as_str());

    assert!(
        first.starts_with(&PARENT[..36]) && first.ends_with("-01 vendor=a"),
        "{first}"
    );
    let of_first = place(&spans, &span_id(first));
    assert_eq!(
        of_first,
        Some((client_trace, "00f067aa0ba902b7", "vendor=a"))
    );
    assert!(
        unsampled.starts_with(&PARENT[..36]) && unsampled.ends_with("-00"),
        "{unsampled}"
    );
    assert_eq!(
        place(&spans, &span_id(unsampled)),
        None,
        "its client wants no spans"
    );
    for text in [ill_formed, alone] {
        let place = place(&spans, &span_id(text));
        assert_eq!(place, Some((own_trace, &*root.span_id, "")), "{text}");
    }
}
