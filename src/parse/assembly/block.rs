//! The parts of an answer that is arriving: content blocks, and calls of chat completions.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::json_line;

/// A content block, or a call of chat completions.
#[derive(Debug)]
pub(super) struct Block {
    /// What the API counts it by.
    pub index: u64,
    pub members: Map<String, Value>,
    /// The JSON of a call's input, as far as it is there.
    pub input: String,
    /// It has all its pieces. Of a call: somebody may have it by now.
    pub whole: bool,
}

impl Block {
    pub(super) fn new(index: u64, members: Map<String, Value>) -> Self {
        Self {
            index,
            members,
            input: String::new(),
            whole: false,
        }
    }

    /// Whether a content block is a call.
    pub(super) fn is_use(&self) -> bool {
        self.members
            .get("type")
            .is_some_and(|kind| kind == "tool_use")
    }

    /// Whether the input is JSON by now. One that is empty may be all, or not have begun.
    pub(super) fn has_input(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.input).is_ok()
    }

    /// Adds a piece of the input. False where the call was whole without it.
    #[must_use]
    pub(super) fn grow(&mut self, piece: &str) -> bool {
        if self.whole {
            return piece.trim().is_empty();
        }
        self.input.push_str(piece);
        true
    }

    /// Adds what a `content_block_delta` brings. False as for [`grow`](Self::grow).
    #[must_use]
    pub(super) fn add(&mut self, delta: &Value) -> bool {
        for name in ["text", "thinking", "signature"] {
            if let Some(piece) = delta[name].as_str() {
                append(&mut self.members, name, piece);
            }
        }
        if let Some(citation) = delta.get("citation") {
            let known = self.members.entry("citations").or_insert(Value::Null);
            if !known.is_array() {
                *known = json!([]);
            }
            if let Some(known) = known.as_array_mut() {
                known.push(citation.clone());
            }
        }
        delta["partial_json"]
            .as_str()
            .is_none_or(|piece| self.grow(piece))
    }

    /// The block, on one line, as a log holds it: its calls must have the same bytes when they are read from there. An input
    /// keeps its digits; one that is no JSON stands there as a text, which is no input.
    pub(super) fn json(&self) -> String {
        json_line(&self.on_lines()).into_owned()
    }

    fn on_lines(&self) -> String {
        if self.input.trim().is_empty() {
            return Value::Object(self.members.clone()).to_string();
        }
        let input = match serde_json::from_str::<&RawValue>(&self.input) {
            Ok(input) => input.get().to_owned(),
            Err(_) => Value::from(self.input.as_str()).to_string(),
        };
        let mut members = self.members.clone();
        members.remove("input");
        let others = Value::Object(members).to_string();
        // It has a type, an id and a name at least, so that a comma follows.
        let open = others.strip_suffix('}').unwrap_or(&others);
        format!("{open},\"input\":{input}}}")
    }

    /// The same as a call of chat completions.
    pub(super) fn function_call(&self) -> Value {
        let function = json!({"name": self.members.get("name"), "arguments": self.input});
        json!({"id": self.members.get("id"), "type": "function", "function": function})
    }
}

/// Adds a piece to a text.
pub(super) fn append(members: &mut Map<String, Value>, name: &str, piece: &str) {
    let known = members.entry(name).or_insert_with(|| "".into());
    match known {
        Value::String(text) => text.push_str(piece),
        other => *other = piece.into(),
    }
}
