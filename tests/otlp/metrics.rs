//! Calls, errors and durations, by tool.

use std::collections::BTreeMap;

use serde_json::json;

use crate::receiver::OtlpReceiver;
use crate::support::{CliSandbox, model_response};

const TOOLS: &str = r#"
version: 1
tools:
  good: {input_schema: {type: object}, effect: read, command: [echo, done]}
  bad: {input_schema: {type: object}, effect: read, command: [sh, -c, "exit 3"]}
"#;

fn sandbox(receiver: &OtlpReceiver) -> CliSandbox {
    let calls = ["good", "good", "bad", "made_up_by_the_model"].map(|name| (name, json!({})));
    CliSandbox::new()
        .tools(TOOLS)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url)
        .stdin(model_response(&calls))
}

#[test]
fn calls_errors_and_durations_are_counted_by_tool() {
    let receiver = OtlpReceiver::new();
    sandbox(&receiver).run(&["run", "--otlp"]).assert_exit(0);
    let by_tool = |name: &str| -> Vec<(String, u64)> {
        let points = receiver.metric(name).into_iter();
        points
            .map(|(mut labels, count)| {
                let tool: Option<String> = labels.remove("gen_ai.tool.name");
                let error = labels.remove("error.type");
                let words: Vec<String> = tool.into_iter().chain(error).collect();
                (words.join(" "), count)
            })
            .collect()
    };
    let sorted = |name: &str| {
        let mut points = by_tool(name);
        points.sort();
        points
    };
    let owned = |points: &[(&str, u64)]| -> Vec<(String, u64)> {
        points
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    };
    assert_eq!(
        sorted("toolq.calls"),
        owned(&[("", 1), ("bad", 1), ("good", 2)])
    );
    assert_eq!(
        sorted("toolq.call.errors"),
        owned(&[("bad failed", 1), ("unknown_tool", 1)])
    );
    // A call that was rejected has no duration.
    assert_eq!(
        sorted("gen_ai.execute_tool.duration"),
        owned(&[("bad failed", 1), ("good", 2)])
    );
}

#[test]
fn each_signal_can_be_switched_off() {
    let receiver = OtlpReceiver::new();
    let paths = || -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in receiver.requests() {
            *counts.entry(request.path).or_default() += 1;
        }
        counts
    };
    let off = [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let mut seen = Vec::new();
    for (name, value) in off {
        let ran = sandbox(&receiver).env(name, value).run(&["run", "--otlp"]);
        assert!(!ran.assert_exit(0).stderr.contains("--otlp"));
        seen.push(paths().into_keys().collect::<Vec<_>>().join(" "));
    }
    assert_eq!(seen, ["", "/v1/traces", "/v1/metrics /v1/traces"]);
}
