//! What is known of an object wherever its text is cut.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn any_json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        "[a\"\\\\é😀\u{1} {}:,\\[\\]]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a\"\\\\é😀]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns whether `part` is what is known of `whole` at some point while it arrives.
fn is_prefix_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len()
                && part
                    .iter()
                    .zip(whole)
                    .all(|(part, whole)| is_prefix_of(part, whole))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.len() <= whole.len()
                && part
                    .iter()
                    .zip(whole)
                    .all(|((key, part), (name, whole))| key == name && is_prefix_of(part, whole))
        }
        _ => part == whole,
    }
}

/// Escapes all non-ASCII characters, as some models do.
fn escape_non_ascii(text: &str) -> String {
    let written = text.encode_utf16().map(|unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    });
    written.collect::<Vec<_>>().concat()
}

proptest! {
    #[test]
    fn a_prefix_of_an_object_completes_to_a_prefix_of_its_value(
        members in prop::collection::btree_map("[a-c\"é]{0,2}", any_json_value(), 0..4),
    ) {
        let whole = Value::Object(members.into_iter().collect());
        for text in [whole.to_string(), escape_non_ascii(&whole.to_string()), format!(" {whole:#} ")] {
            let whole: Value = serde_json::from_str(&text).unwrap();
            let mut known = 0;
            for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                let has_started = text[..cut].trim_start().starts_with('{');
                let part = complete_partial_json(&text[..cut]);
                prop_assert_eq!(part.is_some(), has_started, "{}", &text[..cut]);
                let Some(part) = part else { continue };
                prop_assert!(is_prefix_of(&serde_json::from_str(&part).unwrap(), &whole), "{} of {}", part, text);
                prop_assert!(part.len() >= known, "{} forgets", part);
                known = part.len();
            }
            prop_assert_eq!(complete_partial_json(&text), Some(text.trim().to_owned()));
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[{}\\[\\]:,\"\\\\ua0d81 -]{0,24}", other in ".*") {
        for text in [text, other] {
            if let Some(part) = complete_partial_json(&text) {
                prop_assert!(serde_json::from_str::<Value>(&part).is_ok());
            }
        }
    }
}

#[test]
fn incomplete_tokens_are_left_out() {
    for (text, part) in [
        ("{", "{}"),
        (r#"{"pa"#, "{}"),
        (r#"{"path":"a/b"#, r#"{"path":"a/b"}"#),
        (r#"{"a":12"#, "{}"),
        (r#"{"a":12,"b":tr"#, r#"{"a":12}"#),
        (r#"{"a":[1, 2"#, r#"{"a":[1]}"#),
        (r#"{"a":{"b":["x","#, r#"{"a":{"b":["x"]}}"#),
        (r#"{"a":"x\ud83d\ude"#, r#"{"a":"x"}"#),
    ] {
        assert_eq!(complete_partial_json(text).as_deref(), Some(part), "{text}");
    }
    for text in [
        "",
        " ",
        "[",
        "12",
        r#"{"a" 1"#,
        r#"{"a":]"#,
        r#"{"a":nonsense,"#,
    ] {
        assert_eq!(complete_partial_json(text), None, "{text}");
    }
}
