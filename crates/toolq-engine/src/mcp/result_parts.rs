//! Chooses what of a server's result the model reads, and what MCP clients get.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::outcome::Attachments;
use crate::mcp::outcome::text_of_block;
use crate::output::{find_violation, strip_whitespace};
use redact::Mask;
use toolq_core::json_schema::CompiledSchema;
use toolq_core::types::{ResultParts, ToolLock};
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

// The contents of a result as MCP clients get them: what isn't text stays what it is.

/// Returns the blocks of a result, with secrets masked. A block for which `max_bytes` has no room becomes a line of text.
/// Returns `None` if all of them are texts, or if the texts are too long: then clients get what the model reads.
pub(crate) fn client_blocks(
    result: &CallToolResult,
    max_bytes: u64,
    mask: &Mask,
    attachments: &Attachments,
) -> Option<Vec<Box<RawValue>>> {
    if !result.content.iter().any(|block| !reads_as_text(block)) {
        return None;
    }
    let mut room = max_bytes;
    let blocks = result.content.iter().map(|block| {
        let whole = masked_json(block, mask)?;
        let fits = whole.get().len() as u64 <= room;
        let shown = if fits {
            whole
        } else if reads_as_text(block) {
            return None;
        } else {
            let text = text_of_block(block, attachments).into_owned();
            masked_json(&ContentBlock::Text { text }, mask)?
        };
        room = room.checked_sub(shown.get().len() as u64)?;
        Some(shown)
    });
    blocks.collect()
}

fn reads_as_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { .. } | ContentBlock::Unknown)
}

fn masked_json(block: &ContentBlock, mask: &Mask) -> Option<Box<RawValue>> {
    let json = serde_json::to_string(block).ok()?;
    RawValue::from_string(mask.apply_to_json(&json).into_owned()).ok()
}

// The structured content of results: held against the output schemas that servers announced when they were locked, and
// made readable for MCP clients.

/// What error messages call it.
const NOUN: &str = "structured content";

/// Reads structured content with the schemas that calls have needed, compiled once each.
#[derive(Debug)]
pub(crate) struct StructuredContentReader {
    mask: Arc<Mask>,
    /// By the digest of the tool's definition. `None` can't be compiled, and checks nothing.
    compiled: Mutex<HashMap<String, Option<Arc<CompiledSchema>>>>,
}

impl StructuredContentReader {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            compiled: Mutex::default(),
        }
    }

    /// Returns the structured content of a result, with secrets masked. Returns `None` if it has none, if no schema
    /// describes it, or if it is longer than `max_bytes`: JSON can't be cut.
    ///
    /// # Errors
    /// How it violates the output schema of its tool.
    pub(crate) fn read(
        &self,
        lock: Option<&ToolLock>,
        result: &CallToolResult,
        max_bytes: u64,
    ) -> Result<Option<Box<RawValue>>, String> {
        let (Some(content), Some(lock)) = (&result.structured_content, lock) else {
            return Ok(None);
        };
        let Some(schema) = self.compile(lock) else {
            return Ok(None);
        };
        if let Some(violation) = find_violation(&schema, content.get(), NOUN) {
            return Err(self.mask.apply(&violation).into_owned());
        }
        let compact = strip_whitespace(content.get());
        if compact.len() as u64 > max_bytes {
            return Ok(None);
        }
        let masked = self.mask.apply_to_json(&compact).into_owned();
        if masked != compact && find_violation(&schema, &masked, NOUN).is_some() {
            return Err(
                "the structured content violates the output schema once its secrets are masked"
                    .to_owned(),
            );
        }
        Ok(RawValue::from_string(masked).ok())
    }

    fn compile(&self, lock: &ToolLock) -> Option<Arc<CompiledSchema>> {
        let schema = lock.definition.output_schema.as_ref()?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled.entry(lock.sha256.clone()).or_insert_with(|| {
            let compiled = CompiledSchema::compile(schema);
            compiled.ok().map(Arc::new)
        });
        known.clone()
    }
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
