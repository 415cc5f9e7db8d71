use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::message::RpcError;
use crate::protocol::{Implementation, ProtocolPreference, ProtocolVersion};

/// A session and what it has sent.
struct TestClient {
    session: ClientSession,
}

impl TestClient {
    fn new(preference: ProtocolPreference) -> Self {
        let client = Implementation {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        Self {
            session: ClientSession::new(preference, client),
        }
    }

    /// A session whose handshake is over.
    fn ready(version: ProtocolVersion) -> Self {
        let mut client = Self::new(ProtocolPreference::Auto);
        if version == ProtocolVersion::LATEST {
            client.receive(json!({"id": 0, "result": {"supportedVersions": [version.as_str()]}}));
        } else {
            client.receive(json!({"id": 0, "error": {"code": -32601, "message": "what?"}}));
            client.receive(json!({"id": 1, "result": {"protocolVersion": version.as_str()}}));
        }
        client.sent();
        client
    }

    /// Returns the messages that were sent since the last time.
    fn sent(&mut self) -> Vec<Value> {
        let bytes = String::from_utf8(self.session.take_output()).unwrap();
        assert!(bytes.is_empty() || bytes.ends_with('\n'));
        let messages = bytes
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        messages.collect()
    }

    fn receive(&mut self, message: Value) -> String {
        let mut message = message;
        if let Some(object) = message.as_object_mut() {
            object.insert("jsonrpc".to_owned(), json!("2.0"));
        }
        self.receive_line(&message.to_string())
    }

    fn receive_line(&mut self, line: &str) -> String {
        describe(&self.session.receive(line.as_bytes()))
    }

    fn call(&mut self, arguments: &str) -> CallId {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        self.session.call_tool(
            "echo",
            arguments,
            CallMeta {
                wants_progress: true,
                idempotency_key: Some("key-1".to_owned()),
                traceparent: Some(
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned(),
                ),
                tracestate: Some("vendor=a".to_owned()),
            },
        )
    }
}

/// Describes events in a few words.
fn describe(events: &[SessionEvent]) -> String {
    let describe = |event: &SessionEvent| match event {
        SessionEvent::Ready(server) => {
            let name = server.implementation.as_ref().map(|server| &*server.name);
            format!("ready {} {}", server.version, name.unwrap_or("?"))
        }
        SessionEvent::HandshakeFailed(error) => format!("failed: {error}"),
        SessionEvent::ToolsListed(Ok(list)) => {
            let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
            format!("tools {names:?} {:?}", list.problems)
        }
        SessionEvent::ToolsListed(Err(error)) => format!("no tools: {error}"),
        SessionEvent::CallEnded { call, result } => match result {
            Ok(result) => format!("{} ended {:?}", call.0, result.content),
            Err(error) => format!("{} failed: {error}", call.0),
        },
        SessionEvent::Progress { call, progress, .. } => format!("{} at {progress}", call.0),
    };
    events.iter().map(describe).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_modern_server_is_ready_after_one_answer() {
    let mut client = TestClient::new(ProtocolPreference::Auto);
    let sent = client.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["method"], "server/discover");
    let meta = &sent[0]["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({})
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "test");
    let ready = client.receive(json!({"id": 0, "result": {
        "resultType": "complete", "supportedVersions": ["2025-11-25", "2026-07-28", "2031-01-01"],
        "capabilities": {"tools": {}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}}}}));
    assert_eq!(ready, "ready 2026-07-28 modern");
    assert!(client.sent().is_empty());
}

#[test]
fn any_other_error_an_empty_result_or_silence_means_a_legacy_server() {
    for code in [-32601, -32602, -32600, -32700, -32000, 0, 404] {
        let mut client = TestClient::new(ProtocolPreference::Auto);
        client.sent();
        client.receive(json!({"id": 0, "error": {"code": code, "message": "no"}}));
        let sent = client.sent();
        assert_eq!(sent[0]["method"], "initialize", "after error {code}");
        assert_eq!(sent[0]["params"]["protocolVersion"], "2025-11-25");
        let ready = client.receive(json!({"id": 1, "result": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}}));
        assert_eq!(ready, "ready 2025-06-18 old");
        assert_eq!(client.sent()[0]["method"], "notifications/initialized");
    }
    let mut polite = TestClient::new(ProtocolPreference::Auto);
    polite.sent();
    polite.receive(json!({"id": 0, "result": {}}));
    assert_eq!(polite.sent()[0]["method"], "initialize");
    let mut silent = TestClient::new(ProtocolPreference::Auto);
    silent.sent();
    silent.session.give_up_probe();
    silent.session.give_up_probe();
    assert_eq!(silent.sent().len(), 1, "initialize is sent once");
}

#[test]
fn a_modern_server_that_is_slow_to_start_is_not_taken_for_a_legacy_one() {
    let mut client = TestClient::new(ProtocolPreference::Auto);
    client.session.give_up_probe();
    let late = client.receive(json!({"id": 0, "result": {"supportedVersions": ["2026-07-28"]}}));
    assert_eq!(late, "ready 2026-07-28 ?");
    let refused = json!({"id": 1, "error": {"code": -32022, "message": "modern only"}});
    assert_eq!(client.receive(refused), "");
    assert_eq!(client.session.strays().late_answers, 1);
}

#[test]
fn versions_that_nobody_shares_are_named() {
    for (preference, answer, failure) in [
        (
            ProtocolPreference::Only(ProtocolVersion::LATEST),
            json!({"id": 0, "error": {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"], "requested": "2026-07-28"}}}),
            "failed: the server speaks 2031-01-01, not 2026-07-28",
        ),
        (
            ProtocolPreference::Only(ProtocolVersion::LATEST),
            json!({"id": 0, "error": {"code": -32601, "message": "no such method"}}),
            "failed: the server refused the handshake: no such method (error -32601)",
        ),
        (
            ProtocolPreference::Only(ProtocolVersion::LATEST_LEGACY),
            json!({"id": 1, "result": {"protocolVersion": "2031-01-01"}}),
            "failed: the server speaks 2031-01-01, not 2025-11-25",
        ),
        (
            ProtocolPreference::Only(ProtocolVersion::LATEST),
            json!({"id": 0, "result": {"supportedVersions": []}}),
            "failed: the server speaks no version, not 2026-07-28",
        ),
    ] {
        let mut client = TestClient::new(preference);
        assert_eq!(client.receive(answer), failure);
    }
}

/// What the server said about the era that it was asked for first says more.
#[test]
fn the_first_refusal_is_reported() {
    let mut client = TestClient::new(ProtocolPreference::LegacyFirst);
    let refusal = json!({"id": 1, "error": {"code": -32603, "message": "license expired"}});
    assert_eq!(client.receive(refusal), "");
    let unknown = json!({"id": 0, "error": {"code": -32601, "message": "no such method"}});
    assert_eq!(
        client.receive(unknown),
        "failed: the server refused the handshake: license expired (error -32603)"
    );
}

/// The second time in the revision that the server has named.
#[test]
fn an_older_server_is_greeted_again() {
    let mut client = TestClient::new(ProtocolPreference::LegacyFirst);
    assert_eq!(client.sent()[0]["method"], "initialize");
    let data = json!({"supported": ["2024-11-05"]});
    let refused = json!({"id": 1, "error": {"code": -32602, "message": "no", "data": data}});
    assert_eq!(client.receive(refused), "");
    let sent = client.sent();
    assert_eq!(sent[0]["params"]["protocolVersion"], "2024-11-05");
    let ready = client.receive(json!({"id": 1, "result": {"protocolVersion": "2024-11-05"}}));
    assert_eq!(ready, "ready 2024-11-05 ?");
}

/// It was locked before.
#[test]
fn a_server_that_has_become_modern_is_asked_once_more() {
    let mut client = TestClient::new(ProtocolPreference::LegacyFirst);
    client.sent();
    let refused = json!({"id": 1, "error": {"code": -32022, "message": "no"}});
    assert_eq!(client.receive(refused), "");
    assert_eq!(client.sent()[0]["method"], "server/discover");
    let ready = client.receive(json!({"id": 0, "result": {"supportedVersions": ["2026-07-28"]}}));
    assert_eq!(ready, "ready 2026-07-28 ?");
}

#[test]
fn what_came_before_a_repeated_page_stays() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    client.session.list_tools();
    let page = json!({"nextCursor": "", "tools": [{"name": "a", "inputSchema": {}}]});
    for expected in [
        "",
        "tools [\"a\"] [\"the list repeats its pages, and may have more tools\"]",
    ] {
        let id = client.sent()[0]["id"].clone();
        assert_eq!(client.receive(json!({"id": id, "result": page})), expected);
    }
}

/// A server may answer twice, or what nobody asked.
#[test]
fn calls_are_told_apart_by_id_and_each_ends_once() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let (first, second) = (client.call("{}"), client.call("{}"));
    let sent = client.sent();
    let (a, b) = (&sent[0]["id"], &sent[1]["id"]);
    let answer = |id: &Value, text: &str| json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}});
    let ended = client.receive(answer(b, "b"));
    assert_eq!(
        ended,
        format!("{} ended [Text {{ text: \"b\" }}]", second.0)
    );
    assert_eq!(client.receive(answer(b, "again")), "");
    assert_eq!(client.receive(answer(&json!(99), "?")), "");
    assert_eq!(client.receive(answer(&json!("x"), "?")), "");
    let ended = client.receive(answer(a, "a"));
    assert_eq!(ended, format!("{} ended [Text {{ text: \"a\" }}]", first.0));
    let strays = client.session.strays();
    assert_eq!((strays.late_answers, strays.unknown_answers), (1, 2));
}

#[test]
fn arguments_keep_their_digits_and_stay_on_one_line() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST_LEGACY);
    client.call("{\n  \"n\": 12345678901234567890.10,\r\n \"text\": \"a\\nb\"\n}");
    let bytes = String::from_utf8(client.session.take_output()).unwrap();
    assert_eq!(bytes.matches('\n').count(), 1);
    assert!(bytes.contains("12345678901234567890.10"));
    assert!(bytes.contains(r#""a\nb""#));
    assert!(
        !bytes.contains("protocolVersion"),
        "legacy requests carry no version"
    );
    assert!(bytes.contains(r#""dev.toolq/idempotency-key":"key-1""#));
    assert!(bytes.contains(
        r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"vendor=a""#
    ));
}

/// A server that answers too late disturbs no other call.
#[test]
fn a_canceled_call_never_ends_and_its_late_answer_is_counted() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let call = client.call("{}");
    let id = client.sent()[0]["id"].clone();
    client.session.cancel_call(call, "timed out after 2s");
    let sent = client.sent();
    assert_eq!(sent[0]["method"], "notifications/cancelled");
    assert_eq!(sent[0]["params"]["requestId"], id);
    assert_eq!(
        client.receive(json!({"id": id, "result": {"content": []}})),
        ""
    );
    assert_eq!(client.session.strays().late_answers, 1);
    client.session.cancel_call(call, "twice");
    assert!(client.sent().is_empty());
}

#[test]
fn progress_only_grows() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let call = client.call("{}");
    let token = client.sent()[0]["params"]["_meta"]["progressToken"].clone();
    let progress = |value: f64| json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": value}});
    assert_eq!(client.receive(progress(0.5)), format!("{} at 0.5", call.0));
    assert_eq!(client.receive(progress(0.5)), "");
    assert_eq!(client.receive(progress(0.1)), "");
    assert_eq!(client.receive(progress(2.0)), format!("{} at 2", call.0));
    let unknown = json!({"method": "notifications/progress", "params": {"progressToken": "x", "progress": 1}});
    assert_eq!(client.receive(unknown), "");
}

/// A ping is answered, anything else refused.
#[test]
fn requests_of_the_server_are_answered_with_their_own_id() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST_LEGACY);
    client.receive(json!({"id": "p-1", "method": "ping"}));
    client.receive(json!({"id": 0, "method": "roots/list", "params": {}}));
    let sent = client.sent();
    assert_eq!(
        sent[0],
        json!({"jsonrpc": "2.0", "id": "p-1", "result": {}})
    );
    assert_eq!(sent[1]["id"], 0);
    assert_eq!(sent[1]["error"]["code"], -32601);
}

/// Otherwise, a server could keep a call from ever ending.
#[test]
fn a_server_may_have_its_request_repeated_with_its_state_but_not_for_ever() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let call = client.call(r#"{"a":1.50}"#);
    let mut ended = String::new();
    for round in 1..=8 {
        let sent = client.sent();
        assert_eq!(sent.len(), 1, "round {round}");
        if round > 1 {
            assert_eq!(sent[0]["params"]["requestState"], "s\u{1F980}");
        }
        let id = &sent[0]["id"];
        ended = client.receive(json!({"id": id, "result": {"resultType": "input_required", "requestState": "s\u{1F980}"}}));
    }
    let failure = "failed: the server asks for input from a user, and there is none here";
    assert_eq!(ended, format!("{} {failure}", call.0));
}

/// Such a server doesn't ask for a repetition, so a write would happen again and again.
#[test]
fn a_server_of_the_legacy_era_has_no_request_repeated() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST_LEGACY);
    client.call("{}");
    let id = client.sent()[0]["id"].clone();
    let result = json!({"resultType": "input_required", "requestState": "s"});
    let ended = client.receive(json!({"id": id, "result": result}));
    assert!(ended.contains("failed"), "{ended}");
    assert_eq!(client.sent(), Vec::<Value>::new());
}

/// A tool without a name, and one of two with the same name.
#[test]
fn unusable_tools_are_left_out_alone_and_pages_are_joined() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    client.session.list_tools();
    let id = client.sent()[0]["id"].clone();
    client.receive(json!({"id": id, "result": {"nextCursor": "", "tools": [
        {"name": "a", "inputSchema": {"type": "object"}},
        {"name": "no_schema"},
        {"inputSchema": {}},
        {"name": "task", "inputSchema": {}, "execution": {"taskSupport": "required"}},
    ]}}));
    let sent = client.sent();
    assert_eq!(sent[0]["params"]["cursor"], "");
    let id = &sent[0]["id"];
    let listed = client.receive(json!({"id": id, "result": {"tools": [
        {"name": "b", "inputSchema": {}}, {"name": "a", "inputSchema": {}},
    ]}}));
    assert_eq!(
        listed,
        "tools [\"a\", \"no_schema\", \"b\"] [\
         \"the tool without a name is left out: missing field `name`\", \
         \"the tool task is left out: it can only be called as a task\", \
         \"the tool a is left out: another tool has its name\"]"
    );
}

/// Memory is bounded.
#[test]
fn of_very_many_tools_the_first_ones_are_taken() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    client.session.list_tools();
    let id = client.sent()[0]["id"].clone();
    let tool =
        |number: usize| json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}});
    let tools: Vec<Value> = (0..10_002).map(tool).collect();
    let listed = client.receive(json!({"id": id, "result": {"tools": tools}}));
    let end = "\"t9999\"] [\"it has more than 10000 tools: 2 are left out\"]";
    assert!(listed.ends_with(end), "{}", &listed[listed.len() - 200..]);
}

/// What nothing depends on costs neither a tool nor a server.
#[test]
fn a_detail_of_another_type_says_nothing() {
    let mut client = TestClient::new(ProtocolPreference::LegacyFirst);
    let identity = json!({"name": ["s"], "version": 5});
    let ready = client.receive(json!({"id": 1, "result": {
        "protocolVersion": "2025-11-25", "serverInfo": identity, "capabilities": null,
    }}));
    assert_eq!(ready, "ready 2025-11-25 ");
    client.session.list_tools();
    let id = client.sent().pop().unwrap()["id"].clone();
    let schema = json!({"type": "object"});
    let listed = client.receive(json!({"id": id, "result": {"nextCursor": 5, "tools": [
        {"name": "a", "inputSchema": schema, "title": 5, "description": [], "annotations": "x", "execution": 1},
        {"name": "b", "inputSchema": schema, "annotations": {"readOnlyHint": "yes"}},
        {"name": "c", "inputSchema": "none"},
    ]}}));
    assert_eq!(
        listed,
        "tools [\"a\", \"b\", \"c\"] [\"the cursor of its next page isn't a text, so it may have more tools\"]"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_message() {
    let mut client = TestClient::new(ProtocolPreference::LegacyFirst);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25"}});
    let events = client
        .session
        .receive(format!("\u{feff}{answer}").as_bytes());
    assert_eq!(describe(&events), "ready 2025-11-25 ?");
}

/// After 1,000 pages.
#[test]
fn a_list_that_never_ends_is_given_up() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    client.session.list_tools();
    let (mut listed, mut page) = (String::new(), 0);
    while listed.is_empty() {
        let id = client.sent()[0]["id"].clone();
        page += 1;
        let cursor = page.to_string();
        listed = client.receive(json!({"id": id, "result": {"nextCursor": cursor, "tools": []}}));
    }
    assert_eq!(
        listed,
        "no tools: the server's list of tools has over 1000 pages"
    );
}

/// Memory is bounded, and other calls go on.
#[test]
fn an_answer_that_is_too_long_fails_its_own_call() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let call = client.call("{}");
    let id = client.sent()[0]["id"].clone();
    let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[");
    let events = client
        .session
        .receive_too_long(start.as_bytes(), 300_000_000);
    let failure = "failed: the server's answer has 300000000 bytes, which is too long";
    assert_eq!(describe(&events), format!("{} {failure}", call.0));
}

/// No call could be made, so nothing is waited for.
#[test]
fn an_answer_that_is_too_long_fails_the_handshake_at_once() {
    for (version, id, method) in [
        (ProtocolVersion::LATEST, 0, "server/discover"),
        (ProtocolVersion::LATEST_LEGACY, 1, "initialize"),
    ] {
        let mut client = TestClient::new(ProtocolPreference::Only(version));
        let start = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"instructions\":\"");
        let events = client
            .session
            .receive_too_long(start.as_bytes(), 300_000_000);
        let failure = format!(
            "failed: the server's answer to {method} can't be read: it has 300000000 bytes, which is too long"
        );
        assert_eq!(describe(&events), failure);
    }
}

#[test]
fn a_request_of_the_server_that_is_too_long_is_refused_and_ends_no_call() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let call = client.call("{}");
    let id = client.sent()[0]["id"].clone();
    let start = format!("{{\"id\":{id},\"method\":\"sampling/createMessage\",\"params\":{{");
    let events = client
        .session
        .receive_too_long(start.as_bytes(), 300_000_000);
    assert_eq!(describe(&events), "");
    let sent = client.sent();
    assert_eq!(
        (&sent[0]["id"], &sent[0]["error"]["code"]),
        (&id, &json!(-32600))
    );
    assert!(client.session.is_waiting_for(call.first_request()));
}

/// Lines that aren't messages end no call.
#[test]
fn noise_on_stdout_is_skipped_and_counted() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    for noise in ["Listening…", "{\"level\":\"info\"}", "[1,2]", "null", "{"] {
        assert_eq!(client.receive_line(noise), "");
    }
    assert_eq!(client.session.strays().noise_lines, 5);
}

#[test]
fn a_list_with_all_that_servers_declare_is_read() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/recordings/mcp/tools-list/harbor.json"
    );
    let mut answer: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    client.session.list_tools();
    answer["id"] = client.sent()[0]["id"].clone();
    let events = client.session.receive(answer.to_string().as_bytes());
    let [SessionEvent::ToolsListed(Ok(list))] = &events[..] else {
        panic!("{events:?}");
    };
    let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["find_ship", "book-berths", "clear_harbor"]);
}

/// A transport that has one answer per request knows which request an error or a broken answer belongs to.
#[test]
fn a_request_can_end_without_a_message_that_names_it() {
    let mut client = TestClient::ready(ProtocolVersion::LATEST);
    let (refused, broken, abandoned) = (client.call("{}"), client.call("{}"), client.call("{}"));
    let session = &mut client.session;
    let is_waiting = |session: &ClientSession| {
        [refused, broken, abandoned].map(|call| session.is_waiting_for(call.first_request()))
    };
    assert_eq!(is_waiting(session), [true; 3]);
    let error = RpcError::new(-32602, "no");
    let events = session.receive_error(refused.first_request(), error);
    assert!(
        describe(&events).contains("no (error -32602)"),
        "{events:?}"
    );
    let event = session.reject_answer(broken.first_request(), "it is in Latin".to_owned());
    assert!(
        matches!(event, Some(SessionEvent::CallEnded { call, .. }) if call == broken),
        "{event:?}"
    );
    let request = abandoned.first_request();
    assert_eq!(session.abandon_request(request), Some(abandoned));
    assert_eq!(session.abandon_request(request), None);
    assert_eq!(is_waiting(session), [false; 3]);
}
