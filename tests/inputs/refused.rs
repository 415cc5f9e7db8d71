//! What is no recording, with its place.

use super::shapes::USE;
use super::{error, read, turns};

/// FAULTS 2: what is wrong is named where it stands, also behind valid documents.
#[test]
fn errors_have_their_place() {
    let table: [(String, usize, usize, &str); 9] = [
        (
            format!("{USE}\n{USE} }}"),
            2,
            USE.len() + 2,
            "expected value",
        ),
        (
            format!("{USE}\n{{\"a\":1\n{USE}"),
            3,
            1,
            "expected `,` or `}`",
        ),
        (format!("[{USE},\n  é]"), 2, 3, "expected value"),
        (
            format!("{USE}\n\n  {{\"é\":[1,\n2"),
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
            "{\"role\":\"assistant\",\"content\":[\n{\"toolUse\":{\"name\":\"rm\"}}]}".to_owned(),
            2,
            1,
            "has no `type`",
        ),
        (
            "{\"type\":\"tool_use\",\"type\":\"text\"}".to_owned(),
            1,
            27,
            "`type` stands twice",
        ),
        (
            "{\"é\":0,\"role\":\"assistant\",\"content\":[],\"content\":[]}".to_owned(),
            1,
            50,
            "`content` stands twice",
        ),
    ];
    for (text, line, column, message) in table {
        let found = error(&text);
        assert_eq!((found.0, found.1), (line, column), "{text}: {}", found.2);
        assert!(found.2.contains(message), "{}", found.2);
    }
}

/// FAULTS 1, 14, 18: no form of a model's answer.
#[test]
fn what_is_no_answer_says_what_it_is() {
    for (text, message) in [
        ("", "empty"),
        (" \n\t\r\n", "empty"),
        (r#"{"role":"user","content":"hi"}"#, "no answer of a model"),
        (
            r#"[{"role":"user","content":"hi"}]"#,
            "no answer of a model",
        ),
        (
            r#"{"type":"tool_result","tool_use_id":"a","content":"x"}"#,
            "no answer of a model",
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            "an API's error (overloaded_error), not",
        ),
        (
            r#"{"error":{"message":"x","code":"no\u001b[31m"}}"#,
            "an API's error (no\\u{1b}[31m: x), not",
        ),
        (
            r#"{"object":"response","status":"failed","error":{},"output":[]}"#,
            "the API answered with an error",
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
        ("hello", "no JSON"),
        ("event: message_start\ndata: {}", "no JSON"),
    ] {
        let (_, _, found) = error(text);
        assert!(found.contains(message), "{text}: {found}");
    }
    let log = "{\"type\":\"summary\"}\n{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}";
    assert!(
        error(log).2.contains("no answer of a model"),
        "a log without one"
    );
    let mixed = format!("{{\"type\":\"summary\"}}\n{USE}");
    assert!(
        error(mixed).2.contains("`type`"),
        "only session logs have lines of unknown kinds"
    );
}

#[test]
fn an_answer_without_calls_is_a_turn() {
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
        "a request that is still to be sent asks nothing"
    );
}

/// FAULTS 11: bytes that are no UTF-8 are named where they stand.
#[test]
fn encodings_are_named() {
    let utf16: Vec<u8> = USE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(error(&utf16).2.contains("UTF-16"));
    assert!(
        error([&[0xFF, 0xFE][..], &utf16].concat())
            .2
            .contains("UTF-16")
    );
    assert!(
        error(format!("\u{FEFF}{USE}"))
            .2
            .contains("byte order mark")
    );
    for bytes in [&b"\xC3\x28"[..], b"\xED\xA0\x80", b"\xFF", b"\xC3"] {
        let text = [b"[]\n[{\"a\":\"".as_slice(), bytes].concat();
        let (line, column, message) = error(text);
        assert!(message.contains("no UTF-8"), "{message}");
        assert_eq!((line, column), (2, 8));
    }
}

/// FAULTS 2: where a line lacks its end, the next one is where reading stops; the bad one is named.
#[test]
fn the_line_that_is_not_closed_is_named() {
    let text = format!("{USE}\n[{USE}\n{USE}\n");
    let error = read(text).err().unwrap();
    assert_eq!(error.place.unwrap().line, 3);
    assert!(error.hint.unwrap().contains("begins on line 2"));
}
