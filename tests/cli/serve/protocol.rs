//! What a client sees of tools and results, in both eras of the protocol.

use crate::serve::client::{Client, listed_output_schema, modern, text_of};
use crate::support::waiting::PATIENCE;
use serde_json::json;

#[test]
fn a_legacy_client_lists_and_calls() {
    let mut client = Client::initialized(&[]);
    let listed = client.ask(1, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "echo");
    assert_eq!(tools[0]["description"], "Say it again");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["text"]));
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    let pay = tools.iter().find(|tool| tool["name"] == "pay").unwrap();
    assert_eq!(pay["annotations"]["readOnlyHint"], false);
    assert!(
        !tools.iter().any(|tool| tool["name"] == "planned"),
        "nothing would run it"
    );
    client.call(0, "echo", &json!({"text": "hi"}));
    let answer = client.receive();
    assert_eq!(answer["id"], 0);
    assert_eq!(text_of(&answer), ("hi".to_owned(), false));
    assert_eq!(answer["result"]["_meta"]["dev.toolq/status"], "ok");
    assert!(answer["result"].get("resultType").is_none());
    let ended = client.leave();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.record_types(),
        ["tool_call echo", "tool_start echo", "tool_result echo"]
    );
}

#[test]
fn a_modern_client_needs_no_handshake() {
    let mut client = Client::serve(&[]);
    let discovered = client.ask("d", "server/discover", &modern(&json!({})));
    assert_eq!(
        discovered["result"]["supportedVersions"],
        json!(["2026-07-28"])
    );
    let listed = client.ask(1, "tools/list", &modern(&json!({})));
    assert!(listed["result"]["ttlMs"].is_u64());
    let params = modern(&json!({"name": "echo", "arguments": {"text": "hi"}}));
    let answer = client.ask(2, "tools/call", &params);
    assert_eq!(text_of(&answer), ("hi".to_owned(), false));
    assert_eq!(answer["result"]["resultType"], "complete");
    let meta = &answer["result"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "toolq");
    assert_eq!(client.leave().code, Some(0));
}

#[test]
fn declared_hints_are_listed_and_others_are_not() {
    let mut client = Client::initialized(&[]);
    let listed = client.ask(1, "tools/list", &json!({}));
    let annotations = |name: &str| {
        let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["annotations"].clone()
    };
    assert_eq!(
        annotations("erase"),
        json!({"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true})
    );
    assert_eq!(annotations("scale")["openWorldHint"], false);
    assert_eq!(annotations("pay").as_object().unwrap().len(), 2);
}

#[test]
fn a_result_with_an_output_schema_is_structured_content_and_the_same_text() {
    let mut client = Client::initialized(&[]);
    client.call(1, "scale", &json!({"json": "{ \"kg\": 1.50 }"}));
    let line = client.messages.recv_timeout(PATIENCE).unwrap();
    assert!(
        line.contains(r#""structuredContent":{"kg":1.50}"#)
            && line.contains(r#""text":"{\"kg\":1.50}""#),
        "{line}"
    );
    client.call(2, "scale", &json!({"json": "{\"kg\":\"many\"}"}));
    let answer = client.receive();
    let (text, is_error) = text_of(&answer);
    assert!(
        is_error && text.contains("/kg of the output violates the output schema"),
        "{text}"
    );
    assert_eq!(answer["result"].get("structuredContent"), None);
    let long = format!("{{\"kg\":1,\"note\":\"{}\"}}", "x".repeat(100));
    let (text, is_error) = client.result(3, "scale", &json!({"json": long}));
    assert!(
        is_error && text.contains("118 bytes, more than max_output (100)"),
        "{text}"
    );
}

/// In the legacy era, clients refuse a list with any other schema.
#[test]
fn a_legacy_client_sees_only_structured_objects() {
    let mut client = Client::initialized(&[]);
    let legacy = client.ask(1, "tools/list", &json!({}));
    assert_eq!(listed_output_schema(&legacy, "erase"), None);
    assert_eq!(
        listed_output_schema(&legacy, "scale").unwrap()["required"],
        json!(["kg"])
    );
    client.call(2, "erase", &json!({}));
    let answer = client.receive();
    assert_eq!(text_of(&answer), ("[1]".to_owned(), false));
    assert_eq!(answer["result"].get("structuredContent"), None);
    let listed = client.ask(3, "tools/list", &modern(&json!({})));
    assert_eq!(
        listed_output_schema(&listed, "erase"),
        Some(json!({"type": "array"}))
    );
    let call = modern(&json!({"name": "erase", "arguments": {}}));
    let answer = client.ask(4, "tools/call", &call);
    assert_eq!(answer["result"]["structuredContent"], json!([1]));
}

#[test]
fn numbers_keep_their_digits() {
    let mut client = Client::initialized(&[]);
    client.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"n":12345678901234567890.10}}}"#);
    let (text, _) = text_of(&client.receive());
    assert!(text.contains("12345678901234567890.10"), "{text}");
}

#[test]
fn what_is_wrong_with_a_call_is_a_result_and_what_is_no_call_is_an_error() {
    let mut client = Client::initialized(&[]);
    let (text, is_error) = client.result(1, "echo", &json!({"text": 1}));
    assert!(is_error && text.contains("text"), "{text}");
    let (text, is_error) = client.result(2, "fail", &json!({}));
    assert!(is_error && text.contains("no cheese"), "{text}");
    let (_, is_error) = client.result(3, "echo", &json!(["a"]));
    assert!(is_error);
    let unknown = client.ask(
        4,
        "tools/call",
        &json!({"name": "ech0", "arguments": {"text": "a"}}),
    );
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(
        client.ask(5, "prompts/list", &json!({}))["error"]["code"],
        -32601
    );
    assert_eq!(client.ask(6, "ping", &json!({}))["result"], json!({}));
    assert_eq!(client.leave().code, Some(0));
}

/// A model may have read a secret and repeat it anywhere. Ids go back unchanged: the client finds its requests by them.
#[test]
fn errors_repeat_no_secret() {
    const SECRET: &str = "s3cr3t-canary";
    let mut client = Client::initialized(&[]);
    let named = |name: &str| json!({"name": name, "arguments": {}});
    let version = |date: &str| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": date}});
    let requests = [
        ("tools/call", named(SECRET)),
        (SECRET, json!({})),
        ("tools/list", json!({"cursor": SECRET})),
        ("tools/call", json!({"name": "echo", "_meta": SECRET})),
        ("tools/list", version(SECRET)),
    ];
    for (number, (method, params)) in requests.iter().enumerate() {
        let answer = client.ask(number, method, params);
        let error = answer["error"].to_string();
        assert!(!error.contains(SECRET), "{method} {params}: {error}");
        assert!(error.contains("[masked]"), "{method} {params}: {error}");
    }
    let unknown = client.ask(SECRET, "tools/call", &named("ech0"));
    assert_eq!(unknown["error"]["message"], "unknown tool ech0");
    let (text, is_error) = client.result(SECRET, "echo", &json!({"text": 1, SECRET: SECRET}));
    assert!(is_error && !text.contains(SECRET), "{text}");
    client.send_line(SECRET);
    let ended = client.leave();
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    let log = json!(ended.log()).to_string();
    assert!(!log.contains(SECRET), "{log}");
}

/// They get no answer, are reported once, and what follows is served.
#[test]
fn lines_that_are_no_messages_disturb_nothing() {
    let mut client = Client::initialized(&[]);
    for noise in ["hello", "{\"jsonrpc\":", "{}", "", "[1]", "null"] {
        client.send_line(noise);
    }
    // What could be a request is refused: somebody may wait for its answer.
    for code in [-32700, -32600] {
        let refused = client.receive();
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(null), &json!(code))
        );
    }
    let (text, _) = client.result(1, "echo", &json!({"text": "still here"}));
    assert_eq!(text, "still here");
    let ended = client.leave();
    assert!(
        ended.stderr.contains("5 lines from the client"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.rest, [""; 0]);
}
