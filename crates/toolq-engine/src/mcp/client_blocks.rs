//! The contents of a result as MCP clients get them: what isn't text stays what it is.

use serde_json::value::RawValue;

use crate::mcp::attachments::Attachments;
use crate::mcp::outcome::text_of_block;
use redact::Mask;
use toolq_mcp::{CallToolResult, ContentBlock};

/// Returns the blocks of a result, with secrets masked. A block for which `max_bytes` has no room becomes a line of text.
/// Returns `None` if all of them are texts, or if the texts are too long: then clients get what the model reads.
pub(crate) fn client_blocks(
    result: &CallToolResult,
    max_bytes: u64,
    mask: &Mask,
    attachments: &Attachments,
) -> Option<Vec<Box<RawValue>>> {
    if !result.content.iter().any(|block| !is_text(block)) {
        return None;
    }
    let mut room = max_bytes;
    let blocks = result.content.iter().map(|block| {
        let whole = masked_json(block, mask)?;
        let fits = whole.get().len() as u64 <= room;
        let shown = if fits {
            whole
        } else if is_text(block) {
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

fn is_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { .. } | ContentBlock::Unknown)
}

fn masked_json(block: &ContentBlock, mask: &Mask) -> Option<Box<RawValue>> {
    let json = serde_json::to_string(block).ok()?;
    RawValue::from_string(mask.apply_to_json(&json).into_owned()).ok()
}
