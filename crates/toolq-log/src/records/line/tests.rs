//! Lines that toolq writes are parsed without a full JSON parser, and always with the same result.

use proptest::prelude::*;

use super::*;

/// Returns the members of a record by value.
fn record_members(read: &ParsedRecord<'_>) -> impl PartialEq + std::fmt::Debug {
    let texts = [&read.kind, &read.prev].map(|text| text.clone().into_owned());
    let values = [read.content, read.metadata].map(|raw| raw.get().to_owned());
    (
        (read.seq, read.id, read.parent_id, read.timestamp),
        texts,
        values,
    )
}

fn sealed_text(parent: Option<Uuid>, content: &str) -> String {
    let head = RecordHeader {
        seq: 107,
        id: Uuid::from_u128(0x0193_4f5c_7a10_7abc_9def_0123_4567_89ab),
        parent,
        timestamp: 1_763_755_200_000,
        kind: &RecordKind::ToolResult,
        prev: "0123456789abcdef",
    };
    let content: serde_json::Value = serde_json::from_str(content).unwrap();
    let metadata = serde_json::json!({"tool_use_id": "a\"b", "n": [1, {"x": null}]});
    let mut line = Vec::new();
    write_sealed_line(&mut line, &head, &content, &metadata).unwrap();
    let line = String::from_utf8(line).unwrap();
    line[..line.len() - SEAL_BYTES - 1].to_owned()
}

/// Returns whether a line without its seal has the canonical form. If so, a JSON parser must find the same members.
fn parses_canonically(sealed: &str) -> bool {
    let Some(read) = parse_canonical_line(sealed) else {
        return false;
    };
    let line = format!("{sealed},\"crc\":\"00000000\"}}");
    let parsed: ParsedRecord<'_> = serde_json::from_str(&line).unwrap();
    assert_eq!(record_members(&read), record_members(&parsed), "{line}");
    true
}

#[test]
fn written_lines_are_canonical() {
    for parent in [None, Some(Uuid::max())] {
        for content in ["null", "\"a \\\" b\"", "[1,-2e3]", "{\"a\":{}}", "7"] {
            assert!(
                parses_canonically(&sealed_text(parent, content)),
                "{content}"
            );
        }
    }
}

/// Lines of another writer, with spaces or members in another order, are valid, too.
#[test]
fn other_forms_are_left_to_the_json_parser() {
    let line = sealed_text(None, "null");
    for (from, to) in [
        ("\"seq\":107", "\"seq\": 107"),
        ("\"seq\":107", "\"seq\":0107"),
        ("\"seq\":107", "\"seq\":107.0"),
        ("107", "99999999999999999999"),
        ("\"type\":\"tool_result\"", "\"type\":\"tool\\u005fresult\""),
        ("\"content\":null", "\"content\": null"),
        ("\"content\":null", "\"content\":null,\"more\":1"),
        ("\"content\":null", "\"content\":nul"),
        (",\"prev\":", ",\"more\":1,\"prev\":"),
        ("cdef\"", "cdef\",\"more\":1"),
        ("cdef\"", "cdef"),
        ("cdef\"", "\\u0063def\""),
    ] {
        let other = line.replacen(from, to, 1);
        assert_ne!(line, other);
        assert!(!parses_canonically(&other), "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Characters are changed, removed and inserted as if the seal still matched.
    #[test]
    fn the_canonical_parser_agrees_with_a_json_parser(
        places in prop::collection::vec((0..400_usize, 0..3_usize, "[ {}\\[\\]\",:0-9a-fnul\\\\é]"), 0..4)
    ) {
        let mut line: Vec<char> = sealed_text(Some(Uuid::max()), "{\"a\":[\"b\"]}").chars().collect();
        for (at, lost, added) in places {
            let at = at % line.len();
            let end = (at + lost).min(line.len());
            line.splice(at..end, added.chars());
        }
        parses_canonically(&line.into_iter().collect::<String>());
    }
}
