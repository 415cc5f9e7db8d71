use proptest::prelude::*;

use super::*;

/// Members of a record by value.
fn members(read: &Read<'_>) -> impl PartialEq + std::fmt::Debug {
    let texts = [&read.kind, &read.prev].map(|text| text.clone().into_owned());
    let values = [read.content, read.metadata].map(|raw| raw.get().to_owned());
    (
        (read.seq, read.id, read.parent_id, read.timestamp),
        texts,
        values,
    )
}

fn written(parent: Option<Uuid>, content: &str) -> String {
    let head = Head {
        seq: 107,
        id: Uuid::from_u128(0x0193_4f5c_7a10_7abc_9def_0123_4567_89ab),
        parent,
        timestamp: 1_763_755_200_000,
        kind: &Kind::ToolResult,
        prev: "0123456789abcdef",
    };
    let content: serde_json::Value = serde_json::from_str(content).unwrap();
    let metadata = serde_json::json!({"tool_use_id": "a\"b", "n": [1, {"x": null}]});
    let mut line = Vec::new();
    seal(&mut line, &head, &content, &metadata).unwrap();
    let line = String::from_utf8(line).unwrap();
    line[..line.len() - SEAL - 1].to_owned()
}

/// Of what is sealed: a parser finds the same, and refuses what it refuses.
fn check(sealed: &str) -> bool {
    let Some(read) = as_written(sealed) else {
        return false;
    };
    let line = format!("{sealed},\"crc\":\"00000000\"}}");
    let parsed: Read<'_> = serde_json::from_str(&line).unwrap();
    assert_eq!(members(&read), members(&parsed), "{line}");
    true
}

#[test]
fn what_is_written_needs_no_parser() {
    for parent in [None, Some(Uuid::max())] {
        for content in ["null", "\"a \\\" b\"", "[1,-2e3]", "{\"a\":{}}", "7"] {
            assert!(check(&written(parent, content)), "{content}");
        }
    }
}

/// Another writer may put spaces, or members in another order; that is read, too.
#[test]
fn another_form_is_left_to_a_parser() {
    let line = written(None, "null");
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
        assert!(!check(&other), "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Bytes are changed, lost and added, and the seal is right all the same.
    #[test]
    fn nobody_is_fooled(
        places in prop::collection::vec((0..400_usize, 0..3_usize, "[ {}\\[\\]\",:0-9a-fnul\\\\é]"), 0..4)
    ) {
        let mut line: Vec<char> = written(Some(Uuid::max()), "{\"a\":[\"b\"]}").chars().collect();
        for (at, lost, added) in places {
            let at = at % line.len();
            let end = (at + lost).min(line.len());
            line.splice(at..end, added.chars());
        }
        check(&line.into_iter().collect::<String>());
    }
}
