//! Inputs and results are exported only on request, and secrets never.

use serde_json::json;

use crate::receiver::OtlpReceiver;
use crate::support::{CliSandbox, model_response};

const SECRET: &str = "tok-canary-4711-0815";

fn run(captures: bool) -> OtlpReceiver {
    let receiver = OtlpReceiver::new();
    let sandbox = CliSandbox::new()
        .tools(
            r#"
version: 1
secrets: [TOKEN]
tools:
  show: {input_schema: {type: object}, effect: read, command: {argv: [sh, -c, "echo \"result with $TOKEN\""], pass_env: [TOKEN]}}
"#,
        )
        .env("TOKEN", SECRET)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &receiver.url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
        .stdin(model_response(&[(
            "show",
            json!({"text": format!("say {SECRET}")}),
        ), (SECRET, json!({}))]));
    let sandbox = if captures {
        sandbox.env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    } else {
        sandbox
    };
    sandbox.run(&["run", "-q", "--otlp"]).assert_exit(0);
    receiver
}

#[test]
fn inputs_and_results_are_exported_only_on_request() {
    let plain = run(false);
    assert_eq!(plain.spans().len(), 3);
    for span in plain.spans() {
        assert!(
            !span
                .attributes
                .keys()
                .any(|name| name.starts_with("gen_ai.tool.call.a")
                    || name.starts_with("gen_ai.tool.call.r")),
            "{span:?}"
        );
    }
    let captured = run(true);
    let spans = captured.spans();
    let shown = spans
        .iter()
        .find(|span| span.name == "execute_tool show")
        .unwrap();
    assert_eq!(
        shown.attributes["gen_ai.tool.call.arguments"],
        r#"{"text":"say [masked]"}"#
    );
    assert_eq!(
        shown.attributes["gen_ai.tool.call.result"].trim(),
        "result with [masked]"
    );
}

#[test]
fn no_span_has_a_secret_and_the_environment_names_the_receiver_and_its_headers() {
    let receiver = run(true);
    for request in receiver.requests() {
        assert_eq!(request.headers["x-key"], "abc");
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        assert!(!format!("{:?}", request.body).contains(&format!("{:?}", SECRET.as_bytes())));
    }
    for span in receiver.spans() {
        assert!(!format!("{span:?}").contains("canary"), "{span:?}");
    }
}
