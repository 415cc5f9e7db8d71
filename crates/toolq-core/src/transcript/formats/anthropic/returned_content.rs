//! The content of an assistant message in the form in which the API takes it back.

use serde_json::{Value, json};

use crate::json::{JsonEdits, JsonKind, JsonText, ParsedObject};
use crate::transcript::input_key::read_input;

/// The key under which the API's documentation suggests to send back an input that isn't valid JSON.
const INVALID_JSON_KEY: &str = "INVALID_JSON";

/// Returns the input of a call whose own input, or the reason that it isn't valid, is `text`. The API accepts only
/// objects as inputs.
pub fn invalid_input_object(text: &str) -> Value {
    json!({ INVALID_JSON_KEY: text })
}

/// Returns `content` with an object as the input of each call. The API refuses anything else, but a stream may bring an
/// input that isn't JSON, which the body of its response has as a string.
pub fn returnable_content(content: JsonText) -> String {
    let mut edits = JsonEdits::new(content.get());
    for block in content.objects().into_iter().flatten().flatten() {
        if block.get_text("type").as_deref() == Some("tool_use") {
            repair_input(&block, &mut edits);
        }
    }
    edits.apply()
}

fn repair_input<'a>(block: &ParsedObject<'a>, edits: &mut JsonEdits<'a>) {
    let given = block.get("input");
    if given.is_some_and(|input| input.kind() == JsonKind::Object) {
        return;
    }
    let object = match (read_input(&[block], "input"), given) {
        (Ok(input), _) => input.text().to_owned(),
        (Err(_), Some(given)) => {
            let text = given.to_text();
            invalid_input_object(text.as_deref().unwrap_or(given.get())).to_string()
        }
        (Err(fault), None) => invalid_input_object(&fault.to_string()).to_string(),
    };
    match given {
        Some(given) => edits.replace(given, object),
        None => edits.insert_at_end(block.json(), format!(",\"input\":{object}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(content: &str) -> String {
        returnable_content(JsonText::new(content))
    }

    #[test]
    fn a_call_goes_back_with_an_object_as_its_input() {
        for (input, expected) in [
            (
                r#","input":"{\"x\": oops}""#,
                r#","input":{"INVALID_JSON":"{\"x\": oops}"}"#,
            ),
            (r#","input":"{\"x\": 1}""#, r#","input":{"x": 1}"#),
            (
                r#","arguments":{"x":1}"#,
                r#","arguments":{"x":1},"input":{"x":1}"#,
            ),
            (r#","input":[1]"#, r#","input":{"INVALID_JSON":"[1]"}"#),
            (r#","input":null"#, r#","input":{}"#),
            ("", r#","input":{}"#),
        ] {
            let call = |input: &str| {
                format!(r#"[{{"type":"text","text":"é"}},{{"type":"tool_use","id":"a"{input}}}]"#)
            };
            assert_eq!(returned(&call(input)), call(expected));
        }
    }

    #[test]
    fn everything_else_goes_back_byte_for_byte() {
        for content in [
            r#"[{"type":"tool_use","id":"a","input":{"x": 1.50}}, {"type":"thinking"}]"#,
            r#"[{"type":"tool_result","input":"x"},7]"#,
            "[]",
        ] {
            assert_eq!(returned(content), content);
        }
    }
}
