//! The patterns of a schema → those that can't be matched in linear time.

use serde_json::{Value, json};

use crate::json_schema::library::{BASE, Library};
use crate::json_schema::schema::{SchemaFault, options};
use crate::json_schema::walk::{escaped, places};

/// Patterns that the linear engine doesn't take. All are tried at once, and one by one only where that fails.
pub(crate) fn refused(schema: &Value) -> Vec<SchemaFault> {
    let mut patterns: Vec<(String, String)> = Vec::new();
    for place in places(schema, BASE) {
        if let Some(pattern) = place.schema.get("pattern").and_then(Value::as_str) {
            patterns.push((format!("{}/pattern", place.pointer), pattern.to_owned()));
        }
        let named = place
            .schema
            .get("patternProperties")
            .and_then(Value::as_object);
        for pattern in named.into_iter().flat_map(|named| named.keys()) {
            let pointer = format!("{}/patternProperties/{}", place.pointer, escaped(pattern));
            patterns.push((pointer, pattern.clone()));
        }
    }
    let compiles = |patterns: &[(String, String)]| {
        let each: Vec<Value> = patterns
            .iter()
            .map(|(_, pattern)| json!({"pattern": pattern}))
            .collect();
        patterns.is_empty()
            || options(Library::default())
                .build(&json!({"allOf": each}))
                .is_ok()
    };
    if compiles(&patterns) {
        return Vec::new();
    }
    patterns
        .into_iter()
        .filter(|pattern| !compiles(std::slice::from_ref(pattern)))
        .map(|(pointer, pattern)| refused_pattern(pointer, &pattern))
        .collect()
}

pub(crate) fn refused_pattern(pointer: String, pattern: &str) -> SchemaFault {
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|form| pattern.contains(form));
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]) || pair == b"\\k");
    if looks_around || refers_back {
        let what = if looks_around {
            "looks around"
        } else {
            "refers back"
        };
        let message = format!("the pattern {what}, which needs a backtracking engine");
        return SchemaFault::new(pointer, message).with_hint(
            "patterns are matched in linear time, without look-around and back references; check the rest in the tool",
        );
    }
    SchemaFault::new(
        pointer,
        "the pattern is no regular expression, or is larger than 1 MiB compiled",
    )
    .with_hint("balance its brackets, escape with `\\\\`, and keep counts such as `{1000}` small")
}
