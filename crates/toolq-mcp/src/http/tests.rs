use std::borrow::Cow;
use std::collections::HashMap;

use redact::Mask;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::client::{CallMeta, ClientSession};
use crate::protocol::{Implementation, ProtocolPreference, ProtocolVersion};

fn raw(json: &Value) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).unwrap()
}

/// The examples of the specification.
#[test]
fn values_are_plain_or_base64() {
    for (text, value) in [
        ("us-west1", "us-west1"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encode_header_value(text), value);
        assert_eq!(decode_header_value(value).as_deref(), Some(text));
    }
    assert_eq!(decode_header_value("=?base64?*?="), None);
}

#[test]
fn arguments_are_repeated_in_headers() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"},
        "deep": {"type": "object", "properties": {"yes": {"type": "boolean", "x-mcp-header": "Yes"}}},
        "none": {"type": "string", "x-mcp-header": "None"},
        "missing": {"type": "string", "x-mcp-header": "Missing"},
        "x-mcp-header": {"type": "string"},
        "plain": {"type": "string", "default": {"x-mcp-header": 1}},
    }});
    let headers = ParamHeaders::from_schema(&raw(&schema)).unwrap();
    let arguments =
        r#"{"region": "Zürich", "n": 12345678901234567890, "deep": {"yes": true}, "none": null}"#;
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let mut found = headers.of_arguments(&arguments);
    found.sort();
    let expected = [
        ("mcp-param-n", "12345678901234567890"),
        ("mcp-param-region", "=?base64?WsO8cmljaA==?="),
        ("mcp-param-yes", "true"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn a_header_that_is_not_allowed_refuses_its_tool() {
    let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
    for schema in [
        property(json!({"type": "string", "x-mcp-header": ""})),
        property(json!({"type": "string", "x-mcp-header": "a b"})),
        property(json!({"type": "string", "x-mcp-header": 1})),
        property(json!({"type": "number", "x-mcp-header": "A"})),
        property(json!({"x-mcp-header": "A"})),
        property(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}})),
        json!({"properties": {}, "anyOf": [property(json!({"type": "string", "x-mcp-header": "A"}))]}),
        json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "string", "x-mcp-header": "a"},
        }}),
    ] {
        assert!(
            ParamHeaders::from_schema(&raw(&schema)).is_err(),
            "{schema}"
        );
    }
}

fn session() -> ClientSession {
    let client = Implementation {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    ClientSession::new(ProtocolPreference::Auto, client)
}

#[test]
fn messages_have_the_headers_of_their_era() {
    let mut session = session();
    let discover = OutgoingMessage::split(&session.take_output()).remove(0);
    assert_eq!(discover.request, Some(0));
    let tools = HashMap::new();
    let text = |message: &OutgoingMessage, version| {
        let headers = message.headers(version, &tools);
        let lines = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        text(&discover, None),
        "mcp-protocol-version: 2026-07-28, mcp-method: server/discover"
    );
    session.give_up_probe();
    let initialize = OutgoingMessage::split(&session.take_output()).remove(0);
    assert_eq!(text(&initialize, None), "");
    session.receive(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    let call = session.call_tool("ä", raw(&json!({"a": 1})), CallMeta::default());
    session.cancel_call(call, "late");
    let meta = CallMeta {
        traceparent: Some("00-1-2-01".to_owned()),
        tracestate: Some("a=b".to_owned()),
        ..CallMeta::default()
    };
    session.call_tool("b", raw(&json!({})), meta);
    let messages = OutgoingMessage::split(&session.take_output());
    let [initialized, call, canceled, traced] = &messages[..] else {
        panic!("{messages:?}");
    };
    let legacy = Some(ProtocolVersion::V2025_06_18);
    for message in [initialized, call, canceled] {
        assert_eq!(text(message, legacy), "mcp-protocol-version: 2025-06-18");
    }
    assert_eq!(canceled.cancels, call.request);
    assert_eq!(
        text(call, Some(ProtocolVersion::LATEST)),
        "mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: =?base64?w6Q=?="
    );
    assert_eq!(
        text(traced, legacy),
        "mcp-protocol-version: 2025-06-18, traceparent: 00-1-2-01, tracestate: a=b"
    );
}

/// The headers of a request, by name.
struct TestHeaders(Vec<(&'static str, &'static str)>);

impl PostHeaders for TestHeaders {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut headers = self.0.iter();
        headers.find_map(|(other, value)| (*other == name).then_some(Cow::Borrowed(*value)))
    }
}

fn target(
    message: &Value,
    headers: &[(&'static str, &'static str)],
) -> Result<PostTarget, (u16, Value)> {
    let body = message.to_string();
    let headers = TestHeaders(headers.to_vec());
    let target =
        PostedBody::read(body.as_bytes()).and_then(|body| body.target(&headers, &HashMap::new()));
    target.map_err(|error| {
        let json = error.to_json(&Mask::default());
        (error.status, serde_json::from_slice(&json).unwrap())
    })
}

#[test]
fn who_answers_depends_on_the_era() {
    let request = |method: &str| json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {}});
    let session = ("mcp-session-id", "s");
    assert_eq!(
        target(&request("initialize"), &[]).unwrap(),
        PostTarget::NewSession
    );
    let in_session = PostTarget::Session("s".to_owned());
    for headers in [
        &[session][..],
        &[session, ("mcp-protocol-version", "2025-06-18")],
    ] {
        assert_eq!(target(&request("tools/list"), headers).unwrap(), in_session);
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(target(&notification, &[session]).unwrap(), in_session);
    let mut modern = request("server/discover");
    modern["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    });
    let headers = [
        session,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    let stateless = PostTarget::Stateless {
        client_name: Some("c".to_owned()),
    };
    assert_eq!(target(&modern, &headers).unwrap(), stateless);
    for (message, headers, status, code) in [
        (&modern, &headers[..1], 400, -32020),
        (&modern, &headers[..2], 400, -32020),
        (&request("tools/list"), &headers[1..2], 400, -32602),
        (&request("tools/list"), &[], 400, -32602),
        (
            &request("tools/list"),
            &[session, ("mcp-protocol-version", "1999-01-01")],
            400,
            -32022,
        ),
        (&json!([modern]), &headers[..], 400, -32600),
        (&json!([modern, modern]), &headers[..], 400, -32600),
        (
            &json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
            &headers[..],
            400,
            -32600,
        ),
        (&json!([]), &[session], 400, -32600),
        (&json!(7), &[session], 400, -32600),
    ] {
        let (found, error) = target(message, headers).unwrap_err();
        assert_eq!(found, status, "{message}");
        assert_eq!(error["error"]["code"], code, "{message}");
    }
    let (_, error) = target(&request("tools/list"), &[]).unwrap_err();
    assert_eq!(error["id"], 7);
}
