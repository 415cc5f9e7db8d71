//! What is repeated, and when.

use std::time::Duration;

use toolq_core::types::{Effect, Ending, RetryOn};

use crate::scene::Asked;
use crate::server::{Act, Server, response};

/// FAULTS 99: repeated as declared, not before the server's wish, and not beyond `total`.
#[test]
fn a_limited_rate_is_respected() {
    let limited =
        |after: &str| Act::say(&response(&format!("429 Slow\r\nretry-after: {after}"), ""));
    let again = |asked: Asked| {
        asked.tool(|tool| {
            tool.retry.times = 1;
            tool.retry.on = vec![RetryOn::RateLimited];
        })
    };
    let server = Server::new(&[limited("1"), Act::say(&response("200 OK", "fine"))]);
    let ran = again(server.post())
        .tool(|tool| tool.effect = Effect::Write)
        .run();
    assert_eq!((ran.text(), ran.attempts[&0]), ("fine", 2));
    assert!(ran.took >= Duration::from_secs(1));
    let keys: Vec<String> = server.heard().iter().map(|heard| key_of(heard)).collect();
    assert!(!keys[0].is_empty() && keys[0] == keys[1]);
    let server = Server::new(&[limited("864000")]);
    let ran = again(server.get("/"))
        .tool(|tool| tool.timeout.total = Some(Duration::from_millis(300)))
        .run();
    assert_eq!(ran.outcome().ending(), Some(Ending::Http(429)));
    assert!(ran.took < Duration::from_secs(20));
}

/// FAULTS 101: the same key on every attempt.
fn key_of(heard: &str) -> String {
    let key = heard
        .lines()
        .find_map(|line| line.strip_prefix("idempotency-key: "));
    key.unwrap_or_default().to_owned()
}

/// FAULTS 99: what is repeated is what the tool lists; a tool that writes repeats only what was turned away.
#[test]
fn statuses_are_repeated_as_listed() {
    let attempts = |status: u16, effect: Effect, on: &[RetryOn]| {
        let server = Server::saying(&response(&format!("{status} Status"), "why"));
        let asked = server.post().tool(|tool| {
            tool.effect = effect;
            tool.retry.times = 2;
            tool.retry.on = on.to_vec();
        });
        let ran = asked.run();
        assert_eq!(ran.outcome().ending(), Some(Ending::Http(status)));
        assert_eq!(server.heard().len(), ran.attempts[&0] as usize);
        ran.attempts[&0]
    };
    let words = [RetryOn::RateLimited, RetryOn::Unavailable, RetryOn::Timeout];
    for status in [429, 502, 503, 504, 529] {
        assert_eq!(attempts(status, Effect::Idempotent, &words), 3, "{status}");
    }
    for status in [300, 400, 401, 403, 404, 408, 409, 413, 422, 500, 501] {
        assert_eq!(attempts(status, Effect::Idempotent, &words), 1, "{status}");
        let listed = [RetryOn::Http(status)];
        assert_eq!(attempts(status, Effect::Read, &listed), 3, "{status}");
        assert_eq!(attempts(status, Effect::Write, &listed), 1, "{status}");
    }
    assert_eq!(attempts(429, Effect::Write, &words), 3);
    assert_eq!(attempts(503, Effect::Write, &words), 1);
}
