//! `role: tool` messages of chat completions and `function_call_output` items of responses.
//!
//! Neither knows errors: the text says what failed. Responses carry images and files; a chat's tool message carries text
//! only, so there what can't be carried is named.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Json, Object};
use crate::text::format_bytes;
use crate::types::{Answer, Content};

/// A chat message that answers one call.
#[derive(Serialize)]
pub struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

/// An item that answers one call.
#[derive(Serialize)]
pub struct CallOutput<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: Output<'a>,
}

/// A text, or texts and media in their order.
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(to),
            Self::Parts(parts) => parts.serialize(to),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: String },
    #[serde(rename = "input_file")]
    File { filename: String, file_data: String },
}

pub fn messages(answers: &[Answer]) -> Vec<ToolMessage<'_>> {
    let messages = answers.iter().map(|answer| ToolMessage {
        role: "tool",
        tool_call_id: &answer.tool_use_id,
        content: text(&answer.content),
    });
    messages.collect()
}

pub fn outputs(answers: &[Answer]) -> Vec<CallOutput<'_>> {
    let outputs = answers.iter().map(|answer| CallOutput {
        r#type: "function_call_output",
        call_id: &answer.tool_use_id,
        output: output(&answer.content),
    });
    outputs.collect()
}

/// The content as one text; what is none is named.
pub fn text(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => Cow::Borrowed(text),
        Content::Blocks(blocks) => {
            let texts: Vec<Cow<str>> = blocks.iter().map(|block| block_text(block)).collect();
            Cow::Owned(texts.join("\n"))
        }
    }
}

fn output(content: &Content) -> Output<'_> {
    match content {
        Content::Blocks(blocks) if blocks.iter().any(|block| media(block).is_some()) => {
            let part = |block| {
                let text = || Part::Text {
                    text: block_text(block),
                };
                media(block).unwrap_or_else(text)
            };
            Output::Parts(blocks.iter().map(|block| part(&**block)).collect())
        }
        other => Output::Text(text(other)),
    }
}

/// The text of a block, or a name for what is none.
fn block_text(block: &RawValue) -> Cow<'_, str> {
    let object = Json::from(block).object();
    let text = object.as_ref().and_then(|object| object.text("text"));
    text.unwrap_or_else(|| Cow::Owned(named(object.as_ref())))
}

/// `[image/png, 12 KiB, left out: only text can be sent here]`
fn named(block: Option<&Object>) -> String {
    let source = block.and_then(|block| block.object("source"));
    let kind = block.and_then(|block| block.text("type"));
    let media = source.as_ref().and_then(|source| source.text("media_type"));
    let what = media.or(kind).unwrap_or(Cow::Borrowed("block"));
    let whence = source.and_then(|source| {
        let size = source
            .text("data")
            .map(|data| format_bytes(data.len() as u64 / 4 * 3));
        source.text("url").map(Cow::into_owned).or(size)
    });
    let whence = whence.map_or(String::new(), |whence| format!(", {whence}"));
    format!("[{what}{whence}, left out: only text can be sent here]")
}

/// An image or document as a responses item has it.
fn media(block: &RawValue) -> Option<Part<'_>> {
    let block = Json::from(block).object()?;
    let source = block.object("source")?;
    let address = match (
        source.text("url"),
        source.text("media_type"),
        source.text("data"),
    ) {
        (Some(url), _, _) => url.into_owned(),
        (None, Some(media_type), Some(data)) => format!("data:{media_type};base64,{data}"),
        _ => return None,
    };
    match &*block.text("type")? {
        "image" => Some(Part::Image { image_url: address }),
        "document" if address.starts_with("data:") => Some(Part::File {
            filename: block
                .text("title")
                .map_or("document".to_owned(), Cow::into_owned),
            file_data: address,
        }),
        _ => None,
    }
}
