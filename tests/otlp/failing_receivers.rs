//! A receiver that is down, slow or refuses never fails a run.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::receiver::{OtlpReceiver, ReceiverBehavior};
use crate::support::{CliOutput, CliSandbox, model_response};

/// The exporter itself would wait as long for an answer.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

fn sandbox() -> CliSandbox {
    CliSandbox::new()
        .tools("version: 1\ntools:\n  say: {input_schema: {type: object}, effect: read, command: [echo, done]}\n")
        .stdin(model_response(&[("say", json!({})), ("say", json!({}))]))
}

fn run(endpoint: &str) -> CliOutput {
    let ran = sandbox().run(&["run", "--otlp", endpoint]).assert_exit(0);
    let texts = ran.result_texts();
    assert!(
        texts
            .iter()
            .all(|(text, is_error)| text.trim() == "done" && !is_error)
    );
    ran
}

/// Returns the notices about the receiver.
fn notices(ran: &CliOutput) -> Vec<&str> {
    let lines = ran.stderr.lines();
    lines.filter(|line| line.contains("--otlp")).collect()
}

#[test]
fn a_receiver_that_is_down_costs_one_notice() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:pass-canary@{}", free.local_addr().unwrap());
    drop(free);
    let ran = run(&url);
    let notices = notices(&ran);
    assert_eq!(notices.len(), 1, "{}", ran.stderr);
    assert!(
        notices[0].contains("3 of 3 spans were not delivered"),
        "{}",
        ran.stderr
    );
    assert!(notices[0].contains("refused"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("canary"), "{}", ran.stderr);
}

#[test]
fn a_receiver_that_hangs_is_waited_for_a_short_time_only() {
    let receiver = OtlpReceiver::with_behavior(ReceiverBehavior::Hang);
    let started = Instant::now();
    let ran = run(&receiver.url);
    assert!(
        started.elapsed() < EXPORT_TIMEOUT,
        "{:?}",
        started.elapsed()
    );
    assert_eq!(notices(&ran).len(), 1, "{}", ran.stderr);
    assert!(!receiver.requests().is_empty(), "it was asked");
}

#[test]
fn a_receiver_that_refuses_is_named_with_its_answer() {
    let receiver = OtlpReceiver::with_behavior(ReceiverBehavior::Refuse(503));
    let ran = run(&receiver.url);
    assert_eq!(notices(&ran).len(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("/v1/traces answered 503"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_no_url_is_refused_before_anything_runs() {
    let ran = sandbox().run(&["run", "--otlp", "in.json"]).assert_exit(2);
    assert!(
        ran.stderr.contains("http://localhost:4318"),
        "{}",
        ran.stderr
    );
    let ran = sandbox()
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .run(&["run", "--otlp"])
        .assert_exit(2);
    assert!(ran.stderr.contains("http/protobuf"), "{}", ran.stderr);
}
