//! Coercion: a valid input is never touched, an invalid one changes only from strings to the values that they spell,
//! and the result is valid.

use serde_json::Value;
use toolq_core::check::CallChecker;
use toolq_core::json::Input;
use toolq_core::types::{RejectionReason, Verdict};
use toolq_testing::{sample_call, tool_with_schema, tools_with_root};

use crate::choices::Choices;

const TOOL: &str = "tool";
/// Schemas of a property.
const PROPERTY_SCHEMAS: [&str; 16] = [
    r#"{"type":"boolean"}"#,
    r#"{"type":"integer"}"#,
    r#"{"type":"number"}"#,
    r#"{"type":"string"}"#,
    r#"{"type":"null"}"#,
    r#"{"type":"array","items":{"type":"integer"}}"#,
    r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#,
    r#"{"type":["integer","null"]}"#,
    r#"{"type":["string","boolean"]}"#,
    r#"{"anyOf":[{"type":"integer"},{"type":"boolean"}]}"#,
    r#"{"oneOf":[{"type":"number"},{"type":"array"}]}"#,
    r#"{"type":"integer","enum":[1,2,3]}"#,
    r#"{"const":true}"#,
    r#"{"type":"integer","minimum":0,"maximum":9}"#,
    r#"{"type":"array","items":{"type":"boolean"},"minItems":1}"#,
    r#"{"not":{"type":"integer"}}"#,
];
/// Values, as JSON.
const VALUES: [&str; 16] = [
    "true",
    "3",
    "-1.50",
    "\"3\"",
    "\"true\"",
    "\"False\"",
    "null",
    "\"null\"",
    "[1,\"2\"]",
    "\"[1, \\\"2\\\"]\"",
    "{\"a\":\"1\"}",
    "\"{\\\"a\\\":\\\"1\\\"}\"",
    "\"1e2\"",
    "\" 3\"",
    "\"[true]\"",
    "[\"true\"]",
];

/// Checks an input against a schema: texts, or choices from the lists above.
pub fn coercion(data: &[u8]) {
    let mut choices = Choices::new(data);
    let (schema, input) = if choices.byte() == 0 {
        chosen_texts(&mut choices)
    } else {
        choices = Choices::new(data);
        (choices.text(), choices.text())
    };
    if let (Ok(schema), Ok(input)) = (serde_json::from_str::<Value>(&schema), Input::parse(&input))
    {
        check(&schema, &input);
    }
}

fn chosen_texts(choices: &mut Choices<'_>) -> (String, String) {
    let (mut properties, mut members) = (Vec::new(), Vec::new());
    let is_closed = choices.flag();
    for name in ["a", "b", "c", "d"] {
        let schema = choices.pick(&PROPERTY_SCHEMAS);
        properties.push(format!("\"{name}\":{schema}"));
        let value = match choices.byte() {
            0 => continue,
            1 => Value::from(choices.text()).to_string(),
            choice => VALUES[usize::from(choice) % VALUES.len()].to_owned(),
        };
        members.push(format!("\"{name}\": {value}"));
    }
    let open = if is_closed {
        ",\"additionalProperties\":false"
    } else {
        ""
    };
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}}{open}}}"#,
        properties.join(",")
    );
    (schema, format!("{{{}}}", members.join(", ")))
}

fn check(schema: &Value, input: &Input) {
    let tool = tool_with_schema(TOOL, schema.clone());
    let checker = CallChecker::new(tools_with_root(vec![tool], "/nonexistent/root".into()));
    let verdict = checker
        .check_call(sample_call(0, TOOL, input.text()))
        .verdict;
    let schema_text = schema.to_string();
    // Where a schema isn't used as the library would, there is nothing to compare with.
    let is_plain = ["$", "default", "pattern", "format", "id"]
        .iter()
        .all(|key| !schema_text.contains(key));
    let has_plain_numbers = [&schema_text, input.text()]
        .iter()
        .all(|text| has_plain_numbers(text));
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return;
    };
    if !is_plain || !has_plain_numbers {
        return;
    }
    let was_valid = validator.is_valid(&input.to_value());
    match verdict {
        Verdict::Rejected(rejection) => {
            let is_about_input = rejection.reason == RejectionReason::InvalidInput;
            assert!(
                !(was_valid && is_about_input),
                "a valid input was refused: {rejection:?}"
            );
        }
        Verdict::Accepted(accepted) if was_valid => {
            assert_eq!(
                accepted.input.text(),
                input.text(),
                "a valid input was touched"
            );
            assert!(accepted.before_coercion.is_none());
        }
        Verdict::Accepted(accepted) => {
            let before = accepted.before_coercion.unwrap();
            assert_eq!(before.text(), input.text());
            let after = accepted.input.to_value();
            assert!(validator.is_valid(&after), "the result is invalid");
            assert!(
                is_coerced(&input.to_value(), &after),
                "{input:?} became {after}"
            );
        }
    }
}

/// Returns whether no number in a text has more digits than a float keeps.
fn has_plain_numbers(text: &str) -> bool {
    let longest = text
        .split(|c: char| !c.is_ascii_digit())
        .map(str::len)
        .max();
    let has_exponent = text
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_digit() && matches!(pair[1], b'e' | b'E'));
    longest.unwrap_or(0) <= 15 && !has_exponent
}

/// Returns whether `after` is `before` with some strings replaced by what they spell.
fn is_coerced(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(a, b)| is_coerced(a, b))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|((a, old), (b, new))| a == b && is_coerced(old, new))
        }
        (Value::String(text), Value::Bool(value)) => {
            text == if *value { "true" } else { "false" }
                || text == if *value { "True" } else { "False" }
        }
        (Value::String(text), after) if !after.is_string() => {
            serde_json::from_str::<Value>(text).is_ok_and(|spelled| is_coerced(&spelled, after))
        }
        _ => before == after,
    }
}
