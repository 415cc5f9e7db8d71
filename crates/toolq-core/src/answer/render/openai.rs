//! Renders `role: tool` messages for chat completions and `function_call_output` items for the responses API.
//!
//! Neither has an error flag, so the text says what failed. Items of the responses API can carry images and files; a
//! chat tool message carries only text, so a label replaces other content.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::answer::render::answer_list::AnswerList;
use crate::answer::render::model_content::mcp_block_text;
use crate::json::{JsonText, ParsedObject};
use crate::text::format_bytes;
use crate::types::{CallAnswer, ResultContent};

/// The chat message with the result of one call.
#[derive(Serialize)]
pub struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

/// The item with the result of one call.
#[derive(Serialize)]
pub struct FunctionCallOutput<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: OutputContent<'a>,
}

/// Text, or a sequence of text and media.
enum OutputContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<OutputPart<'a>>),
}

impl Serialize for OutputContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum OutputPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: String },
    #[serde(rename = "input_file")]
    File { filename: String, file_data: String },
}

/// Builds one `role: tool` message per result.
pub fn build_messages(answers: &[CallAnswer]) -> AnswerList<'_, ToolMessage<'_>> {
    AnswerList::new(answers, |answer| ToolMessage {
        role: "tool",
        tool_call_id: &answer.tool_use_id,
        content: content_text(&answer.content),
    })
}

/// Builds one `function_call_output` item per result.
pub fn build_outputs(answers: &[CallAnswer]) -> AnswerList<'_, FunctionCallOutput<'_>> {
    AnswerList::new(answers, |answer| FunctionCallOutput {
        r#type: "function_call_output",
        call_id: &answer.tool_use_id,
        output: output_content(&answer.content),
    })
}

/// Returns the content as one text, with labels for blocks that aren't text.
pub fn content_text(content: &ResultContent) -> Cow<'_, str> {
    match content {
        ResultContent::Text(text) => Cow::Borrowed(text),
        ResultContent::Blocks(blocks) => {
            let texts: Vec<Cow<str>> = blocks.iter().map(|block| block_text(block)).collect();
            Cow::Owned(texts.join("\n"))
        }
    }
}

fn output_content(content: &ResultContent) -> OutputContent<'_> {
    match content {
        ResultContent::Blocks(blocks) if blocks.iter().any(|block| media_part(block).is_some()) => {
            let part = |block| {
                let text = || OutputPart::Text {
                    text: block_text(block),
                };
                media_part(block).unwrap_or_else(text)
            };
            OutputContent::Parts(blocks.iter().map(|block| part(&**block)).collect())
        }
        other => OutputContent::Text(content_text(other)),
    }
}

/// Returns the text of a block, or a label for a block that isn't text.
fn block_text(block: &RawValue) -> Cow<'_, str> {
    if let Some(text) = mcp_block_text(block) {
        return Cow::Owned(text);
    }
    let object = JsonText::from(block).object();
    let text = object.as_ref().and_then(|object| object.get_text("text"));
    text.unwrap_or_else(|| Cow::Owned(omitted_block_label(object.as_ref())))
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
        let size = source
            .get_text("data")
            .map(|data| format_bytes(data.len() as u64 / 4 * 3));
        source.get_text("url").map(Cow::into_owned).or(size)
    });
    let origin_suffix = origin.map_or(String::new(), |origin| format!(", {origin}"));
    format!("[{what}{origin_suffix}, omitted: only text can be sent here]")
}

/// Converts an image or document to a part of a responses item.
fn media_part(block: &RawValue) -> Option<OutputPart<'_>> {
    let block = JsonText::from(block).object()?;
    let source = block.get_object("source")?;
    let media_url = match (
        source.get_text("url"),
        source.get_text("media_type"),
        source.get_text("data"),
    ) {
        (Some(url), _, _) => url.into_owned(),
        (None, Some(media_type), Some(data)) => format!("data:{media_type};base64,{data}"),
        _ => return None,
    };
    match &*block.get_text("type")? {
        "image" => Some(OutputPart::Image {
            image_url: media_url,
        }),
        "document" if media_url.starts_with("data:") => Some(OutputPart::File {
            filename: block
                .get_text("title")
                .map_or("document".to_owned(), Cow::into_owned),
            file_data: media_url,
        }),
        _ => None,
    }
}
