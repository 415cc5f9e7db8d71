//! Which requests are retried, and when.

use std::time::Duration;

use toolq_core::types::{CallEnding, Effect, Reach, RetryCondition};

use crate::http::faulty_server::{FaultyServer, ServerBehavior, http_response};
use crate::support::engine_turn::TestCall;

/// A retry waits at least as long as `Retry-After` says, but never beyond the total timeout.
#[test]
fn retry_after_is_respected() {
    let limited = |after: &str| {
        ServerBehavior::respond(&http_response(
            &format!("429 Slow\r\nretry-after: {after}"),
            "",
        ))
    };
    let with_retry = |call: TestCall| {
        call.tool(|tool| {
            tool.retry.max_retries = 1;
            tool.retry.conditions = vec![RetryCondition::RateLimited];
        })
    };
    let server = FaultyServer::new(&[
        limited("1"),
        ServerBehavior::respond(&http_response("200 OK", "fine")),
    ]);
    let ran = with_retry(server.post_call())
        .tool(|tool| tool.effect = Effect::Write)
        .run();
    assert_eq!((ran.text(), ran.attempts[&0]), ("fine", 2));
    assert!(ran.elapsed >= Duration::from_secs(1));
    let keys: Vec<String> = server
        .requests()
        .iter()
        .map(|request| idempotency_key(request))
        .collect();
    assert!(!keys[0].is_empty() && keys[0] == keys[1]);
    let server = FaultyServer::new(&[limited("864000")]);
    let ran = with_retry(server.get_call("/"))
        .tool(|tool| tool.timeout.total = Some(Duration::from_secs(1)))
        .run();
    assert_eq!(ran.outcome().ending(), Some(CallEnding::HttpStatus(429)));
}

/// Returns the request's idempotency key, which must be the same on every attempt.
fn idempotency_key(request: &str) -> String {
    let key = request
        .lines()
        .find_map(|line| line.strip_prefix("idempotency-key: "));
    key.unwrap_or_default().to_owned()
}

/// Only the statuses that a tool lists are retried. A `write` tool retries only what the server rejected (429).
#[test]
fn statuses_are_retried_as_listed() {
    let attempts = |status: u16, effect: Effect, on: &[RetryCondition]| {
        let server =
            FaultyServer::responding_with(&http_response(&format!("{status} Status"), "why"));
        let call = server.post_call().tool(|tool| {
            tool.effect = effect;
            tool.retry.max_retries = 2;
            tool.retry.conditions = on.to_vec();
        });
        let ran = call.run();
        assert_eq!(ran.outcome().ending(), Some(CallEnding::HttpStatus(status)));
        assert_eq!(server.requests().len(), ran.attempts[&0] as usize);
        ran.attempts[&0]
    };
    let conditions = [
        RetryCondition::RateLimited,
        RetryCondition::Unavailable,
        RetryCondition::Timeout,
    ];
    for status in [429, 502, 503, 504, 529] {
        assert_eq!(
            attempts(status, Effect::Idempotent, &conditions),
            3,
            "{status}"
        );
    }
    for status in [300, 400, 401, 403, 404, 408, 409, 413, 422, 500, 501] {
        assert_eq!(
            attempts(status, Effect::Idempotent, &conditions),
            1,
            "{status}"
        );
        let listed = [RetryCondition::Http(status)];
        assert_eq!(attempts(status, Effect::Read, &listed), 3, "{status}");
        assert_eq!(attempts(status, Effect::Write, &listed), 1, "{status}");
    }
    assert_eq!(attempts(429, Effect::Write, &conditions), 3);
    assert_eq!(attempts(503, Effect::Write, &conditions), 1);
}

/// Only a 4xx says that the server refused. What it did before any other status that the tool doesn't accept, nobody knows.
#[test]
fn only_a_client_error_is_a_refusal() {
    for (status, reach) in [
        (200, Reach::Open),
        (202, Reach::Open),
        (302, Reach::Open),
        (400, Reach::Refused),
        (429, Reach::Nothing),
        (499, Reach::Refused),
        (500, Reach::Open),
    ] {
        let server = FaultyServer::responding_with(&http_response(&format!("{status} So"), ""));
        let call = server
            .post_call()
            .http_backing(|backing| backing.success_status = vec![201..=201]);
        let ran = call.tool(|tool| tool.effect = Effect::Write).run();
        assert_eq!(ran.outcome().reach(), reach, "{status}");
    }
}
