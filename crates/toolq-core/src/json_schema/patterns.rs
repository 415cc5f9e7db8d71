//! Finds the patterns of a schema that can't be matched in linear time.

use std::collections::BTreeSet;

use jsonschema::Draft;
use serde_json::{Value, json};

use crate::json::escape_pointer_token;
use crate::json_schema::library::{BASE_URI, SchemaLibrary};
use crate::json_schema::pattern_syntax::PatternSyntax;
use crate::json_schema::schema_error::SchemaError;
use crate::json_schema::subschemas::find_subschemas;
use crate::json_schema::validation_options::validation_options;
use crate::types::FormatPolicy;

/// Finds the patterns that the linear-time engine rejects. Tries all of them together, except for small ones, and one by one
/// only if that fails.
pub(crate) fn find_rejected_patterns(schema: &Value) -> Vec<SchemaError> {
    let mut patterns: Vec<(String, String)> = Vec::new();
    for subschema in find_subschemas(schema, BASE_URI, Draft::default()) {
        if let Some(pattern) = subschema.schema.get("pattern").and_then(Value::as_str) {
            patterns.push((format!("{}/pattern", subschema.pointer), pattern.to_owned()));
        }
        let named = subschema
            .schema
            .get("patternProperties")
            .and_then(Value::as_object);
        for pattern in named.into_iter().flat_map(|named| named.keys()) {
            let pointer = format!(
                "{}/patternProperties/{}",
                subschema.pointer,
                escape_pointer_token(pattern)
            );
            patterns.push((pointer, pattern.clone()));
        }
    }
    patterns.retain(|(_, pattern)| !is_small(pattern));
    let compiles = |patterns: &[(String, String)]| {
        let different: BTreeSet<&str> = patterns.iter().map(|(_, pattern)| &**pattern).collect();
        let each: Vec<Value> = different
            .into_iter()
            .map(|pattern| json!({"pattern": pattern}))
            .collect();
        patterns.is_empty()
            || validation_options(SchemaLibrary::default(), FormatPolicy::Annotate)
                .build(&json!({"allOf": each}))
                .is_ok()
    };
    if compiles(&patterns) {
        return Vec::new();
    }
    patterns
        .into_iter()
        .filter(|pattern| !compiles(std::slice::from_ref(pattern)))
        .map(|(pointer, pattern)| rejected_pattern_error(pointer, &pattern))
        .collect()
}

/// Returns a copy of `document` in which each small pattern is as short as can be. They need not be compiled, which takes most
/// of the time. What another pattern has to be depends on its draft.
pub(crate) fn with_short_patterns(document: &Value) -> Value {
    let mut copy = document.clone();
    for subschema in find_subschemas(document, BASE_URI, Draft::default()) {
        let pattern = copy.pointer_mut(&format!("{}/pattern", subschema.pointer));
        let is_small_pattern = |pattern: &&mut Value| pattern.as_str().is_some_and(is_small);
        if let Some(pattern) = pattern.filter(is_small_pattern) {
            *pattern = "a".into();
        }
    }
    copy
}

fn is_small(pattern: &str) -> bool {
    PatternSyntax::parse(pattern).is_some_and(|syntax| syntax.is_small())
}

pub(crate) fn rejected_pattern_error(pointer: String, pattern: &str) -> SchemaError {
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!"]
        .iter()
        .any(|form| pattern.contains(form));
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]) || pair == b"\\k");
    if looks_around || refers_back {
        let what = if looks_around {
            "uses look-around"
        } else {
            "uses a backreference"
        };
        let message = format!("the pattern {what}, which needs a backtracking engine");
        return SchemaError::new(pointer, message).with_hint(
            "patterns are matched in linear time, without look-around and backreferences; check the rest in the tool itself",
        );
    }
    SchemaError::new(
        pointer,
        "the pattern is not a valid regular expression, or is larger than 1 MiB when compiled",
    )
    .with_hint("balance its brackets, escape with `\\\\`, and keep counts such as `{1000}` small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::CompiledSchema;

    /// docs/tools-yaml.md describes the dialect, with these examples.
    #[test]
    fn patterns_have_the_documented_dialect() {
        for (pattern, accepted, rejected) in [
            ("[0-9]{4}", &["in 2026"][..], &["in 26"][..]),
            (r"^\p{Lu}\w*$", &["Éa_1"], &["éa", "Éé"]),
            (
                r"^[^\s/]{1,64}$",
                &["naïve"],
                &["a b", "a/b", "", "a\u{a0}b", "a\u{feff}"],
            ),
            ("(?i:^yes$)", &["YES"], &["yes!"]),
            ("^a$", &["a"], &["a\n", "b\na", "A"]),
            (r"^\d$", &["1"], &["٣"]),
            ("^.$", &["𝄞", "\r", "\u{2028}"], &["\n"]),
            (r"\bfoo\b", &["-foo-"], &["éfoo"]),
            (r"^\p{Script=Greek}$", &["α"], &["a"]),
            (r"^\p{L}{1,20}$", &["é"], &[]),
            ("(?m:^a$)", &["b\na"], &["ba"]),
            ("^(?s:.)$", &["\n"], &[]),
        ] {
            let schema = json!({"pattern": pattern});
            let schema = CompiledSchema::compile(&schema).unwrap();
            for text in accepted {
                assert!(schema.accepts(&json!(text)), "{pattern} {text:?}");
            }
            for text in rejected {
                assert!(!schema.accepts(&json!(text)), "{pattern} {text:?}");
            }
        }
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            r"(?<n>a)\k<n>",
            r"^\p{L}{1,50}$",
        ] {
            let found = find_rejected_patterns(&json!({"pattern": pattern}));
            assert_eq!(found.len(), 1, "{pattern}");
        }
    }
}
