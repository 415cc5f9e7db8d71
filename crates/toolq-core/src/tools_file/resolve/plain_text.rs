//! Looks up whether a schema only accepts plain values: short texts that mean nothing to any program.

use serde_json::Value;

/// Whether a schema only accepts fixed values, booleans, numbers, or texts of letters, digits and `._,+-`.
pub(crate) fn accepts_only_plain_text(schema: &Value) -> bool {
    if schema.get("const").is_some() || schema.get("enum").is_some() {
        return true;
    }
    let is_plain_type = |name: &str| matches!(name, "integer" | "number" | "boolean" | "null");
    let pattern_is_plain = || {
        schema
            .get("pattern")
            .and_then(Value::as_str)
            .is_some_and(is_plain_pattern)
    };
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => {
            // `items` isn't about the items that `prefixItems` describes.
            schema.get("prefixItems").is_none()
                && schema.get("items").is_some_and(accepts_only_plain_text)
        }
        Some(Value::String(name)) => is_plain_type(name) || name == "string" && pattern_is_plain(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .all(|name| is_plain_type(name) || name == "string" && pattern_is_plain()),
        _ => false,
    }
}

/// Whether a pattern is anchored at both ends, and consists of plain characters, classes and repetitions of them.
fn is_plain_pattern(pattern: &str) -> bool {
    let Some(inner) = pattern
        .strip_prefix('^')
        .and_then(|rest| rest.strip_suffix('$'))
    else {
        return false;
    };
    let mut rest = inner;
    let mut depth = 0_usize;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '[' => match rest[1..].split_once(']') {
                Some((class, after)) if is_plain_class(class) => after,
                _ => return false,
            },
            '{' => match rest[1..].split_once('}') {
                Some((count, after)) if count.chars().all(|c| c.is_ascii_digit() || c == ',') => {
                    after
                }
                _ => return false,
            },
            '\\' => match rest[1..].chars().next() {
                Some('d' | '.' | '-') => &rest[2..],
                _ => return false,
            },
            // `(?` begins a group with a meaning of its own; `(?m)` lets `$` match within the text.
            '(' if rest.starts_with("(?") && !rest.starts_with("(?:") => return false,
            '(' => {
                depth += 1;
                rest[1..].strip_prefix("?:").unwrap_or(&rest[1..])
            }
            ')' => {
                depth = depth.saturating_sub(1);
                &rest[1..]
            }
            '+' | '*' | '?' => &rest[1..],
            // An alternative is only anchored within a group.
            '|' if depth > 0 => &rest[1..],
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ',') => &rest[1..],
            _ => return false,
        };
    }
    true
}

fn is_plain_class(class: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ',' | '+' | '-');
    let characters: Vec<char> = class.chars().collect();
    let range_is_plain = |window: &[char]| {
        window[1] != '-'
            || window[0].is_ascii_digit() && window[2].is_ascii_digit()
            || window[0].is_ascii_lowercase() && window[2].is_ascii_lowercase()
            || window[0].is_ascii_uppercase() && window[2].is_ascii_uppercase()
    };
    characters.iter().all(|c| is_plain(*c)) && characters.windows(3).all(range_is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_values_are_recognized() {
        for (schema, plain) in [
            (json!({"enum": ["a=b"]}), true),
            (json!({"type": "integer"}), true),
            (json!({"type": "string"}), false),
            (json!({"pattern": "^[a-z]+$"}), false),
            (
                json!({"type": "string", "pattern": "^[a-z][a-z0-9_-]*$"}),
                true,
            ),
            (
                json!({"type": "string", "pattern": "^v[0-9]{1,3}\\.[0-9]+$"}),
                true,
            ),
            (json!({"type": "string", "pattern": "^(all|test)$"}), true),
            (json!({"type": "string", "pattern": "^v(?:1|2)$"}), true),
            (json!({"type": "string", "pattern": "^all$|x"}), false),
            (json!({"type": "string", "pattern": "^(a)|x|(b)$"}), false),
            (json!({"type": "string", "pattern": "^(?m)[a-z]+$"}), false),
            (json!({"type": "string", "pattern": "^[a-z]+"}), false),
            (json!({"type": "string", "pattern": "^[a-z=]+$"}), false),
            (json!({"type": "string", "pattern": "^[+-z]+$"}), false),
            (json!({"type": "string", "pattern": "^[^a]+$"}), false),
            (json!({"type": "string", "pattern": "^.+$"}), false),
            (json!({"type": "array", "items": {"enum": ["a"]}}), true),
            (json!({"type": "array"}), false),
            (
                json!({"type": "array", "prefixItems": [{}], "items": {"enum": ["a"]}}),
                false,
            ),
            (json!({}), false),
        ] {
            assert_eq!(accepts_only_plain_text(&schema), plain, "{schema}");
        }
    }
}
