use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::client::{CallMeta, ClientSession, SessionEvent};
use crate::protocol::{Implementation, ProtocolPreference, ProtocolVersion};
use crate::tool::Tool;
use crate::tool::{CallToolResult, ContentBlock};

fn catalog() -> Arc<ToolCatalog> {
    let server = Implementation {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    let echo =
        r#"{"name":"echo","inputSchema":{"type":"object","maximum":12345678901234567890.10}}"#;
    let tools: Vec<Tool> = vec![serde_json::from_str(echo).unwrap()];
    Arc::new(ToolCatalog::new(
        server,
        Some("Be brief.".to_owned()),
        tools,
    ))
}

fn text(text: &str) -> CallToolResult {
    CallToolResult {
        meta: serde_json::Map::new(),
        content: vec![ContentBlock::Text {
            text: text.to_owned(),
        }],
        structured_content: None,
        is_error: false,
    }
}

/// Returns `params` with the `_meta` of a modern request.
fn modern(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "t",
    });
    params
}

/// Sends a request and returns the answer, if it comes at once.
fn ask(
    session: &mut ServerSession,
    id: impl Into<Value>,
    method: &str,
    params: impl Into<Value>,
) -> Option<Value> {
    let (id, params): (Value, Value) = (id.into(), params.into());
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    session.receive(request.to_string().as_bytes());
    let output = session.take_output();
    (!output.is_empty()).then(|| serde_json::from_slice(&output).unwrap())
}

/// Begins a modern call and returns its id.
fn begin_call(session: &mut ServerSession, id: &Value) -> ServedCallId {
    let params = modern(json!({"name": "echo", "arguments": {"n": 1.50}}));
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    match &session.receive(request.to_string().as_bytes())[..] {
        [ServerEvent::CallTool(call)] => call.call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_of_either_era_lists_and_calls() {
    for preference in [
        ProtocolPreference::Auto,
        ProtocolPreference::Only(ProtocolVersion::V2024_11_05),
        ProtocolPreference::Only(ProtocolVersion::V2025_06_18),
        ProtocolPreference::Only(ProtocolVersion::LATEST_LEGACY),
    ] {
        let mut server = ServerSession::new(catalog());
        let mut client = ClientSession::new(
            preference,
            Implementation {
                name: "client".to_owned(),
                version: String::new(),
            },
        );
        let mut seen = Vec::new();
        for _ in 0..20 {
            for line in client.take_output().split_inclusive(|byte| *byte == b'\n') {
                for event in server.receive(line) {
                    let ServerEvent::CallTool(call) = event else {
                        panic!("{event:?}");
                    };
                    assert_eq!(call.arguments.get(), r#"{"n":12345678901234567890.10}"#);
                    server.report_progress(call.call, 0.5, None, Some("half"));
                    server.answer_call(call.call, &text("done"));
                }
            }
            for line in server.take_output().split_inclusive(|byte| *byte == b'\n') {
                for event in client.receive(line) {
                    match event {
                        SessionEvent::Ready(identity) => {
                            seen.push(identity.version.to_string());
                            client.list_tools();
                        }
                        SessionEvent::ToolsListed(list) => {
                            seen.push(list.unwrap().tools[0].name.clone());
                            let arguments = r#"{"n":12345678901234567890.10}"#.to_owned();
                            let arguments = RawValue::from_string(arguments).unwrap();
                            let meta = CallMeta {
                                wants_progress: true,
                                ..CallMeta::default()
                            };
                            client.call_tool("echo", arguments, meta);
                        }
                        SessionEvent::Progress { message, .. } => seen.push(message.unwrap()),
                        SessionEvent::CallEnded { result, .. } => {
                            seen.push(format!("{:?}", result.unwrap().content));
                        }
                        SessionEvent::HandshakeFailed(error) => panic!("{error}"),
                    }
                }
            }
        }
        let version = match preference {
            ProtocolPreference::Auto => ProtocolVersion::LATEST,
            ProtocolPreference::LegacyFirst => ProtocolVersion::LATEST_LEGACY,
            ProtocolPreference::Only(version) => version,
        };
        assert_eq!(
            seen,
            [
                version.as_str(),
                "echo",
                "half",
                "[Text { text: \"done\" }]"
            ]
        );
    }
}

#[test]
fn modern_results_say_so_and_legacy_ones_do_not() {
    let mut session = ServerSession::new(catalog());
    let discovered = ask(
        &mut session,
        json!("d"),
        "server/discover",
        modern(json!({})),
    )
    .unwrap();
    assert_eq!(discovered["id"], "d");
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    assert_eq!(discovered["result"]["resultType"], "complete");
    assert_eq!(discovered["result"]["cacheScope"], "private");
    assert_eq!(discovered["result"]["instructions"], "Be brief.");
    let listed = ask(&mut session, json!(0), "tools/list", modern(json!({}))).unwrap();
    assert!(listed["result"]["ttlMs"].is_u64());
    let params = json!({"protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let initialized = ask(&mut session, json!(1), "initialize", params).unwrap();
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");
    let listed = ask(&mut session, json!(2), "tools/list", json!({})).unwrap();
    assert_eq!(listed["result"].as_object().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_code() {
    let version = |date: &str| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": date, "io.modelcontextprotocol/clientCapabilities": {}}});
    for (method, params, code) in [
        ("prompts/list", modern(json!({})), -32601),
        ("ping", modern(json!({})), -32601),
        ("initialise", json!({}), -32601),
        ("tools/list", json!({}), -32602),
        ("server/discover", json!({}), -32602),
        ("tools/list", version("2031-01-01"), -32022),
        ("tools/list", version("2025-11-25"), -32022),
        (
            "tools/list",
            json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
            -32602,
        ),
        ("tools/list", modern(json!({"cursor": ""})), -32602),
        ("tools/call", modern(json!({"name": "unknown"})), -32602),
        ("tools/call", modern(json!({})), -32602),
        ("tools/call", json!([]), -32602),
        ("initialize", json!({}), -32602),
    ] {
        let mut session = ServerSession::new(catalog());
        let answer = ask(&mut session, json!(7), method, params).unwrap();
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        assert_eq!(answer["id"], 7);
    }
}

#[test]
fn a_canceled_call_gets_no_answer() {
    let mut session = ServerSession::new(catalog());
    let call = begin_call(&mut session, &json!("x"));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x", "reason": "enough"}});
    let events = session.receive(cancel.to_string().as_bytes());
    assert!(
        matches!(&events[..], [ServerEvent::CancelCall { call: canceled, reason: Some(reason) }] if *canceled == call && reason == "enough")
    );
    session.answer_call(call, &text("late"));
    session.report_progress(call, 1.0, None, None);
    assert!(session.take_output().is_empty());
    assert!(session.receive(cancel.to_string().as_bytes()).is_empty());
    assert_eq!(session.running_calls().count(), 0);
}

#[test]
fn an_id_that_is_in_use_is_refused_and_the_first_call_goes_on() {
    let mut session = ServerSession::new(catalog());
    let call = begin_call(&mut session, &json!(5));
    let params = modern(json!({"name": "echo"}));
    let refused = ask(&mut session, json!(5), "tools/call", params).unwrap();
    assert_eq!(refused["error"]["code"], -32600);
    session.answer_call(call, &text("done"));
    let answer: Value = serde_json::from_slice(&session.take_output()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

#[test]
fn progress_is_sent_only_where_it_is_wanted_and_only_grows() {
    let mut session = ServerSession::new(catalog());
    let call = begin_call(&mut session, &json!(1));
    for progress in [0.1, 0.1, 0.05, 0.2] {
        session.report_progress(call, progress, Some(1.0), None);
    }
    let output = String::from_utf8(session.take_output()).unwrap();
    assert_eq!(output.lines().count(), 2, "{output}");
    assert!(output.contains(r#""progressToken":"t""#));
}

#[test]
fn structured_content_is_left_out_where_the_version_has_none() {
    for (version, json, is_kept) in [
        ("2025-03-26", "{\"a\":1}", false),
        ("2025-06-18", "{\"a\":1}", true),
        ("2025-11-25", "[1]", false),
    ] {
        let mut session = ServerSession::new(catalog());
        ask(
            &mut session,
            json!(0),
            "initialize",
            json!({"protocolVersion": version}),
        );
        let request = json!({"id": 1, "method": "tools/call", "params": {"name": "echo"}});
        let events = session.receive(request.to_string().as_bytes());
        let [ServerEvent::CallTool(call)] = &events[..] else {
            panic!("{events:?}");
        };
        let mut result = text("x");
        result.structured_content = Some(RawValue::from_string(json.to_owned()).unwrap());
        session.answer_call(call.call, &result);
        let answer: Value = serde_json::from_slice(&session.take_output()).unwrap();
        let kept = answer["result"].get("structuredContent").is_some();
        assert_eq!(kept, is_kept, "{version} {json}");
    }
}

/// What follows the line is served.
#[test]
fn a_request_that_is_too_long_is_refused_by_its_id() {
    let mut session = ServerSession::new(catalog());
    for id in [json!(7), json!("call \"7\"")] {
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"#);
        assert!(session.receive_too_long(start.as_bytes()).is_none());
        let answer: Value = serde_json::from_slice(&session.take_output()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(-32600))
        );
    }
    session.receive_too_long(br#"{"jsonrpc":"2.0","method":"tools/call","params":{"id":1"#);
    let answer: Value = serde_json::from_slice(&session.take_output()).unwrap();
    assert_eq!(answer["id"], Value::Null);
    assert_eq!(session.noise_lines(), 1);
}

/// What follows the line is read.
#[test]
fn a_reply_that_is_too_long_ends_its_question_as_canceled() {
    let mut session = ServerSession::new(catalog());
    let call = begin_call(&mut session, &json!(5));
    let elicitation = Elicitation {
        message: "Approve?".to_owned(),
        requested_schema: json!({"type": "object"}),
    };
    let question = session.ask(call, &elicitation).unwrap();
    session.take_output();
    let start = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"#,
        question.0
    );
    let event = session.receive_too_long(start.as_bytes());
    assert!(
        matches!(event, Some(ServerEvent::AnswerQuestion { question: answered, reply: ElicitationReply::Canceled }) if answered == question),
        "{event:?}"
    );
    assert!(session.receive_too_long(start.as_bytes()).is_none());
    assert!(
        session.take_output().is_empty(),
        "a response gets no answer"
    );
}

#[test]
fn noise_gets_no_answer() {
    let mut session = ServerSession::new(catalog());
    for noise in ["hello", "", "7"] {
        session.receive(noise.as_bytes());
    }
    assert!(session.take_output().is_empty());
    assert_eq!(session.noise_lines(), 3);
}

/// Whoever sends a request that can't be read would wait for ever.
#[test]
fn a_broken_request_is_refused_by_its_id_as_far_as_that_is_known() {
    for (line, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"#,
            json!(2),
            -32700,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"ping","id":"a",}"#,
            json!("a"),
            -32700,
        ),
        ("{nonsense", Value::Null, -32700),
        ("{}", Value::Null, -32600),
    ] {
        let mut session = ServerSession::new(catalog());
        session.receive(line.as_bytes());
        let answer: Value = serde_json::from_slice(&session.take_output()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code)),
            "{line}"
        );
    }
}
