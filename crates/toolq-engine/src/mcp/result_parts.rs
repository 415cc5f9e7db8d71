//! Chooses what of a server's result the model reads.

use serde_json::Value;

use toolq_core::types::ResultParts;
use toolq_mcp::{CallToolResult, ContentBlock};

/// Returns the result with the contents that the model reads. A result without structured content has only its own.
pub(crate) fn choose_parts(mut result: CallToolResult, parts: ResultParts) -> CallToolResult {
    let Some(structured) = &result.structured_content else {
        return result;
    };
    let block = ContentBlock::Text {
        text: structured.get().to_owned(),
    };
    match parts {
        ResultParts::Content => {}
        ResultParts::Structured => {
            result.content.retain(|block| !is_text(block));
            result.content.insert(0, block);
        }
        // Servers often repeat their structured content as text, as the specification advises.
        ResultParts::Both => {
            if !has_same_json(&result.content, structured.get()) {
                result.content.push(block);
            }
        }
    }
    result
}

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { .. })
}

fn has_same_json(content: &[ContentBlock], json: &str) -> bool {
    let Ok(expected) = serde_json::from_str::<Value>(json) else {
        return false;
    };
    content.iter().any(|block| {
        let ContentBlock::Text { text } = block else {
            return false;
        };
        serde_json::from_str::<Value>(text).is_ok_and(|value| value == expected)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Map, json};

    use super::*;

    /// Returns the texts and types of the contents that are chosen of a result.
    fn chosen(result: &Value, parts: ResultParts) -> Vec<String> {
        let structured = result.get("structuredContent").map(to_raw_value);
        let result = CallToolResult {
            meta: Map::new(),
            content: serde_json::from_value(result["content"].clone()).unwrap(),
            structured_content: structured.transpose().unwrap(),
            is_error: false,
        };
        let result = choose_parts(result, parts);
        let describe = |block: &ContentBlock| match block {
            ContentBlock::Text { text } => text.clone(),
            _ => "other".to_owned(),
        };
        result.content.iter().map(describe).collect()
    }

    #[test]
    fn texts_give_way_to_structured_content_and_images_stay() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let text = json!({"type": "text", "text": "one note"});
        let result = json!({"content": [text, image], "structuredContent": {"n": 1}});
        for (parts, expected) in [
            (ResultParts::Content, vec!["one note", "other"]),
            (ResultParts::Structured, vec![r#"{"n":1}"#, "other"]),
            (ResultParts::Both, vec!["one note", "other", r#"{"n":1}"#]),
        ] {
            assert_eq!(chosen(&result, parts), expected, "{parts:?}");
        }
        let unstructured = json!({ "content": [text] });
        for parts in [ResultParts::Structured, ResultParts::Both] {
            assert_eq!(chosen(&unstructured, parts), ["one note"]);
        }
    }

    #[test]
    fn the_same_json_is_not_said_twice() {
        let text = json!({"type": "text", "text": "{ \"n\": 1 }"});
        let result = json!({"content": [text], "structuredContent": {"n": 1}});
        assert_eq!(chosen(&result, ResultParts::Both), [r#"{ "n": 1 }"#]);
    }
}
