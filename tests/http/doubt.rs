//! Requests of tools that write: sent and not answered, they may have had their effect.

use std::future;
use std::net::TcpListener;
use std::time::Duration;

use toolq::execute::Resolver;
use toolq::model::{Doubt, Effect, Ending, HttpMethod, Outcome, RetryOn, TransportPhase};

use crate::phase;
use crate::scene::{Asked, Ran, Scene, http};
use crate::server::{Act, Server, response};
use crate::support::{self, Toolq};

/// Everything that a tool may list, and more attempts than it should need.
fn eager(asked: Asked, effect: Effect) -> Asked {
    asked.tool(|tool| {
        tool.effect = effect;
        tool.retry.times = 2;
        tool.retry.on = vec![RetryOn::Unavailable, RetryOn::Timeout, RetryOn::RateLimited];
    })
}

fn doubt(ran: &Ran) -> &Doubt {
    match ran.outcome() {
        Outcome::InDoubt { doubt, .. } => doubt,
        other => panic!("{other:?}"),
    }
}

/// FAULTS 100: the server counts the effects.
#[test]
fn a_write_that_was_sent_is_never_repeated() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for (act, late) in [
        (Act::reset(), false),
        (Act::say(""), false),
        (Act::say("HTTP/1.1 200 O"), false),
        (Act::say(cut), false),
        (Act::hang(""), true),
        (Act::hang("HTTP/1.1 200 OK\r\n"), true),
        (Act::hang(cut), true),
    ] {
        let effects = |effect| {
            let server = Server::new(std::slice::from_ref(&act));
            let ran = eager(server.post(), effect).timeout(300, 0).run();
            (server.heard().len(), ran)
        };
        let (effect, ran) = effects(Effect::Write);
        assert_eq!((effect, ran.attempts[&0]), (1, 1));
        assert_eq!(matches!(doubt(&ran), Doubt::TimedOut(_)), late);
        let (effects, ran) = effects(Effect::Idempotent);
        assert_eq!((effects, ran.attempts[&0]), (3, 3));
        assert!(!ran.outcome().is_in_doubt());
    }
}

/// FAULTS 100: what had come of the answer is not lost.
#[test]
fn half_an_answer_is_kept() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    for act in [Act::say(cut), Act::hang(cut)] {
        let server = Server::new(&[act]);
        let ran = eager(server.post(), Effect::Write).timeout(300, 0).run();
        assert!(matches!(ran.outcome(), Outcome::InDoubt { output, .. } if output == "half"));
    }
}

/// FAULTS 100: a failing status is an answer, also where the page behind it never ends.
#[test]
fn an_answer_is_no_doubt() {
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 9\r\n\r\nhalf";
    for act in [
        Act::say(&response("503 Busy", "half")),
        Act::say(busy),
        Act::hang(busy),
    ] {
        let server = Server::new(&[act]);
        let ran = eager(server.post(), Effect::Write).timeout(300, 0).run();
        assert!(
            matches!(ran.outcome(), Outcome::Failed { output, ending: Ending::Http(503), .. } if output == "half")
        );
        assert_eq!(server.heard().len(), 1);
    }
}

/// FAULTS 91, 100: what was never sent is repeated, and is in no doubt.
#[test]
fn what_was_not_sent_is_repeated() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let asked = http(HttpMethod::Post, &format!("http://{free}/"));
    let ran = eager(asked, Effect::Write).run();
    assert_eq!(
        (phase(ran.outcome()), ran.attempts[&0]),
        (TransportPhase::Connect, 3)
    );
    // Whoever is not reached in time was not reached: the attempt's own time is not over yet.
    let asked = http(HttpMethod::Post, "http://nowhere.example/");
    let ran = Scene::default()
        .resolver(Resolver::new(|_| future::pending()))
        .call(eager(asked, Effect::Write).timeout(200, 0))
        .run();
    assert_eq!(
        (phase(ran.outcome()), ran.attempts[&0]),
        (TransportPhase::Connect, 3)
    );
    assert!(ran.took < Duration::from_secs(10));
}

/// FAULTS 100: from the outside: exit 3, the word in text, log and events, and one effect.
#[test]
fn a_doubt_is_told_everywhere() {
    let server = Server::new(&[Act::hang("")]);
    let tools = format!(
        "tools:\n  pay:\n    input_schema: {{type: object}}\n    timeout: 300ms\n    http: {{method: POST, url: \"{}/pay\"}}\n",
        server.url
    );
    let ran = Toolq::new()
        .tools(&tools)
        .stdin(support::response(&[("pay", serde_json::json!({"n": 1}))]))
        .run(&["run", "--events", "events.ndjson"])
        .exits(3);
    let (text, is_error) = &ran.texts()[0];
    assert!(
        *is_error && text.starts_with("In doubt: pay may have done its work"),
        "{text}"
    );
    let log = ran.log();
    let told = log
        .iter()
        .find(|record| record["type"] == "tool_in_doubt")
        .unwrap();
    assert_eq!(told["metadata"]["status"], "in_doubt");
    assert_eq!(log.last().unwrap()["metadata"]["in_doubt"], 1);
    assert!(ran.stderr.contains("1 in doubt"), "{}", ran.stderr);
    let events = ran.file("events.ndjson").unwrap();
    assert!(events.contains(r#""type":"tool_error""#) && events.contains(r#""status":"in_doubt""#));
    assert_eq!(server.heard().len(), 1);
}
