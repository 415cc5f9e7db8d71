//! Replaces content that only MCP clients can receive with text: no model API accepts sounds, resources or links in a
//! result.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::json::JsonText;
use crate::text::format_bytes;
use crate::types::ResultContent;

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Returns the content as a model reads it.
pub fn content_for_model(content: &ResultContent) -> Cow<'_, ResultContent> {
    let ResultContent::Blocks(blocks) = content else {
        return Cow::Borrowed(content);
    };
    if blocks.iter().all(|block| mcp_block_text(block).is_none()) {
        return Cow::Borrowed(content);
    }
    let blocks = blocks.iter().map(|block| {
        let text = mcp_block_text(block);
        let text_block = text.and_then(|text| to_text_block(&text));
        text_block.unwrap_or_else(|| block.clone())
    });
    Cow::Owned(ResultContent::Blocks(blocks.collect()))
}

fn to_text_block(text: &str) -> Option<Box<RawValue>> {
    let r#type = "text";
    to_raw_value(&TextBlock { r#type, text }).ok()
}

/// Returns the text of a block that only MCP has; `None` for any other.
pub(crate) fn mcp_block_text(block: &RawValue) -> Option<String> {
    let block = JsonText::from(block).object()?;
    match &*block.get_text("type")? {
        "audio" => {
            let media_type = block.get_text("mimeType")?;
            let size = decoded_size(&block.get_text("data")?);
            Some(format!("[a sound of type {media_type}, {size}]"))
        }
        "resource_link" => {
            let (uri, name) = (block.get_text("uri")?, block.get_text("name")?);
            Some(format!("[a link to {uri}, {name}]"))
        }
        "resource" => {
            let resource = block.get_object("resource")?;
            if let Some(text) = resource.get_text("text") {
                return Some(text.into_owned());
            }
            let size = decoded_size(&resource.get_text("blob")?);
            let uri = resource.get_text("uri")?;
            Some(format!("[the binary resource {uri}, {size}]"))
        }
        _ => None,
    }
}

fn decoded_size(base64: &str) -> String {
    let digits = base64.trim_end_matches('=').len() as u64;
    format_bytes(digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_mcp_has_becomes_text_and_the_rest_stays() {
        let image = r#"{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}"#;
        let cases = [
            (image, image),
            (
                r#"{"type":"audio","mimeType":"audio/wav","data":"AAAAAA=="}"#,
                r#"{"type":"text","text":"[a sound of type audio/wav, 4 bytes]"}"#,
            ),
            (
                r#"{"type":"resource","resource":{"uri":"a:b","text":"one \"two\""}}"#,
                r#"{"type":"text","text":"one \"two\""}"#,
            ),
            (
                r#"{"type":"resource","resource":{"uri":"a:b","blob":"AAAA"}}"#,
                r#"{"type":"text","text":"[the binary resource a:b, 3 bytes]"}"#,
            ),
            (
                r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#,
                r#"{"type":"text","text":"[a link to file:///a, a]"}"#,
            ),
        ];
        let blocks = cases.map(|(block, _)| RawValue::from_string(block.to_owned()).unwrap());
        let content = ResultContent::Blocks(blocks.into());
        let ResultContent::Blocks(read) = content_for_model(&content).into_owned() else {
            panic!("blocks stay blocks");
        };
        for (block, (_, expected)) in read.iter().zip(cases) {
            assert_eq!(block.get(), expected);
        }
    }
}
