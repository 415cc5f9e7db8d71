//! Marks the parts of a request that the Messages API is to cache: the system prompt, the tools, and the conversation
//! so far. The next request begins with the same parts, and pays a tenth of their price.

use serde::Serialize;
use serde_json::value::RawValue;

use toolq_core::json::ParsedObject;

/// The end of an object that the cache is to include.
const MARKED_END: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// A content block that holds a text.
#[derive(Serialize)]
struct TextBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// Returns a text as a list of one marked block. Returns `None` for an empty text, because the API refuses marks on it.
pub(crate) fn mark_text(text: &str) -> Option<Box<RawValue>> {
    if text.trim().is_empty() {
        return None;
    }
    let block = TextBlock { kind: "text", text };
    mark_last(&serde_json::to_string(&[block]).ok()?)
}

/// Marks the last object of an array, which isn't empty.
pub(crate) fn mark_last(array: &str) -> Option<Box<RawValue>> {
    let before = array.trim_end().strip_suffix(']')?.trim_end();
    let object = before.strip_suffix('}')?;
    RawValue::from_string(format!("{object}{MARKED_END}]")).ok()
}

/// Marks the end of a user message. Returns `None` for a message of the model, or one without content.
pub(crate) fn mark_message(message: &RawValue) -> Option<Box<RawValue>> {
    let object = ParsedObject::parse(message.get()).ok()??;
    if object.get_text("role")? != "user" {
        return None;
    }
    let content = object.get("content")?;
    let marked = match content.to_text() {
        Some(text) => mark_text(&text)?,
        None => mark_last(content.get())?,
    };
    RawValue::from_string(format!(r#"{{"role":"user","content":{marked}}}"#)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(message: &str) -> Option<String> {
        let message = RawValue::from_string(message.to_owned()).unwrap();
        mark_message(&message).map(|marked| marked.get().to_owned())
    }

    #[test]
    fn the_last_block_of_a_user_message_is_marked() {
        assert_eq!(
            mark(r#"{"role":"user","content":"a \"b\""}"#).unwrap(),
            r#"{"role":"user","content":[{"type":"text","text":"a \"b\"","cache_control":{"type":"ephemeral"}}]}"#
        );
        assert_eq!(
            mark(r#"{"role":"user","content":[{"type":"tool_result","content":1.0},{"a":{"b":12345678901234567890}} ] }"#).unwrap(),
            r#"{"role":"user","content":[{"type":"tool_result","content":1.0},{"a":{"b":12345678901234567890},"cache_control":{"type":"ephemeral"}}]}"#
        );
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        assert_eq!(mark(r#"{"role":"assistant","content":"a"}"#), None);
        assert_eq!(mark(r#"{"role":"user","content":" "}"#), None);
        assert_eq!(mark(r#"{"role":"user","content":[]}"#), None);
    }
}
