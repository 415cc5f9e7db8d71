//! API errors: retries, the fallback model, and what the caller reads.

use serde_json::json;

use crate::agent::expert_fixture::{CANARY, run_expert, run_expert_in, single_result, toolq};
use crate::support::full_or_short;
use crate::support::scripted_api::{
    ApiBehavior, ScriptedApi, calls_response, chat_response, error_response, message_body,
    ok_response, text_response,
};

const FAST_RETRY: &str = "    retry: {backoff: 1ms}";

/// An API that is overloaded is asked again.
#[test]
fn a_rate_limit_is_retried_once() {
    let limited = error_response(429, "retry-after: 0\r\n", "rate_limit_error", "slow down");
    let api = ScriptedApi::new(&[limited.clone(), text_response("ok")]);
    assert_eq!(
        single_result(&run_expert(&api, FAST_RETRY).assert_exit(0)),
        ("ok".to_owned(), false)
    );
    let stubborn = ScriptedApi::new(&[limited]);
    let (result_text, is_error) = single_result(&run_expert(&stubborn, FAST_RETRY).assert_exit(0));
    assert!(
        is_error && result_text.contains("HTTP 429: slow down (rate_limit_error)"),
        "{result_text}"
    );
    assert_eq!(stubborn.requests().len(), 2);
}

/// A retry waits at least as long as `Retry-After` says.
#[test]
fn retry_after_is_waited_for() {
    let limited = error_response(429, "retry-after: 1\r\n", "rate_limit_error", "slow down");
    let api = ScriptedApi::new(&[limited, text_response("ok")]);
    let started_at = std::time::Instant::now();
    run_expert(&api, FAST_RETRY).assert_exit(0);
    assert!(started_at.elapsed() >= std::time::Duration::from_secs(1));
}

/// If `Retry-After` exceeds the agent's remaining time, the agent fails at once and says so.
#[test]
fn a_retry_after_beyond_the_timeout_ends_the_agent() {
    let limited = error_response(429, "retry-after: 300\r\n", "rate_limit_error", "slow down");
    let api = ScriptedApi::new(&[limited, text_response("never")]);
    let keys = format!("    timeout: 200s\n{FAST_RETRY}");
    let (result_text, is_error) = single_result(&run_expert(&api, &keys).assert_exit(0));
    let expected = "slow down (rate_limit_error); the API asks to wait 300s (Retry-After)";
    assert!(is_error && result_text.contains(expected), "{result_text}");
    assert_eq!(api.requests().len(), 1);
}

/// After an overload, `fallback_model` takes over.
#[test]
fn an_overloaded_model_falls_back_once() {
    let overloaded = || error_response(529, "", "overloaded_error", "busy");
    let keys = format!("      fallback_model: model-2\n{FAST_RETRY}");
    let api = ScriptedApi::new(&[overloaded(), text_response("ok")]);
    assert_eq!(
        single_result(&run_expert(&api, &keys).assert_exit(0)).0,
        "ok"
    );
    let models = |api: &ScriptedApi| -> Vec<String> {
        let requests = api.requests();
        let models = requests
            .iter()
            .map(|request| request.body["model"].as_str().unwrap().to_owned());
        models.collect()
    };
    assert_eq!(models(&api), ["model-1", "model-2"]);
    let stubborn = ScriptedApi::new(&[overloaded()]);
    assert!(single_result(&run_expert(&stubborn, &keys).assert_exit(0)).1);
    assert_eq!(models(&stubborn), ["model-1", "model-2", "model-2"]);
    let without = ScriptedApi::new(&[overloaded(), text_response("ok")]);
    assert_eq!(
        single_result(&run_expert(&without, FAST_RETRY).assert_exit(0)).0,
        "ok"
    );
}

/// An API that is unavailable is asked again.
#[test]
fn transient_errors_are_retried() {
    for behavior in [
        error_response(500, "", "api_error", "oops"),
        error_response(503, "", "", "down"),
        ApiBehavior::Respond(504, "", "<html>gateway</html>".to_owned()),
        ApiBehavior::Close,
        ApiBehavior::Respond(200, "content-length: 900\r\n", String::new()),
    ] {
        let api = ScriptedApi::new(&[behavior, text_response("ok")]);
        assert_eq!(
            single_result(&run_expert(&api, FAST_RETRY).assert_exit(0)),
            ("ok".to_owned(), false)
        );
        assert_eq!(api.requests().len(), 2);
    }
    let never = format!("{FAST_RETRY}\n").replace("{backoff", "{times: 0, backoff");
    let api = ScriptedApi::new(&[ApiBehavior::Close, text_response("ok")]);
    let (result_text, is_error) = single_result(&run_expert(&api, &never).assert_exit(0));
    assert!(
        is_error && result_text.contains("sent no complete response"),
        "{result_text}"
    );
}

/// The agent fails with the message of the API.
#[test]
fn client_errors_are_reported_and_not_retried() {
    for (status, expected) in [
        (400, "HTTP 400: too long (invalid_request_error)"),
        (401, "Tell the user"),
        (404, "HTTP 404"),
        (413, "send less at a time"),
    ] {
        let api = ScriptedApi::new(&[
            error_response(status, "", "invalid_request_error", "too long"),
            text_response("no"),
        ]);
        let (result_text, is_error) = single_result(&run_expert(&api, FAST_RETRY).assert_exit(0));
        assert!(is_error && result_text.contains(expected), "{result_text}");
        assert_eq!(api.requests().len(), 1, "{status}");
    }
}

/// The agent fails with the cause.
#[test]
fn a_malformed_response_is_an_error() {
    for (body, expected) in [
        ("<html>Welcome</html>", "it is not valid JSON"),
        ("[]", "it is not a JSON object"),
        ("{}", "it has no `content`"),
        (
            r#"{"content":[{"text":"x"}],"role":"assistant"}"#,
            "a content block has no `type`",
        ),
        ("", "it is not valid JSON"),
        // Nobody asked for a stream.
        (
            "data: {\"type\":\"message_start\"}\n\n",
            "it is not valid JSON",
        ),
    ] {
        let api = ScriptedApi::new(&[ok_response(body)]);
        let (result_text, is_error) = single_result(&run_expert(&api, FAST_RETRY).assert_exit(0));
        assert!(is_error && result_text.contains(expected), "{result_text}");
        assert_eq!(api.requests().len(), 1, "{body}");
    }
    let overloaded_body =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    let api = ScriptedApi::new(&[ok_response(overloaded_body), text_response("ok")]);
    assert_eq!(
        single_result(&run_expert(&api, FAST_RETRY).assert_exit(0)).0,
        "ok"
    );
}

/// The limit bounds memory: a call takes far more of it than `{"type":"tool_use"}` has bytes.
#[test]
fn a_response_has_at_most_10_000_calls() {
    let response_with = |calls: usize| {
        let call = json!({"type": "tool_use", "id": "a", "name": "none", "input": {}});
        message_body(json!(vec![call; calls]), "tool_use")
    };
    let chat = json!({"tool_calls": vec![json!({"function": {"name": "none"}}); 10_001]});
    for (keys, behavior) in [
        ("", ok_response(response_with(10_001))),
        (
            "      api: openai-chat\n",
            chat_response(chat, "tool_calls"),
        ),
    ] {
        let api = ScriptedApi::new(&[behavior, text_response("no")]);
        let (result_text, is_error) =
            single_result(&run_expert(&api, &format!("{keys}{FAST_RETRY}")).assert_exit(0));
        assert!(
            is_error && result_text.contains("more than 10,000 calls"),
            "{result_text}"
        );
        assert_eq!(api.requests().len(), 1);
    }
    let most = full_or_short(10_000, 100);
    let api = ScriptedApi::new(&[ok_response(response_with(most)), text_response("ok")]);
    // This many calls may take longer than an agent's default timeout on a busy machine.
    let keys = format!("    timeout: 10m\n{FAST_RETRY}");
    assert_eq!(
        single_result(&run_expert(&api, &keys).assert_exit(0)),
        ("ok".to_owned(), false)
    );
}

/// The agent fails with the cause.
#[test]
fn unreachable_or_invalid_endpoints_are_reported() {
    let api = ScriptedApi::new(&[text_response("never")]);
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let unreachable = toolq(&api, FAST_RETRY).env("BASE", &format!("http://{closed}"));
    let (result_text, is_error) = single_result(&run_expert_in(unreachable).assert_exit(0));
    assert!(
        is_error && result_text.contains("could not be reached"),
        "{result_text}"
    );
    let unset = toolq(&api, FAST_RETRY).env("KEY", "");
    let (result_text, is_error) = single_result(&run_expert_in(unset).assert_exit(0));
    assert!(
        is_error && result_text.contains("variable KEY is unset"),
        "{result_text}"
    );
    for (endpoint, hint) in [
        ("localhost:8931", "write `http://localhost:8931`"),
        ("me:pw@example.com?key=1", "write `http://example.com`"),
        ("file:///v1", "write `https://HOST`"),
    ] {
        let (result_text, is_error) = single_result(
            &run_expert_in(toolq(&api, FAST_RETRY).env("BASE", endpoint)).assert_exit(0),
        );
        let expected = "its `endpoint` (${BASE}) is `";
        assert!(
            is_error && result_text.contains(expected) && result_text.contains(hint),
            "{result_text}"
        );
        assert!(
            !result_text.contains("pw") && !result_text.contains("key=1"),
            "{result_text}"
        );
    }
    assert!(api.requests().is_empty());
}

/// The API key is masked even if the API echoes it.
#[test]
fn the_api_key_is_in_no_output() {
    let echoed_key = format!("invalid x-api-key: {CANARY}");
    for behavior in [
        error_response(401, "", "authentication_error", &echoed_key),
        ok_response(&echoed_key),
        text_response(&echoed_key),
    ] {
        let api = ScriptedApi::new(&[behavior]);
        let ran = run_expert(&api, FAST_RETRY);
        assert!(
            api.requests()[0]
                .head
                .contains(&format!("x-api-key: {CANARY}\r\n"))
        );
        assert!(single_result(&ran).0.contains("[masked]"), "{}", ran.stdout);
        let mut files = vec![ran.dir.path().to_owned()];
        while let Some(path) = files.pop() {
            // Claims are links that lead nowhere.
            if path.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                assert!(!target.to_string_lossy().contains(CANARY));
            } else if path.is_dir() {
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

/// When its log can't be written any more, an agent sends no further requests, regardless of the record at which that
/// happens. Every call that ran was recorded before.
#[cfg_attr(not(debug_assertions), ignore = "a release build has no failpoints")]
#[test]
fn an_agent_stops_when_its_log_fails() {
    for at in 1..100 {
        let api = ScriptedApi::new(&[
            calls_response(&[("look", json!({"at": "home"}))]),
            calls_response(&[("write", json!({"what": "x"}))]),
            text_response("It is so."),
        ]);
        let failing = format!("append.before:{at}:error");
        let toolq = toolq(&api, "      tools: [look, write]").env("TOOLQ_FAILPOINT", &failing);
        let ran = run_expert_in(toolq);
        if ran.code == 0 {
            assert!(at > 8, "{at} records");
            return;
        }
        assert_eq!(ran.code, 4, "{at}: {}", ran.stderr);
        // Without its first record, the session header, the run doesn't start.
        if at == 1 {
            assert_eq!(api.requests().len(), 0);
            continue;
        }
        let log = ran.log_records();
        let record_count = |kind: &str| log.iter().filter(|record| record["type"] == kind).count();
        assert!(
            api.requests().len() <= record_count("model_response") + 1,
            "{at}: {} requests, but {} responses recorded",
            api.requests().len(),
            record_count("model_response")
        );
        let write_count = ran.file("written").map_or(0, |text| text.lines().count());
        let starts = log.iter().filter(|record| {
            record["type"] == "tool_start" && record["metadata"]["tool_name"] == "write"
        });
        assert!(write_count <= starts.count(), "{at}");
        let (result_text, _) = single_result(&ran);
        let is_answer = result_text == "It is so.";
        assert!(
            is_answer || result_text.contains("session log"),
            "{at}: {result_text}"
        );
    }
    panic!("the run never succeeded")
}
