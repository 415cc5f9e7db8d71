//! The content of results as models read it. Content that only MCP clients can receive becomes text: no model API accepts
//! sounds, resources or links in a result. What an API can't carry becomes a label.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::json::{JsonText, ParsedObject};
use crate::text::format_bytes;
use crate::types::{CallAnswer, ResultContent, is_generated_id};

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
fn mcp_block_text(block: &RawValue) -> Option<String> {
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

/// A block of content, as far as APIs tell them apart.
pub(super) enum ContentPart<'a> {
    Text(Cow<'a, str>),
    Image(Media<'a>),
    Document {
        title: Option<Cow<'a, str>>,
        media: Media<'a>,
    },
}

/// An image or a document.
pub(super) enum Media<'a> {
    Url(Cow<'a, str>),
    /// Its type, and its bytes in base64.
    Data(Cow<'a, str>, Cow<'a, str>),
}

impl ContentPart<'_> {
    /// Returns the part of a block. What is neither text nor media becomes a label.
    pub fn of(block: &RawValue) -> ContentPart<'_> {
        let object = JsonText::from(block).object();
        let part = object.as_ref().and_then(media_part);
        part.unwrap_or_else(|| ContentPart::Text(block_text(block, object.as_ref())))
    }
}

/// Returns the part of an image, or of a document that isn't text.
fn media_part<'a>(block: &ParsedObject<'a>) -> Option<ContentPart<'a>> {
    let source = block.get_object("source")?;
    if source.get_text("type").as_deref() == Some("text") {
        return None;
    }
    let media = match (source.get_text("url"), source.get_text("media_type")) {
        (Some(url), _) => Media::Url(url),
        (None, kind) => Media::Data(kind?, source.get_text("data")?),
    };
    match &*block.get_text("type")? {
        "image" => Some(ContentPart::Image(media)),
        "document" => Some(ContentPart::Document {
            title: block.get_text("title"),
            media,
        }),
        _ => None,
    }
}

/// Returns the parts of a result.
pub(super) fn content_parts(content: &ResultContent) -> Vec<ContentPart<'_>> {
    match content {
        ResultContent::Text(text) => vec![ContentPart::Text(text.into())],
        ResultContent::Blocks(blocks) => {
            blocks.iter().map(|block| ContentPart::of(block)).collect()
        }
    }
}

/// Returns the content as one text, with labels for blocks that aren't text.
pub(super) fn content_text(content: &ResultContent) -> Cow<'_, str> {
    match content {
        ResultContent::Text(text) => Cow::Borrowed(text),
        ResultContent::Blocks(blocks) => {
            let text = |block| block_text(block, JsonText::from(block).object().as_ref());
            let texts: Vec<Cow<str>> = blocks.iter().map(|block| text(&**block)).collect();
            Cow::Owned(texts.join("\n"))
        }
    }
}

/// Returns the text of a block, or a label for a block that isn't text.
fn block_text<'a>(block: &'a RawValue, object: Option<&ParsedObject<'a>>) -> Cow<'a, str> {
    if let Some(text) = mcp_block_text(block) {
        return Cow::Owned(text);
    }
    let text = object.and_then(|object| object.get_text("text").or_else(|| document_text(object)));
    text.unwrap_or_else(|| Cow::Owned(omitted_block_label(object)))
}

/// Returns the text of a document that has one in place of bytes.
fn document_text<'a>(block: &ParsedObject<'a>) -> Option<Cow<'a, str>> {
    let source = block.get_object("source")?;
    match &*source.get_text("type")? {
        "text" => source.get_text("data"),
        "content" => source.get_text("content").or_else(|| {
            let inner = source.get_elements("content")?.into_iter();
            let texts = inner.filter_map(|block| block.object()?.get_text("text"));
            let texts: Vec<Cow<str>> = texts.collect();
            Some(Cow::Owned(texts.join("\n")))
        }),
        _ => None,
    }
}

/// `[image/png, 12 KiB, omitted: only text can be sent here]`
fn omitted_block_label(block: Option<&ParsedObject>) -> String {
    let source = block.and_then(|block| block.get_object("source"));
    let kind = block.and_then(|block| block.get_text("type"));
    let media = source
        .as_ref()
        .and_then(|source| source.get_text("media_type"));
    let what = media.or(kind).unwrap_or(Cow::Borrowed("block"));
    let origin = source.and_then(|source| {
        let size = source.get_text("data").map(|data| decoded_size(&data));
        source.get_text("url").map(Cow::into_owned).or(size)
    });
    let origin_suffix = origin.map_or(String::new(), |origin| format!(", {origin}"));
    format!("[{what}{origin_suffix}, omitted: only text can be sent here]")
}

/// Returns the label of media in a form that can carry some media, but not these.
pub(super) fn omitted_label(media: &Media) -> String {
    match media {
        Media::Url(url) => format!("[{url}, omitted: it can't be sent here]"),
        Media::Data(kind, data) => {
            let size = decoded_size(data);
            format!("[{kind}, {size}, omitted: it can't be sent here]")
        }
    }
}

// What all forms have in common.

/// An id: a text, or the digits of a number.
#[derive(Clone, Copy)]
pub(super) struct AnswerId<'a> {
    text: &'a str,
    is_number: bool,
}

impl<'a> AnswerId<'a> {
    pub fn of(answer: &'a CallAnswer) -> Self {
        Self {
            text: &answer.tool_use_id,
            is_number: answer.has_number_id,
        }
    }

    /// Returns the id that the call had itself, for dialects whose results need none.
    pub fn own(answer: &'a CallAnswer) -> Option<Self> {
        (!is_generated_id(&answer.tool_use_id)).then(|| Self::of(answer))
    }
}

impl Serialize for AnswerId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = || RawValue::from_string(self.text.to_owned()).ok();
        match self.is_number.then(number).flatten() {
            Some(number) => number.serialize(serializer),
            None => serializer.serialize_str(self.text),
        }
    }
}

/// A value under the key that says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Keyed<T> {
    ToolResult(T),
    FunctionResponse(T),
    InlineData(T),
    Bytes(T),
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
