//! The JSON of a recorded result with today's content in it; whatever else it has stays, byte for byte.

use crate::replay::update::recording::Edit;
use toolq_core::answer;
use toolq_core::json::{Json, Object, json_line};
use toolq_core::transcript::Reply;
use toolq_core::types::{Answer, Dialect, Form};

/// The recorded result with today's content; none where a log is to stay what it was, or where there is no place for it.
pub fn rewritten(reply: &Reply, dialect: Dialect, today: &Answer) -> Option<Edit> {
    let object = Object::read(&reply.json).ok()??;
    let text = match dialect {
        // A session log is evidence, and chained.
        Dialect::Toolq => return None,
        Dialect::Codex => codex(&object, today)?,
        _ if object.has("tool_use_id") => anthropic(&object, today)?,
        _ if object.has("call_id") => other(&object, "output", &new(Form::OpenAiResponses, today)?),
        _ => other(&object, "content", &new(Form::OpenAiChat, today)?),
    };
    Some(Edit {
        place: reply.place.clone(),
        text,
    })
}

/// A `tool_result` block: its content, and whether it is an error where that changes.
fn anthropic(block: &Object, today: &Answer) -> Option<String> {
    let text = other(block, "content", &new(Form::Block, today)?);
    let block = Object::read(&text).ok()??;
    let told = if today.is_error { "true" } else { "false" };
    match block.get("is_error") {
        Some(error) => Some(replaced(block.json(), error, told)),
        None if today.is_error => Some(added(block.json(), "is_error", told)),
        None => Some(text.clone()),
    }
}

/// An item whose text may be the JSON of an output and how it ended.
fn codex(item: &Object, today: &Answer) -> Option<String> {
    let content = new(Form::OpenAiResponses, today)?;
    let inner = item.text("output");
    let inner = inner
        .as_deref()
        .and_then(|text| Object::read(text).ok().flatten());
    let exit = |inner: &Object| {
        let exit = inner.object("metadata")?.get("exit_code")?;
        Some(exit.get() != "0")
    };
    let failed = inner.as_ref().and_then(exit);
    let (Some(inner), Some(failed)) = (inner, failed) else {
        return Some(other(item, "output", &content));
    };
    let text = replaced(inner.json(), inner.get("output")?, &content);
    let inner = Object::read(&text).ok()??;
    let text = if failed == today.is_error {
        text.clone()
    } else {
        // Which code it was nobody knows here; what is compared is whether it failed.
        let code = if today.is_error { "1" } else { "0" };
        replaced(
            inner.json(),
            inner.object("metadata")?.get("exit_code")?,
            code,
        )
    };
    let quoted = serde_json::to_string(&text).ok()?;
    Some(other(item, "output", &quoted))
}

/// An object with `content` at `key`.
fn other(object: &Object, key: &str, content: &str) -> String {
    let Some(old) = object.get(key) else {
        return added(object.json(), key, content);
    };
    // A block of text stays one.
    let blocks = old.list().unwrap_or_default();
    let block = match blocks.as_slice() {
        [block] if content.starts_with('"') => block.object(),
        _ => None,
    };
    let text = block.and_then(|block| block.get("text"));
    replaced(object.json(), text.unwrap_or(old), content)
}

/// Today's content in the JSON of a form, on one line.
fn new(form: Form, today: &Answer) -> Option<String> {
    let rendered = answer::render(form, std::slice::from_ref(today));
    let json = Json::new(&rendered);
    let object = match json.list() {
        Some(list) => list.first()?.object()?,
        None => json.object()?,
    };
    let content = object.get("content").or_else(|| object.get("output"))?;
    Some(json_line(content.get()).into_owned())
}

/// `whole` with `text` in the place of `part`, which is a part of it.
fn replaced(whole: Json, part: Json, text: &str) -> String {
    let begin = part.get().as_ptr().addr() - whole.get().as_ptr().addr();
    let (before, rest) = whole.get().split_at(begin);
    [before, text, &rest[part.get().len()..]].concat()
}

/// An object with one more member behind the others; it has some.
fn added(whole: Json, key: &str, value: &str) -> String {
    // One brace: the last member may be an object, too.
    let open = whole.get();
    let open = open.strip_suffix('}').unwrap_or(open).trim_end();
    let rest = &whole.get()[open.len()..];
    format!(r#"{open},"{key}":{value}{rest}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{Content, Recorded};

    fn after(dialect: Dialect, json: &str, text: &str, is_error: bool) -> String {
        let reply = Reply {
            place: 5..9,
            json: json.to_owned(),
            recorded: Recorded {
                content: Content::Text(String::new()),
                is_error: None,
                skipped: false,
            },
        };
        let today = Answer {
            tool_use_id: "other".to_owned(),
            tool_name: "tool".to_owned(),
            content: Content::Text(text.to_owned()),
            is_error,
        };
        rewritten(&reply, dialect, &today).unwrap().text
    }

    /// Order, white space and what nobody knows stay.
    #[test]
    fn only_the_content_is_new() {
        for (dialect, json, expected) in [
            (
                Dialect::Anthropic,
                r#"{ "content" : "a\u0041", "type":"tool_result", "tool_use_id":"x" , "k":1.0}"#,
                r#"{ "content" : "n\"ü", "type":"tool_result", "tool_use_id":"x" , "k":1.0}"#,
            ),
            (
                Dialect::ClaudeCode,
                r#"{"tool_use_id":"x","content":[{"type":"text", "text":"a", "k":1}],"is_error":true}"#,
                r#"{"tool_use_id":"x","content":[{"type":"text", "text":"n\"ü", "k":1}],"is_error":false}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"tool_use_id":"x" }"#,
                r#"{"tool_use_id":"x","content":"n\"ü" }"#,
            ),
            (
                Dialect::OpenAiChat,
                r#"{"role":"tool","content":null,"tool_call_id":"x"}"#,
                r#"{"role":"tool","content":"n\"ü","tool_call_id":"x"}"#,
            ),
            (
                Dialect::OpenAiResponses,
                r#"{"output":"a","call_id":"x"}"#,
                r#"{"output":"n\"ü","call_id":"x"}"#,
            ),
            (
                Dialect::Codex,
                r#"{"call_id":"x","output":"{\"output\":\"a\",\"metadata\":{\"exit_code\":2,\"s\":0.1}}"}"#,
                r#"{"call_id":"x","output":"{\"output\":\"n\\\"ü\",\"metadata\":{\"exit_code\":0,\"s\":0.1}}"}"#,
            ),
        ] {
            assert_eq!(after(dialect, json, "n\"ü", false), expected);
        }
        let json = r#"{"tool_use_id":"x","content":"a"}"#;
        let failed = r#"{"tool_use_id":"x","content":"b","is_error":true}"#;
        assert_eq!(after(Dialect::Anthropic, json, "b", true), failed);
        // What the last member holds is not the result's.
        let cached = r#"{"tool_use_id":"x","content":"a","cache_control":{"type":"ephemeral"}}"#;
        let told = r#"{"tool_use_id":"x","content":"b","cache_control":{"type":"ephemeral"},"is_error":true}"#;
        assert_eq!(after(Dialect::Anthropic, cached, "b", true), told);
        assert_eq!(
            after(Dialect::Anthropic, failed, "a", false),
            json.replace('}', r#","is_error":false}"#)
        );
    }
}
