//! Errors of inputs, with their positions.

use super::shapes::TOOL_USE;
use super::{read, read_as, read_error, turns};
use toolq_core::types::Dialect;

/// Its first line is of a kind that only Claude Code knows.
const CLAUDE_CODE_LOG: &str = concat!(
    r#"{"type":"summary","summary":"s"}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}}"#,
    "\n",
);

/// What `--from` names binds. A document of another dialect isn't taken for one without calls.
#[test]
fn a_document_of_another_dialect_than_named_is_an_error() {
    let completion = r#"{"choices":[{"message":{"role":"assistant","content":"hi"}}]}"#;
    let message = format!(r#"{{"role":"assistant","content":[{TOOL_USE}]}}"#);
    for (text, from, found) in [
        (&*message, Dialect::OpenAiChat, "anthropic"),
        (&*message, Dialect::OpenAiResponses, "anthropic"),
        (completion, Dialect::Anthropic, "openai-chat"),
        (
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"a","content":"b"}]"#,
            Dialect::Anthropic,
            "openai-chat",
        ),
        (
            r#"{"type":"function_call","call_id":"a","name":"b","arguments":"{}"}"#,
            Dialect::Anthropic,
            "openai-responses",
        ),
        (&*message, Dialect::Codex, "anthropic"),
        (&*message, Dialect::ClaudeCode, "anthropic"),
        (completion, Dialect::Toolq, "openai-chat"),
        (CLAUDE_CODE_LOG, Dialect::Anthropic, "claude-code"),
        (CLAUDE_CODE_LOG, Dialect::OpenAiResponses, "claude-code"),
        (CLAUDE_CODE_LOG, Dialect::Codex, "claude-code"),
    ] {
        let error = read_as(Some(from), text)
            .err()
            .unwrap_or_else(|| panic!("{from}: {text}"));
        let expected = format!("this has the form of `{found}`, but `--from` says `{from}`");
        assert_eq!(error.message, expected, "{text}");
        assert!(
            error
                .hint
                .unwrap()
                .contains(&format!("write `--from {found}`"))
        );
    }
    for text in [
        completion,
        r#"{"role":"assistant","content":"hi"}"#,
        r#"{"messages":[{"role":"user","content":"hi"}]}"#,
    ] {
        read_as(Some(Dialect::OpenAiChat), text).unwrap();
    }
    read_as(Some(Dialect::ClaudeCode), CLAUDE_CODE_LOG).unwrap();
}

/// An error has the position of the problem, even after valid documents.
#[test]
fn errors_have_line_and_column() {
    let cases: [(String, usize, usize, &str); 12] = [
        (
            "\n {\"role\":\"assistant\",\"stop_reason\":\"tool_use\"}".to_owned(),
            2,
            2,
            "has no `content`",
        ),
        (
            "{\"stop_reason\":\"tool_use\",\"content\":null}".to_owned(),
            1,
            1,
            "has no `content`",
        ),
        (
            format!("{TOOL_USE}\n{TOOL_USE} }}"),
            2,
            TOOL_USE.len() + 2,
            "expected value",
        ),
        (
            format!("{TOOL_USE}\n{{\"a\":1\n{TOOL_USE}"),
            3,
            1,
            "expected `,` or `}`",
        ),
        (format!("[{TOOL_USE},\n  é]"), 2, 3, "expected value"),
        (
            format!("{TOOL_USE}\n\n  {{\"é\":[1,\n2"),
            4,
            2,
            "ends in the middle",
        ),
        (
            "{\"messages\":[\n {\"role\":\"assistant\",\"content\":5}]}".to_owned(),
            2,
            32,
            "not a number",
        ),
        (
            "[{\"role\":\"assistant\",\"content\":[]},\n 7]".to_owned(),
            2,
            2,
            "must be an object",
        ),
        (
            "{\"role\":\"assistant\",\"content\":[\n{\"call\":{\"name\":\"rm\"}}]}".to_owned(),
            2,
            1,
            "has no `type`",
        ),
        // It is JSON, though no reader of JSON has such a number.
        ("1e400".to_owned(), 1, 1, "a number isn't a model response"),
        (
            "{\"type\":\"tool_use\",\"type\":\"text\"}".to_owned(),
            1,
            27,
            "`type` appears twice",
        ),
        (
            "{\"é\":0,\"role\":\"assistant\",\"content\":[],\"content\":[]}".to_owned(),
            1,
            50,
            "`content` appears twice",
        ),
    ];
    for (text, line, column, expected) in cases {
        let (found_line, found_column, message) = read_error(&text);
        assert_eq!(
            (found_line, found_column),
            (line, column),
            "{text}: {message}"
        );
        assert!(message.contains(expected), "{message}");
    }
}

/// Inputs that aren't a model response in any form.
#[test]
fn errors_name_what_the_input_is_instead_of_a_response() {
    for (text, expected) in [
        ("", "empty"),
        (" \n\t\r\n", "empty"),
        (r#"{"role":"user","content":"hi"}"#, "no model response"),
        (r#"[{"role":"user","content":"hi"}]"#, "no model response"),
        (
            r#"{"type":"tool_result","tool_use_id":"a","content":"x"}"#,
            "no model response",
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            "an API error (overloaded_error), not",
        ),
        (
            r#"{"error":{"message":"x","code":"no\u001b[31m"}}"#,
            "an API error (no\\u{1b}[31m: x), not",
        ),
        (
            r#"{"object":"response","status":"failed","error":{},"output":[]}"#,
            "the API returned an error",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            "an object with the keys `jsonrpc`, `id`",
        ),
        (
            r#"{"type":"thread.started"}"#,
            "an object with the keys `type`",
        ),
        (r#"{"choices":[]}"#, "no choice"),
        (r#"{"choices":[{"delta":{}}]}"#, "no `message`"),
        (
            r#"{"role":"assistant","function_call":{"name":"n"}}"#,
            "replaced by `tool_calls`",
        ),
        ("{}", "an empty object"),
        ("[[]]", "an array"),
        ("null", "null"),
        ("12", "a number"),
        ("hello", "not valid JSON"),
        ("event: message_start\ndata: {}", "not valid JSON"),
    ] {
        let (_, _, message) = read_error(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
    let log = "{\"type\":\"summary\"}\n{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}";
    assert!(
        read_error(log).2.contains("no model response"),
        "a session log without a model response"
    );
    let mixed = format!("{{\"type\":\"summary\"}}\n{TOOL_USE}");
    assert!(
        read_error(mixed).2.contains("`type`"),
        "only session logs have lines of unknown kinds"
    );
}

#[test]
fn a_response_without_calls_is_a_turn() {
    for text in [
        "[]",
        r#"{"role":"assistant","content":"done"}"#,
        r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web","input":{}},{"type":"mcp_tool_use"},{"type":"new_kind"}]}"#,
        r#"{"choices":[{"message":{"role":"assistant","content":"","tool_calls":null}}]}"#,
        r#"{"output":[{"type":"message","role":"assistant","content":[]},{"type":"web_search_call"}]}"#,
    ] {
        let recording = read(text).unwrap();
        assert_eq!(
            (recording.len(), turns(&recording)[0].calls.len()),
            (1, 0),
            "{text}"
        );
    }
    let request = read(r#"{"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
    assert!(
        request.is_empty(),
        "a request without a response has no turn"
    );
}

/// Bytes that aren't valid UTF-8 are reported with their position.
#[test]
fn wrong_encodings_are_reported() {
    let utf16: Vec<u8> = TOOL_USE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(read_error(&utf16).2.contains("UTF-16"));
    assert!(
        read_error([&[0xFF, 0xFE][..], &utf16].concat())
            .2
            .contains("UTF-16")
    );
    assert!(
        read_error(format!("\u{FEFF}{TOOL_USE}"))
            .2
            .contains("byte order mark")
    );
    for bytes in [&b"\xC3\x28"[..], b"\xED\xA0\x80", b"\xFF", b"\xC3"] {
        let text = [b"[]\n[{\"a\":\"".as_slice(), bytes].concat();
        let (line, column, message) = read_error(text);
        assert!(message.contains("invalid UTF-8"), "{message}");
        assert_eq!((line, column), (2, 8));
    }
}

/// If a line's JSON isn't closed, parsing fails on the next line; the hint names the line that is to blame.
#[test]
fn an_unclosed_line_is_reported() {
    let text = format!("{TOOL_USE}\n[{TOOL_USE}\n{TOOL_USE}\n");
    let error = read(text).err().unwrap();
    assert_eq!(error.position.unwrap().line, 3);
    assert!(error.hint.unwrap().contains("begins on line 2"));
}
