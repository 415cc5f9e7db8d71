//! Recognizes the content blocks that a tool may print: those of Anthropic, and those of MCP.

use toolq_core::json::{JsonText, ParsedObject};

/// Returns whether `output: content` takes this block.
pub(crate) fn is_content_block(block: JsonText<'_>) -> bool {
    let Some(block) = block.object() else {
        return false;
    };
    let has_text = |name| block.get_text(name).is_some();
    match block.get_text("type").as_deref() {
        Some("text") => has_text("text"),
        Some("image") if block.get("source").is_none() => is_mcp_media(&block),
        Some("image" | "document") => block.get_object("source").is_some(),
        Some("audio") => is_mcp_media(&block),
        Some("resource_link") => has_text("uri") && has_text("name"),
        Some("resource") => block.get_object("resource").is_some_and(|resource| {
            let has_contents =
                resource.get_text("text").is_some() || resource.get_text("blob").is_some();
            resource.get_text("uri").is_some() && has_contents
        }),
        _ => false,
    }
}

/// Returns an image of MCP as Anthropic has it, since models take images in that form; `None` for any other block.
pub(crate) fn anthropic_image(block: JsonText<'_>) -> Option<String> {
    let block = block.object()?;
    if block.get_text("type")? != "image" || block.get("source").is_some() {
        return None;
    }
    let (media_type, data) = (block.get("mimeType")?.get(), block.get("data")?.get());
    Some(format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":{media_type},"data":{data}}}}}"#
    ))
}

fn is_mcp_media(block: &ParsedObject) -> bool {
    block.get_text("data").is_some() && block.get_text("mimeType").is_some()
}
