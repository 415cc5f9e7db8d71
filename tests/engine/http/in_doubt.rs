//! Requests of `write` tools: once sent, a request without a response may have had its effect.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;
use std::{fs, future, thread};

use rustix::process::{Pid, Signal, kill_process};
use toolq_core::types::{
    CallEnding, DoubtCause, Effect, HttpMethod, NotExecutedCause, OnFailure, Outcome,
    RetryCondition, TransportPhase,
};
use toolq_engine::Resolver;

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};
use crate::http::transport_phase;
use crate::support::CliSandbox;
use crate::support::engine_turn::{
    TestCall, TestTurn, TurnReport, http_call, shell_call, success_text,
};

/// Gives a call retries for every cause that should not make a sent write run again.
fn with_retries(call: TestCall, effect: Effect) -> TestCall {
    call.tool(|tool| {
        tool.effect = effect;
        tool.retry.max_retries = 2;
        tool.retry.conditions = vec![
            RetryCondition::Unavailable,
            RetryCondition::Timeout,
            RetryCondition::RateLimited,
        ];
    })
}

fn doubt_cause(ran: &TurnReport) -> &DoubtCause {
    match ran.outcome() {
        Outcome::InDoubt { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

/// Each request that the server received counts as one effect: a `write` tool must have exactly one.
#[test]
fn a_write_that_was_sent_is_never_repeated() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for (behavior, times_out) in [
        (ServerBehavior::reset(), false),
        (ServerBehavior::respond(""), false),
        (ServerBehavior::respond("HTTP/1.1 200 O"), false),
        (ServerBehavior::respond(cut), false),
        (ServerBehavior::hang(""), true),
        (ServerBehavior::hang("HTTP/1.1 200 OK\r\n"), true),
        (ServerBehavior::hang(cut), true),
    ] {
        let run_with = |effect| {
            let server = FaultyServer::new(std::slice::from_ref(&behavior));
            let ran = with_retries(server.post_call(), effect)
                .timeout(300, 0)
                .run();
            (server.requests().len(), ran)
        };
        let (effect_count, ran) = run_with(Effect::Write);
        assert_eq!((effect_count, ran.attempts[&0]), (1, 1));
        assert_eq!(
            matches!(doubt_cause(&ran), DoubtCause::TimedOut(_)),
            times_out
        );
        let (effect_count, ran) = run_with(Effect::Idempotent);
        assert_eq!((effect_count, ran.attempts[&0]), (3, 3));
        assert!(!ran.outcome().is_in_doubt());
    }
}

/// The part of the response that had arrived is kept.
#[test]
fn a_partial_response_is_kept() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for behavior in [ServerBehavior::respond(cut), ServerBehavior::hang(cut)] {
        let server = FaultyServer::new(&[behavior]);
        let ran = with_retries(server.post_call(), Effect::Write)
            .timeout(300, 0)
            .run();
        assert!(matches!(ran.outcome(), Outcome::InDoubt { output, .. } if output.text == "half"));
    }
}

/// A failing status is a definite result, even if the body after it never ends.
#[test]
fn a_failing_status_is_not_in_doubt() {
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 9\r\n\r\nhalf";
    for behavior in [
        ServerBehavior::respond(&http_response("503 Busy", "half")),
        ServerBehavior::respond(busy),
        ServerBehavior::hang(busy),
    ] {
        let server = FaultyServer::new(&[behavior]);
        let ran = with_retries(server.post_call(), Effect::Write)
            .timeout(300, 0)
            .run();
        assert!(
            matches!(ran.outcome(), Outcome::Failed { output, ending: CallEnding::HttpStatus(503), .. } if output.text == "half")
        );
        assert_eq!(server.requests().len(), 1);
    }
}

/// A request that was never sent is retried, and is not in doubt.
#[test]
fn an_unsent_request_is_retried() {
    let closed_address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let call = http_call(HttpMethod::Post, &format!("http://{closed_address}/"));
    let ran = with_retries(call, Effect::Write).run();
    assert_eq!(
        (transport_phase(ran.outcome()), ran.attempts[&0]),
        (TransportPhase::Connect, 3)
    );
    // Name resolution never ends: the connect phase fails before the attempt's timeout is over.
    let call = http_call(HttpMethod::Post, "http://nowhere.example/");
    let ran = TestTurn::default()
        .resolver(Resolver::new(|_| future::pending()))
        .call(with_retries(call, Effect::Write).timeout(200, 0))
        .run();
    assert_eq!(
        (transport_phase(ran.outcome()), ran.attempts[&0]),
        (TransportPhase::Connect, 3)
    );
    assert!(ran.elapsed < Duration::from_secs(10));
}

/// Returns a call that fails as soon as `file` exists, and then cancels its siblings.
fn fail_when_exists(file: &Path) -> TestCall {
    let script = r#"while [ ! -e "$1" ]; do sleep 0.01; done; exit 1"#;
    let call = shell_call(script, &[file.to_str().unwrap()]);
    call.tool(|tool| tool.on_failure = OnFailure::CancelSiblings)
}

/// A canceled write is in doubt once its request was sent, just like one that timed out. A canceled read isn't.
#[test]
fn a_canceled_write_is_in_doubt_once_it_was_sent() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("sent");
    for (effect, body) in [
        (Effect::Write, true),
        (Effect::Write, false),
        (Effect::Read, true),
    ] {
        let server = FaultyServer::new(&[ServerBehavior::hang(
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        )]);
        let url = format!("{}/", server.url);
        let call = http_call(HttpMethod::Delete, &url).tool(|tool| tool.effect = effect);
        let call = if body { call.body("{}") } else { call };
        let ran = thread::scope(|scope| {
            scope.spawn(|| {
                while server.requests().is_empty() {
                    thread::sleep(Duration::from_millis(5));
                }
                fs::write(&file, "").unwrap();
            });
            TestTurn::default()
                .call(call)
                .call(fail_when_exists(&file))
                .run()
        });
        fs::remove_file(&file).unwrap();
        match &ran.outcomes[&0] {
            Outcome::InDoubt {
                cause: DoubtCause::Canceled(by),
                ..
            } => assert_eq!((effect, &**by), (Effect::Write, "command")),
            Outcome::Canceled { .. } => assert_eq!(effect, Effect::Read),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 1);
    }
}

/// If a call is canceled or times out before its request was sent, it is never sent, and is not in doubt.
#[test]
fn an_unsent_request_is_not_executed() {
    let (release, released) = tokio::sync::watch::channel(false);
    let server = FaultyServer::responding_with(&http_response("200 OK", "done"));
    let make_call = || {
        let url = format!("http://later.example:{}/", server.port());
        let call = http_call(HttpMethod::Post, &url).body("{}");
        call.tool(|tool| tool.effect = Effect::Write)
    };
    let run = |request: TestCall, sibling: TestCall| {
        let released = released.clone();
        let resolver = Resolver::new(move |_| {
            let mut released = released.clone();
            async move {
                let _ = released.wait_for(|released| *released).await;
                Ok(vec![Ipv4Addr::LOCALHOST.into()])
            }
        });
        let turn = TestTurn::default().resolver(resolver);
        turn.call(request).call(sibling).run()
    };
    let ran = run(make_call(), fail_when_exists(Path::new("/")));
    assert!(matches!(
        &ran.outcomes[&0],
        Outcome::NotExecuted(NotExecutedCause::SiblingFailed { tool }) if tool == "command"
    ));
    // The total timeout ends before the time limit for connecting does.
    let short = make_call().tool(|tool| tool.timeout.total = Some(Duration::from_millis(100)));
    let ran = run(short, shell_call("exit 0", &[]));
    assert_eq!(transport_phase(&ran.outcomes[&0]), TransportPhase::Connect);
    release.send(true).unwrap();
    assert_eq!(server.requests(), [""; 0]);
    let ran = run(make_call(), shell_call("exit 0", &[]));
    assert_eq!(
        (success_text(&ran.outcomes[&0]), server.requests().len()),
        ("done", 1)
    );
}

/// A signal arrives while a payment is in flight: the payment is in doubt, and the log says so.
#[test]
fn an_interrupted_write_is_in_doubt() {
    let server = FaultyServer::new(&[ServerBehavior::hang("")]);
    let tools = format!(
        "tools:\n  pay:\n    input_schema: {{type: object}}\n    http: {{method: POST, url: \"{}/pay\"}}\n",
        server.url
    );
    let toolq = CliSandbox::new().tools(&tools);
    let mut child = toolq
        .command(&["run", "--log", "log.jsonl"])
        .spawn()
        .unwrap();
    let calls = crate::support::model_response(&[
        ("pay", serde_json::json!({})),
        ("pay", serde_json::json!({})),
    ]);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(calls.as_bytes())
        .unwrap();
    while server.requests().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("In doubt: pay may have done its work: the run was stopped from outside"),
        "{stdout}"
    );
    let log = fs::read_to_string(toolq.path().join("log.jsonl")).unwrap();
    let log = crate::support::parse_json_lines(&log);
    let count = |kind: &str| log.iter().filter(|record| record["type"] == kind).count();
    assert_eq!((count("tool_in_doubt"), count("tool_skipped")), (1, 1));
    assert_eq!(log.last().unwrap()["metadata"]["in_doubt"], 1);
    assert_eq!(server.requests().len(), 1);
}

/// With the real binary: exit code 3, "in doubt" in the result, log, summary and events, and a single effect.
#[test]
fn in_doubt_is_reported_everywhere() {
    let server = FaultyServer::new(&[ServerBehavior::hang("")]);
    let tools = format!(
        "tools:\n  pay:\n    input_schema: {{type: object}}\n    timeout: 300ms\n    http: {{method: POST, url: \"{}/pay\"}}\n",
        server.url
    );
    let ran = CliSandbox::new()
        .tools(&tools)
        .stdin(crate::support::model_response(&[(
            "pay",
            serde_json::json!({"n": 1}),
        )]))
        .run(&["run", "--events", "events.ndjson"])
        .assert_exit(3);
    let (text, is_error) = &ran.result_texts()[0];
    assert!(
        *is_error && text.starts_with("In doubt: pay may have done its work"),
        "{text}"
    );
    let log = ran.log_records();
    let in_doubt_record = log
        .iter()
        .find(|record| record["type"] == "tool_in_doubt")
        .unwrap();
    assert_eq!(in_doubt_record["metadata"]["status"], "in_doubt");
    assert_eq!(log.last().unwrap()["metadata"]["in_doubt"], 1);
    assert!(ran.stderr.contains("1 in doubt"), "{}", ran.stderr);
    let events = ran.file("events.ndjson").unwrap();
    assert!(events.contains(r#""type":"tool_error""#) && events.contains(r#""status":"in_doubt""#));
    assert_eq!(server.requests().len(), 1);
}
