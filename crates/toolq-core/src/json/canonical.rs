//! What a JSON value means, whatever it looks like: white space, the order of keys, escapes, and how a number is written make
//! no difference. Numbers count by their exact decimal value.

use sha2::{Digest as _, Sha256};

use crate::json::decimal::Decimal;
use crate::json::kind::JsonKind;
use crate::json::value::JsonText;

/// Returns the SHA-256 of what a JSON value means. Two values that mean the same have the same digest.
pub fn meaning_digest(json: JsonText<'_>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_value(&mut hasher, json);
    hasher.finalize().into()
}

fn hash_value(hasher: &mut Sha256, json: JsonText<'_>) {
    let is_hashed = match json.kind() {
        JsonKind::Object => hash_object(hasher, json),
        JsonKind::Array => hash_array(hasher, json),
        JsonKind::String => json
            .to_text()
            .map(|text| hash_bytes(hasher, b's', text.as_bytes())),
        JsonKind::Number => {
            Decimal::parse(json.get()).map(|number| hash_bytes(hasher, b'n', &number.to_bytes()))
        }
        JsonKind::Boolean | JsonKind::Null => None,
    };
    // Also a number beyond all bounds, and a text with half a surrogate pair: they mean what is written.
    if is_hashed.is_none() {
        hash_bytes(hasher, b'v', json.get().as_bytes());
    }
}

fn hash_object(hasher: &mut Sha256, json: JsonText<'_>) -> Option<()> {
    let object = json.object()?;
    let mut members: Vec<_> = object.members().iter().collect();
    members.sort_by(|(key, _), (other, _)| key.cmp(other));
    hash_bytes(hasher, b'o', &members.len().to_le_bytes());
    for (key, value) in members {
        hash_bytes(hasher, b'k', key.as_bytes());
        hash_value(hasher, *value);
    }
    Some(())
}

fn hash_array(hasher: &mut Sha256, json: JsonText<'_>) -> Option<()> {
    let elements = json.elements()?;
    hash_bytes(hasher, b'a', &elements.len().to_le_bytes());
    for element in elements {
        hash_value(hasher, element);
    }
    Some(())
}

/// Hashes bytes so that nothing else is hashed in the same way.
fn hash_bytes(hasher: &mut Sha256, tag: u8, bytes: &[u8]) {
    hasher.update([tag]);
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> [u8; 32] {
        meaning_digest(JsonText::new(json))
    }

    #[test]
    fn the_same_value_has_the_same_digest_however_it_is_written() {
        for (json, same) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                r#"{ "b" : [ true,null ], "a":1 }"#,
            ),
            (r#"{"\u0061":"\u00e9\/"}"#, r#"{"a":"é/"}"#),
            ("100.0", "100"),
            ("1e2", "100"),
            ("-0.0", "0"),
            (
                "123456789012345678901234567890",
                "1.2345678901234567890123456789e29",
            ),
        ] {
            assert_eq!(digest(json), digest(same), "{json} {same}");
        }
    }

    #[test]
    fn other_values_have_other_digests() {
        let values = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "\"1\"",
            "\"\"",
            "[]",
            "{}",
            "[[]]",
            "[1]",
            "[1,1]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":{}}"#,
            r#"{"a":{"b":1}}"#,
            "1234567890123456789",
            "1234567890123456788",
            "1e400",
            "1e99999999999999999999",
            r#""\ud800""#,
            r#""\ud801""#,
        ];
        let digests: std::collections::HashSet<_> =
            values.iter().map(|json| digest(json)).collect();
        assert_eq!(digests.len(), values.len());
    }
}
