//! Tools of other servers, and what they answer.

use std::fs;

use crate::serve::client::{Client, TOOLS, listed_output_schema, modern, text_of};
use crate::support::CliSandbox;
use crate::support::shell_server::shell_server;
use crate::support::waiting::{PATIENCE, wait_until_gone};
use serde_json::{Value, json};

/// toolq between a client and another server: here, another toolq.
#[test]
fn tools_of_another_server_are_served() {
    let toolq = env!("CARGO_BIN_EXE_toolq");
    let outer = format!(
        r#"
version: 1
servers:
  inner:
    command: {{argv: ["{toolq}", serve, -q, -c, inner.yaml], env: {{XDG_STATE_HOME: inner-state}}}}
tools:
  say: {{input_schema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}, effect: read, mcp: {{server: inner, tool: echo}}}}
  hang: {{input_schema: {{type: object}}, effect: read, timeout: 1000s, mcp: {{server: inner}}}}
"#
    );
    let sandbox = CliSandbox::new().tools(&outer).file("inner.yaml", TOOLS);
    let mut client = Client::start(sandbox, &["serve"]);
    client.initialize();
    client.call("long", "hang", &json!({}));
    let pids = client.pids(2);
    assert_eq!(client.result(1, "say", &json!({"text": "hi"})).0, "hi");
    client.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}}"#,
    );
    wait_until_gone(&pids);
    assert_eq!(client.result(2, "say", &json!({"text": "ho"})).0, "ho");
    assert_eq!(client.leave().rest, [""; 0]);
}

/// A log of `serve` is a recording of what a client did with the server.
#[test]
fn what_a_server_answered_is_replayed_against_the_server_of_today() {
    let toolq = env!("CARGO_BIN_EXE_toolq");
    let outer = format!(
        r#"
version: 1
servers:
  inner:
    command: {{argv: ["{toolq}", serve, -q, -c, inner.yaml], env: {{XDG_STATE_HOME: inner-state}}}}
    prefix: ""
    hints: trust
"#
    );
    let inner = |text: &str| {
        format!(
            r#"
version: 1
tools:
  say:
    input_schema: {{type: object, properties: {{text: {{type: string}}}}, required: [text]}}
    effect: read
    command: [echo, "{text} {{text}}"]
  fail: {{input_schema: {{type: object}}, effect: read, command: [sh, -c, "echo no cheese; exit 3"]}}
"#
        )
    };
    let sandbox = CliSandbox::new()
        .tools(&outer)
        .file("inner.yaml", inner("hello"));
    let mut client = Client::start(sandbox, &["serve", "-q", "--log", "recording.jsonl"]);
    client.initialize();
    let said = client.result(1, "say", &json!({"text": "you"}));
    assert_eq!(said, ("hello you".to_owned(), false));
    let (text, is_error) = client.result(2, "fail", &json!({}));
    assert!(is_error && text.contains("no cheese"), "{text}");
    let sandbox = client.leave().sandbox;

    let replay = || {
        let replayed = sandbox.command(&["replay", "recording.jsonl"]).output();
        let replayed = replayed.unwrap();
        let stderr = String::from_utf8_lossy(&replayed.stderr).into_owned();
        (replayed.status.code(), stderr)
    };
    let (code, stderr) = replay();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("none differ, 2 match"), "{stderr}");

    fs::write(sandbox.path().join("inner.yaml"), inner("goodbye")).unwrap();
    let (code, stderr) = replay();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("goodbye you"), "{stderr}");
}

/// A server whose tools have output schemas. It answers with the arguments of the call.
fn structured_server() -> String {
    let listed = r#"result='{"tools":[{"name":"weigh",'$schema':{"type":"object","properties":{"kg":{"type":["number","string"]}},"required":["kg"]}},{"name":"list",'$schema':{"type":"array"}}]}'"#;
    let called = r#"rest=${line#*'"arguments":'}
    case $rest in
    *'"array"'*) content=',"structuredContent": [ 1.50, 2 ]' ;;
    *'"none"'*) content= ;;
    *'"long"'*) content=',"structuredContent":{"kg":1,"more":"'$(printf '%0200d' 0)'"}' ;;
    *'"secret"'*) content=',"structuredContent":{"kg":"'$S_TOKEN'"}' ;;
    *) content=',"structuredContent": { "kg": 1.50 }' ;;
    esac
    result='{"content":[{"type":"text","text":"some kilograms"}]'$content'}'"#;
    let answers = [("tools/list", listed), ("tools/call", called)];
    let schema = r#"schema='"inputSchema":{"type":"object"},"outputSchema"'"#;
    shell_server(schema, &answers)
}

const STRUCTURED_TOOLS: &str = r#"
version: 1
servers:
  s: {command: {argv: [./server], env: {S_TOKEN: "${S_TOKEN}"}}, prefix: "", defaults: {max_output: 100}}
tools:
  weigh_as_json: {effect: read, output: json, mcp: {server: s, tool: weigh, arguments: {}}, input_schema: {type: object}}
  weigh: {effect: read, mcp: {server: s}}
"#;

fn structured_client() -> Client {
    let sandbox = CliSandbox::new()
        .tools(STRUCTURED_TOOLS)
        .program("server", &structured_server())
        .env("S_TOKEN", "s3cr3t-canary");
    let locked = sandbox.command(&["-q", "servers", "lock"]).output();
    assert!(locked.unwrap().status.success());
    let mut client = Client::start(sandbox, &["serve", "-q"]);
    client.initialize();
    client
}

#[test]
fn the_structured_content_of_another_server_passes_through() {
    let mut client = structured_client();
    let listed = client.ask(1, "tools/list", &json!({}));
    for name in ["weigh", "weigh_as_json"] {
        let schema = listed_output_schema(&listed, name).unwrap();
        assert_eq!(schema["required"], json!(["kg"]), "{name}");
    }
    client.call(2, "weigh", &json!({}));
    let line = client.messages.recv_timeout(PATIENCE).unwrap();
    assert!(
        line.contains(r#""structuredContent":{"kg":1.50}"#)
            && line.contains(r#""text":"some kilograms""#)
            && line.contains(r#""isError":false"#),
        "{line}"
    );
    client.call(3, "weigh_as_json", &json!({}));
    let answer = client.receive();
    assert_eq!(answer["result"]["structuredContent"]["kg"], json!(1.5));
    assert_eq!(text_of(&answer).0, r#"{"kg":1.50}"#);
    client.call(4, "weigh", &json!({"x": "secret"}));
    let answer = client.receive();
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({"kg": "[masked]"})
    );
}

/// Clients refuse a result without the structured content that the list has promised.
#[test]
fn a_result_without_its_promised_structured_content_is_an_error_with_its_text() {
    let mut client = structured_client();
    for kind in ["none", "long"] {
        client.call(kind, "weigh", &json!({"x": kind}));
        let answer = client.receive();
        let (text, is_error) = text_of(&answer);
        assert!(
            is_error && text.contains("sent no structured content"),
            "{answer}"
        );
        assert_eq!(answer["result"]["content"][1]["text"], "some kilograms");
        assert_eq!(answer["result"].get("structuredContent"), None);
    }
}

#[test]
fn a_legacy_client_gets_no_array_of_another_server() {
    let mut client = structured_client();
    let listed = client.ask(1, "tools/list", &json!({}));
    assert_eq!(listed_output_schema(&listed, "list"), None);
    client.call(2, "list", &json!({"x": "array"}));
    let answer = client.receive();
    assert_eq!(text_of(&answer), ("some kilograms".to_owned(), false));
    assert_eq!(answer["result"].get("structuredContent"), None);
    let listed = client.ask(3, "tools/list", &modern(&json!({})));
    assert!(listed_output_schema(&listed, "list").is_some());
    let call = modern(&json!({"name": "list", "arguments": {"x": "array"}}));
    let answer = client.ask(4, "tools/call", &call);
    assert_eq!(answer["result"]["structuredContent"], json!([1.5, 2]));
}

/// Answers with a text, a link, a sound, a picture and a resource; one of them has a secret, and one more is long.
fn media_server() -> String {
    let listed = r#"result='{"tools":[{"name":"show","inputSchema":{"type":"object"}}]}'"#;
    let called = r#"result='{"content":['$(sed "s/SECRET/$S_TOKEN/" blocks.json)']}'"#;
    shell_server("", &[("tools/list", listed), ("tools/call", called)])
}

/// Content that isn't text is passed through unchanged, regardless of the form that a model would get.
#[test]
fn sounds_links_and_resources_of_another_server_pass_through() {
    let blocks = [
        json!({"type": "text", "text": "A note."}),
        json!({"type": "resource_link", "uri": "note:1", "name": "one SECRET", "title": "One", "size": 12, "annotations": {"priority": 0.5}}),
        json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}),
        json!({"type": "image", "data": "BBBB", "mimeType": "image/png"}),
        json!({"type": "resource", "resource": {"uri": "note:2", "blob": "CCCC", "mimeType": "a/b"}}),
        json!({"type": "audio", "data": "A".repeat(4000), "mimeType": "audio/wav"}),
    ];
    let sent = blocks.each_ref().map(Value::to_string).join(",");
    for output in ["text", "content"] {
        let tools = format!(
            "version: 1
servers:
  s: {{command: {{argv: [./server], env: {{S_TOKEN: \"${{S_TOKEN}}\"}}}}, prefix: \"\", defaults: {{max_output: 3000, output: {output}}}}}
"
        );
        let sandbox = CliSandbox::new()
            .tools(&tools)
            .program("server", &media_server())
            .file("blocks.json", &sent)
            .env("S_TOKEN", "s3cr3t-canary");
        let mut client = Client::start(sandbox, &["serve", "-q"]);
        client.initialize();
        client.call("c", "show", &json!({}));
        let content = client.receive()["result"]["content"].clone();
        let mut link = blocks[1].clone();
        link["name"] = json!("one [masked]");
        assert_eq!(content[0], blocks[0], "{output}");
        assert_eq!(content[1], link, "{output}");
        for index in 2..5 {
            assert_eq!(content[index], blocks[index], "{output}");
        }
        let long = content[5]["text"].as_str().unwrap();
        assert!(long.starts_with("[a sound of type audio/wav, "), "{long}");
        client.leave();
    }
}
