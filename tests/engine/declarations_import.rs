//! Importing the declarations of other programs into a tools.yaml.

use std::io::Cursor;

use serde_json::{Value, json};
use toolq_core::tools_file::starter_tools_file;
use toolq_core::transcript::{InputError, InputSource, ToolDeclaration, read_declarations};

fn parse_declarations(text: &str) -> Result<Vec<ToolDeclaration>, InputError> {
    let source = InputSource::from_pipe("in", Cursor::new(text.to_owned().into_bytes())).unwrap();
    read_declarations(source, 1 << 20).map(|declared| declared.tools)
}

#[test]
fn declarations_of_every_vendor_are_read() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let anthropic = json!({"name": "n", "description": "d", "input_schema": schema});
    let server = json!({"type": "web_search_20250305", "name": "web_search"});
    let chat = json!({"type": "function", "function": {"name": "n", "description": "d", "parameters": schema}});
    let responses =
        json!({"type": "function", "name": "n", "description": "d", "parameters": schema});
    let mcp = json!({"name": "n", "description": "d", "inputSchema": schema});
    for document in [
        json!({"messages": [], "tools": [anthropic, server]}),
        json!([anthropic]),
        json!({"tools": [chat]}),
        json!([chat]),
        json!({"input": "hi", "tools": [{"type": "web_search"}, responses]}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [mcp]}}),
        json!({"tools": [mcp]}),
        mcp.clone(),
    ] {
        let found = parse_declarations(&document.to_string()).unwrap();
        let [tool] = &found[..] else {
            panic!("{document}")
        };
        assert_eq!((&*tool.name, &*tool.description), ("n", "d"));
        let read: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
        assert_eq!(read, schema, "{document}");
    }
}

#[test]
fn hints_become_an_effect() {
    let text = r#"{"tools":[
        {"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}},
        {"name":"put","inputSchema":{},"annotations":{"readOnlyHint":false,"idempotentHint":true}},
        {"name":"post","inputSchema":{},"annotations":{"destructiveHint":true}},
        {"name":"bare","type":"function"}]}"#;
    let yaml = starter_tools_file(&parse_declarations(text).unwrap());
    let loaded: Value = serde_saphyr::from_str(&yaml).unwrap();
    let effect = |name: &str| loaded["tools"][name]["effect"].as_str().map(str::to_owned);
    let effects = ["look", "put", "post", "bare"]
        .map(effect)
        .map(Option::unwrap);
    assert_eq!(effects, ["read", "idempotent", "write", "write"]);
    assert_eq!(
        loaded["tools"]["bare"]["input_schema"],
        json!({"type": "object"})
    );
}

#[test]
fn an_input_without_declarations_is_an_error() {
    for (text, line, message) in [
        ("", 1, "declares no tools"),
        (r#"{"messages":[]}"#, 1, "declares no tools"),
        (r#"[{"type":"web_search"}]"#, 1, "declares no tools"),
        ("[\n3]", 2, "must be an object"),
        (
            "[{\"name\":\"a\"},\n{\"name\":\"a\"}]",
            2,
            "two tools are named `a`",
        ),
        ("{\"tools\":", 1, "ends in the middle"),
    ] {
        let error = parse_declarations(text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!(error.position.unwrap().line, line, "{text}");
    }
}
