//! Renders `role: tool` messages, of chat completions and of Ollama, and the items with results of the responses API.
//!
//! None has an error flag, so the text says what failed. Items of the responses API can carry images and files; a message
//! carries only text, so a label replaces other content.

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::model_content::{
    AnswerId, ContentPart, Media, content_parts, content_text, omitted_label,
};
use crate::types::{CallAnswer, CallKind, ResultContent};

/// The message with the result of one call.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: Option<AnswerId<'a>>,
    tool_name: Option<&'a str>,
    content: Cow<'a, str>,
}

/// The item with the result of one call.
#[derive(Serialize)]
pub(super) struct CallOutputItem<'a> {
    r#type: &'static str,
    call_id: AnswerId<'a>,
    output: OutputContent<'a>,
}

/// Text, or a sequence of text and media.
#[derive(Serialize)]
#[serde(untagged)]
enum OutputContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<OutputPart<'a>>),
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

/// Builds the message of chat completions for one result.
pub(super) fn build_message(answer: &CallAnswer) -> ToolMessage<'_> {
    ToolMessage {
        role: "tool",
        tool_call_id: Some(AnswerId::of(answer)),
        tool_name: None,
        content: content_text(&answer.content),
    }
}

/// Builds the message of Ollama for one result, whose call may have had no id.
pub(super) fn build_named_message(answer: &CallAnswer) -> ToolMessage<'_> {
    ToolMessage {
        tool_call_id: AnswerId::own(answer),
        tool_name: Some(&answer.tool_name),
        ..build_message(answer)
    }
}

/// Builds the item of the responses API for one result.
pub(super) fn build_output(answer: &CallAnswer) -> CallOutputItem<'_> {
    CallOutputItem {
        r#type: match answer.kind {
            CallKind::Function => "function_call_output",
            CallKind::Custom => "custom_tool_call_output",
        },
        call_id: AnswerId::of(answer),
        output: output_content(&answer.content),
    }
}

fn output_content(content: &ResultContent) -> OutputContent<'_> {
    let parts = content_parts(content);
    if parts
        .iter()
        .all(|part| matches!(part, ContentPart::Text(_)))
    {
        return OutputContent::Text(content_text(content));
    }
    OutputContent::Parts(parts.into_iter().map(output_part).collect())
}

fn output_part(part: ContentPart<'_>) -> OutputPart<'_> {
    let data_url = |kind: &str, data: &str| format!("data:{kind};base64,{data}");
    match part {
        ContentPart::Text(text) => OutputPart::Text { text },
        ContentPart::Image(media) => OutputPart::Image {
            image_url: match media {
                Media::Url(url) => url.into_owned(),
                Media::Data(kind, data) => data_url(&kind, &data),
            },
        },
        ContentPart::Document {
            title,
            media: Media::Data(kind, data),
        } => OutputPart::File {
            filename: title.map_or("document".to_owned(), Cow::into_owned),
            file_data: data_url(&kind, &data),
        },
        ContentPart::Document { media, .. } => OutputPart::Text {
            text: omitted_label(&media).into(),
        },
    }
}
