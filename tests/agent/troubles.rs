//! An API that fails: what is asked again, what of a fallback, and what is told.

use serde_json::json;

use crate::api::{Act, Api, calls, completion, error, message, ok, streamed, text};
use crate::scenes::{CANARY, ask, asked, result, toolq};

const QUICK: &str = "    retry: {backoff: 1ms}";

#[test]
fn a_limit_of_rate_is_waited_for_once() {
    let limited = error(429, "retry-after: 0\r\n", "rate_limit_error", "slow down");
    let api = Api::new(&[limited.clone(), text("ok")]);
    assert_eq!(result(&ask(&api, QUICK).exits(0)), ("ok".to_owned(), false));
    let stubborn = Api::new(&[limited]);
    let (told, is_error) = result(&ask(&stubborn, QUICK).exits(0));
    assert!(
        is_error && told.contains("HTTP 429: slow down (rate_limit_error)"),
        "{told}"
    );
    assert_eq!(stubborn.heard().len(), 2);
}

/// FAULTS 99: the server's wish is a minimum.
#[test]
fn retry_after_is_waited_for() {
    let limited = error(429, "retry-after: 1\r\n", "rate_limit_error", "slow down");
    let api = Api::new(&[limited, text("ok")]);
    let begun = std::time::Instant::now();
    ask(&api, QUICK).exits(0);
    assert!(begun.elapsed() >= std::time::Duration::from_secs(1));
}

/// FAULTS 99: a wish beyond what is left of the agent's time is not clipped, but told.
#[test]
fn a_wish_that_is_too_long_ends_the_agent() {
    let limited = error(429, "retry-after: 300\r\n", "rate_limit_error", "slow down");
    let api = Api::new(&[limited, text("never")]);
    let begun = std::time::Instant::now();
    let keys = format!("    timeout: 200s\n{QUICK}");
    let (told, is_error) = result(&ask(&api, &keys).exits(0));
    let words = "slow down (rate_limit_error); the API asks to wait 300s (Retry-After)";
    assert!(is_error && told.contains(words), "{told}");
    assert_eq!(api.heard().len(), 1);
    assert!(begun.elapsed() < std::time::Duration::from_secs(100));
}

#[test]
fn an_overloaded_model_is_replaced_once() {
    let overloaded = || error(529, "", "overloaded_error", "busy");
    let keys = format!("      fallback_model: model-2\n{QUICK}");
    let api = Api::new(&[overloaded(), text("ok")]);
    assert_eq!(result(&ask(&api, &keys).exits(0)).0, "ok");
    let models = |api: &Api| -> Vec<String> {
        let heard = api.heard();
        let models = heard
            .iter()
            .map(|asked| asked.body["model"].as_str().unwrap().to_owned());
        models.collect()
    };
    assert_eq!(models(&api), ["model-1", "model-2"]);
    let stubborn = Api::new(&[overloaded()]);
    assert!(result(&ask(&stubborn, &keys).exits(0)).1);
    assert_eq!(models(&stubborn), ["model-1", "model-2", "model-2"]);
    let without = Api::new(&[overloaded(), text("ok")]);
    assert_eq!(result(&ask(&without, QUICK).exits(0)).0, "ok");
}

#[test]
fn what_passes_is_asked_again() {
    for act in [
        error(500, "", "api_error", "oops"),
        error(503, "", "", "down"),
        Act::Say(504, "", "<html>gateway</html>".to_owned()),
        Act::Close,
        Act::Say(200, "content-length: 900\r\n", String::new()),
    ] {
        let api = Api::new(&[act, text("ok")]);
        assert_eq!(result(&ask(&api, QUICK).exits(0)), ("ok".to_owned(), false));
        assert_eq!(api.heard().len(), 2);
    }
    let never = format!("{QUICK}\n").replace("{backoff", "{times: 0, backoff");
    let api = Api::new(&[Act::Close, text("ok")]);
    let (told, is_error) = result(&ask(&api, &never).exits(0));
    assert!(
        is_error && told.contains("gave no complete answer"),
        "{told}"
    );
}

#[test]
fn what_is_wrong_with_the_request_is_told_and_not_repeated() {
    for (status, words) in [
        (400, "HTTP 400: too long (invalid_request_error)"),
        (401, "Tell the user"),
        (404, "HTTP 404"),
        (413, "send less at once"),
    ] {
        let api = Api::new(&[
            error(status, "", "invalid_request_error", "too long"),
            text("no"),
        ]);
        let (told, is_error) = result(&ask(&api, QUICK).exits(0));
        assert!(is_error && told.contains(words), "{told}");
        assert_eq!(api.heard().len(), 1, "{status}");
    }
}

/// Proxies call an error by the type of the answer that was asked for: its status counts.
#[test]
fn an_error_that_calls_itself_a_stream_is_one() {
    const STREAM: &str = "content-type: text/event-stream\r\n";
    let limited = r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit"}}"#;
    let limited = format!("event: error\ndata: {limited}\n\ndata: [DONE]\n\n");
    let keys = format!("      stream: true\n{QUICK}");
    let api = Api::new(&[Act::Say(429, STREAM, limited.clone()), text("ok")]);
    assert_eq!(result(&ask(&api, &keys).exits(0)), ("ok".to_owned(), false));
    let stubborn = Api::new(&[Act::Say(429, STREAM, limited)]);
    let (told, _) = result(&ask(&stubborn, &keys).exits(0));
    assert!(told.contains("HTTP 429: slow down (requests)"), "{told}");
    assert_eq!(stubborn.heard().len(), 2);
    let denied = error(401, STREAM, "authentication_error", "invalid x-api-key");
    let api = Api::new(&[denied, text("no")]);
    let (told, is_error) = result(&ask(&api, &keys).exits(0));
    let words = "HTTP 401: invalid x-api-key (authentication_error)";
    assert!(is_error && told.contains(words), "{told}");
    assert_eq!(api.heard().len(), 1);
    let page = Act::Say(403, STREAM, "<html>blocked</html>".to_owned());
    let (told, _) = result(&ask(&Api::new(&[page]), &keys).exits(0));
    assert!(
        told.contains("HTTP 403") && told.contains("blocked"),
        "{told}"
    );
}

/// FAULTS 102.
#[test]
fn what_is_no_answer_is_an_error() {
    for (body, words) in [
        ("<html>Welcome</html>", "it is no JSON"),
        ("[]", "it is no object"),
        ("{}", "it has no `content`"),
        (
            r#"{"content":[{"text":"x"}],"role":"assistant"}"#,
            "a content block has no `type`",
        ),
        ("", "it is no JSON"),
    ] {
        let api = Api::new(&[ok(body)]);
        let (told, is_error) = result(&ask(&api, QUICK).exits(0));
        assert!(is_error && told.contains(words), "{told}");
        assert_eq!(api.heard().len(), 1, "{body}");
    }
    let said = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let api = Api::new(&[ok(said), text("ok")]);
    assert_eq!(result(&ask(&api, QUICK).exits(0)).0, "ok");
}

/// A call takes far more memory than `{"type":"tool_use"}` has bytes.
#[test]
fn an_answer_has_so_many_calls_and_no_more() {
    let answer = |calls: usize| {
        let call = json!({"type": "tool_use", "id": "a", "name": "none", "input": {}});
        message(json!(vec![call; calls]), "tool_use")
    };
    let chat = json!({"tool_calls": vec![json!({"function": {"name": "none"}}); 10_001]});
    for (keys, act) in [
        ("", ok(answer(10_001))),
        ("      stream: true\n", streamed(ok(answer(10_001)))),
        ("      api: openai-chat\n", completion(chat, "tool_calls")),
    ] {
        let api = Api::new(&[act, text("no")]);
        let (told, is_error) = result(&ask(&api, &format!("{keys}{QUICK}")).exits(0));
        assert!(
            is_error && told.contains("more than 10,000 calls"),
            "{told}"
        );
        assert_eq!(api.heard().len(), 1);
    }
    let api = Api::new(&[ok(answer(10_000)), text("ok")]);
    assert_eq!(result(&ask(&api, QUICK).exits(0)), ("ok".to_owned(), false));
}

#[test]
fn nobody_listens() {
    let api = Api::new(&[text("never")]);
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = toolq(&api, QUICK).env("BASE", &format!("http://{closed}"));
    let (told, is_error) = result(&asked(gone).exits(0));
    assert!(is_error && told.contains("could not be reached"), "{told}");
    let unset = toolq(&api, QUICK).env("KEY", "");
    let (told, is_error) = result(&asked(unset).exits(0));
    assert!(
        is_error && told.contains("variable KEY is not set"),
        "{told}"
    );
    for (endpoint, cure) in [
        ("localhost:8931", "write `http://localhost:8931`"),
        ("me:pw@example.com?key=1", "write `http://example.com`"),
        ("file:///v1", "write `https://HOST`"),
    ] {
        let (told, is_error) = result(&asked(toolq(&api, QUICK).env("BASE", endpoint)).exits(0));
        let words = "its `endpoint` (${BASE}) is `";
        assert!(
            is_error && told.contains(words) && told.contains(cure),
            "{told}"
        );
        assert!(!told.contains("pw") && !told.contains("key=1"), "{told}");
    }
    assert!(api.heard().is_empty());
}

/// FAULTS 104: an API that repeats the key that it was sent.
#[test]
fn the_key_is_in_nothing_that_toolq_writes() {
    let said = format!("invalid x-api-key: {CANARY}");
    for act in [
        error(401, "", "authentication_error", &said),
        ok(&said),
        text(&said),
    ] {
        let api = Api::new(&[act]);
        let ran = ask(&api, QUICK);
        assert!(
            api.heard()[0]
                .head
                .contains(&format!("x-api-key: {CANARY}\r\n"))
        );
        assert!(result(&ran).0.contains("[masked]"), "{}", ran.stdout);
        let mut files = vec![ran.dir.path().to_owned()];
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(
                    std::fs::read_dir(path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            } else {
                let text = std::fs::read(&path).unwrap();
                assert!(
                    !String::from_utf8_lossy(&text).contains(CANARY),
                    "{}",
                    path.display()
                );
            }
        }
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(CANARY));
    }
}

/// H 111, 112: an agent whose log takes nothing more asks for nothing more, wherever that happens. What ran is on record.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn an_agent_ends_with_its_log() {
    for at in 1..100 {
        let api = Api::new(&[
            calls(&[("look", json!({"at": "home"}))]),
            calls(&[("write", json!({"what": "x"}))]),
            text("It is so."),
        ]);
        let failing = format!("append.before:{at}:error");
        let toolq = toolq(&api, "      tools: [look, write]").env("TOOLQ_FAILPOINT", &failing);
        let ran = asked(toolq);
        if ran.code == 0 {
            assert!(at > 8, "{at} records");
            return;
        }
        assert_eq!(ran.code, 4, "{at}: {}", ran.stderr);
        // The first record is that of the session, without which nothing is asked or answered.
        if at == 1 {
            assert_eq!(api.heard().len(), 0);
            continue;
        }
        let log = ran.log();
        let of = |kind: &str| log.iter().filter(|record| record["type"] == kind).count();
        assert!(
            api.heard().len() <= of("model_response") + 1,
            "{at}: {} requests and {} answers on record",
            api.heard().len(),
            of("model_response")
        );
        let wrote = ran.file("written").map_or(0, |text| text.lines().count());
        let starts = log.iter().filter(|record| {
            record["type"] == "tool_start" && record["metadata"]["tool_name"] == "write"
        });
        assert!(wrote <= starts.count(), "{at}");
        let (told, _) = result(&ran);
        let is_answer = told == "It is so.";
        assert!(is_answer || told.contains("session log"), "{at}: {told}");
    }
    panic!("the log never had enough")
}
