//! Requests of tools that write: sent and not answered, they may have had their effect.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;
use std::{fs, future, thread};

use rustix::process::{Pid, Signal, kill_process};
use toolq_core::types::{
    Doubt, Effect, Ending, HttpMethod, NotExecuted, OnFailure, Outcome, RetryOn, TransportPhase,
};
use toolq_engine::Resolver;

use crate::phase;
use crate::scene::{Asked, Ran, Scene, http, sh, text_of};
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

/// A call that fails as soon as `file` is there, and cancels those beside it.
fn fails_at(file: &Path) -> Asked {
    let script = r#"while [ ! -e "$1" ]; do sleep 0.01; done; exit 1"#;
    let asked = sh(script, &[file.to_str().unwrap()]);
    asked.tool(|tool| tool.on_failure = OnFailure::CancelSiblings)
}

/// FAULTS 100: who gives up waiting knows no more than who waited in vain.
#[test]
fn a_cancelled_write_is_in_doubt_once_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sent");
    for (effect, body) in [
        (Effect::Write, true),
        (Effect::Write, false),
        (Effect::Read, true),
    ] {
        let server = Server::new(&[Act::hang(
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
        )]);
        let url = format!("{}/", server.url);
        let asked = http(HttpMethod::Delete, &url).tool(|tool| tool.effect = effect);
        let asked = if body { asked.body("{}") } else { asked };
        let ran = thread::scope(|scope| {
            scope.spawn(|| {
                while server.heard().is_empty() {
                    thread::sleep(Duration::from_millis(5));
                }
                fs::write(&file, "").unwrap();
            });
            Scene::default().call(asked).call(fails_at(&file)).run()
        });
        fs::remove_file(&file).unwrap();
        match &ran.outcomes[&0] {
            Outcome::InDoubt {
                doubt: Doubt::Cancelled(by),
                ..
            } => assert_eq!((effect, &**by), (Effect::Write, "command")),
            Outcome::Cancelled { .. } => assert_eq!(effect, Effect::Read),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.heard().len(), 1);
    }
}

/// FAULTS 100: what is given up before it was sent is not sent, and is in no doubt: also where its time is over.
#[test]
fn what_was_not_sent_is_not_executed() {
    let (release, released) = tokio::sync::watch::channel(false);
    let server = Server::saying(&response("200 OK", "done"));
    let asked = || {
        let url = format!("http://later.example:{}/", server.port());
        let asked = http(HttpMethod::Post, &url).body("{}");
        asked.tool(|tool| tool.effect = Effect::Write)
    };
    let run = |asked: Asked, other: Asked| {
        let released = released.clone();
        let resolver = Resolver::new(move |_| {
            let mut released = released.clone();
            async move {
                let _ = released.wait_for(|released| *released).await;
                Ok(vec![Ipv4Addr::LOCALHOST.into()])
            }
        });
        let scene = Scene::default().resolver(resolver);
        scene.call(asked).call(other).run()
    };
    let ran = run(asked(), fails_at(Path::new("/")));
    assert!(matches!(
        &ran.outcomes[&0],
        Outcome::NotExecuted(NotExecuted::Sibling { tool }) if tool == "command"
    ));
    // The total is over before the time to find a connection in is.
    let short = asked().tool(|tool| tool.timeout.total = Some(Duration::from_millis(100)));
    let ran = run(short, sh("exit 0", &[]));
    assert_eq!(phase(&ran.outcomes[&0]), TransportPhase::Connect);
    release.send(true).unwrap();
    assert_eq!(server.heard(), [""; 0]);
    let ran = run(asked(), sh("exit 0", &[]));
    assert_eq!(
        (text_of(&ran.outcomes[&0]), server.heard().len()),
        ("done", 1)
    );
}

/// FAULTS 60, 100: a signal while a payment is under way: nobody knows, and the log says so.
#[test]
fn an_interrupted_write_is_in_doubt() {
    let server = Server::new(&[Act::hang("")]);
    let tools = format!(
        "tools:\n  pay:\n    input_schema: {{type: object}}\n    http: {{method: POST, url: \"{}/pay\"}}\n",
        server.url
    );
    let toolq = Toolq::new().tools(&tools);
    let mut child = toolq
        .command(&["run", "--log", "log.jsonl"])
        .spawn()
        .unwrap();
    let calls = support::response(&[
        ("pay", serde_json::json!({})),
        ("pay", serde_json::json!({})),
    ]);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(calls.as_bytes())
        .unwrap();
    while server.heard().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("In doubt: pay may have done its work: the run was ended from outside"),
        "{stdout}"
    );
    let log = fs::read_to_string(toolq.path().join("log.jsonl")).unwrap();
    let log = support::json_lines(&log);
    let count = |kind: &str| log.iter().filter(|record| record["type"] == kind).count();
    assert_eq!((count("tool_in_doubt"), count("tool_skipped")), (1, 1));
    assert_eq!(log.last().unwrap()["metadata"]["in_doubt"], 1);
    assert_eq!(server.heard().len(), 1);
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
