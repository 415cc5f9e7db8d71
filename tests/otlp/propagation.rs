//! The trace that toolq is in, and what it passes on.

use serde_json::json;

use crate::receiver::OtlpReceiver;
use crate::support::scripted_api::{ScriptedApi, text_response};
use crate::support::scripted_server::{LEGACY, MODERN, ScriptedServer};
use crate::support::{CliSandbox, model_response};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TOOLS: &str = r#"
version: 1
tools:
  env: {input_schema: {type: object}, effect: read, command: [sh, -c, "echo $TRACEPARENT $TRACESTATE"]}
  post:
    input_schema: {type: object}
    effect: read
    http: {method: POST, url: "${BASE}/x"}
"#;

fn sandbox(calls: &[&str]) -> CliSandbox {
    let calls: Vec<_> = calls.iter().map(|name| (*name, json!({}))).collect();
    CliSandbox::new().tools(TOOLS).stdin(model_response(&calls))
}

#[test]
fn the_environment_names_the_parent_and_commands_and_requests_get_their_own_span() {
    let (receiver, api) = (
        OtlpReceiver::new(),
        ScriptedApi::new(&[text_response("ok")]),
    );
    let ran = sandbox(&["env", "post"])
        .env("BASE", &api.url)
        .env("TRACEPARENT", PARENT)
        .env("TRACESTATE", "vendor=a")
        .run(&["run", "--otlp", &receiver.url])
        .assert_exit(0);
    let spans = receiver.spans();
    let find = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let root = find("toolq");
    assert_eq!(root.parent_id, "00f067aa0ba902b7");
    assert_eq!(root.trace_state, "vendor=a");
    let call = find("execute_tool env");
    assert_eq!(call.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(call.parent_id, root.span_id);
    let expected = |span_id: &str| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span_id}-01");
    let text = &ran.result_texts()[0].0;
    assert_eq!(text.trim(), format!("{} vendor=a", expected(&call.span_id)));
    let head = api.requests()[0].head.to_lowercase();
    let header = format!(
        "traceparent: {}",
        expected(&find("execute_tool post").span_id)
    );
    assert!(head.contains(&header), "{head}");
    assert!(head.contains("tracestate: vendor=a"), "{head}");
}

/// Proxies on the way read the header, servers `_meta`.
#[test]
fn calls_of_mcp_servers_over_http_have_their_span_in_headers_and_in_meta() {
    for script in [LEGACY, MODERN] {
        let (receiver, server) = (OtlpReceiver::new(), ScriptedServer::start(script));
        let tools = format!(
            "version: 1\nservers:\n  s: {{url: \"{url}\"}}\n  own: {{url: \"{url}\", headers: {{traceparent: mine}}}}\ntools:\n{}",
            ["s", "own"].map(|name| format!("  of_{name}: {{input_schema: {{type: object}}, effect: read, mcp: {{server: {name}, tool: echo}}}}\n")).concat(),
            url = server.url
        );
        let calls = [("of_s", json!({})), ("of_own", json!({}))];
        let sandbox = CliSandbox::new().tools(&tools);
        sandbox
            .stdin(model_response(&calls))
            .env("TRACEPARENT", PARENT)
            .env("TRACESTATE", "vendor=a")
            .run(&["run", "--otlp", &receiver.url])
            .assert_exit(0);
        let spans = receiver.spans();
        let mut headers = Vec::new();
        for call in server.calls() {
            let meta = &call.message["params"]["_meta"];
            assert_eq!(meta["tracestate"], "vendor=a");
            let in_meta = meta["traceparent"].as_str().unwrap().to_owned();
            assert!(spans.iter().any(|span| {
                span.name.starts_with("execute_tool of_")
                    && in_meta == format!("00-{}-{}-01", span.trace_id, span.span_id)
            }));
            let header = |name: &str| call.headers.get(name).cloned();
            if header("traceparent").as_deref() == Some("mine") {
                assert_eq!(header("tracestate"), None);
            } else {
                assert_eq!(header("traceparent"), Some(in_meta));
                assert_eq!(header("tracestate").as_deref(), Some("vendor=a"));
            }
            headers.extend(header("traceparent"));
        }
        assert_eq!(headers.len(), 2);
        assert!(headers.contains(&"mine".to_owned()), "{headers:?}");
    }
}

#[test]
fn an_ill_formed_parent_is_ignored_with_a_notice() {
    let receiver = OtlpReceiver::new();
    let ran = sandbox(&["env"])
        .env("TRACEPARENT", "00-nonsense")
        .run(&["run", "--otlp", &receiver.url])
        .assert_exit(0);
    assert!(
        ran.stderr.contains("TRACEPARENT is ignored"),
        "{}",
        ran.stderr
    );
    let spans = receiver.spans();
    let root = spans.iter().find(|span| span.name == "toolq").unwrap();
    assert_eq!(root.parent_id, "");
}

#[test]
fn a_trace_that_is_not_sampled_gets_no_spans_but_is_passed_on() {
    let receiver = OtlpReceiver::new();
    let ran = sandbox(&["env"])
        .env("TRACEPARENT", &PARENT.replace("-01", "-00"))
        .run(&["run", "--otlp", &receiver.url])
        .assert_exit(0);
    assert_eq!(receiver.spans(), []);
    let text = &ran.result_texts()[0].0;
    assert!(
        text.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
        "{text}"
    );
    assert!(text.trim().ends_with("-00"), "{text}");
}

#[test]
fn without_the_flag_commands_get_no_trace() {
    let ran = sandbox(&["env"])
        .env("TRACEPARENT", PARENT)
        .run(&["run"])
        .assert_exit(0);
    assert_eq!(ran.result_texts()[0].0.trim(), "(no output)");
}
