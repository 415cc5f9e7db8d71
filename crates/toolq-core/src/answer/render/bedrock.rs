//! Renders the message with `toolResult` blocks of the Converse API.

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::answer_list::{AnswerId, AnswerList};
use crate::answer::render::model_content::{ContentPart, Media, content_parts, omitted_label};
use crate::types::CallAnswer;

/// Types of images and documents that the API takes, each with its name for them.
const FORMATS: [(&str, &str); 13] = [
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
    ("application/msword", "doc"),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
    ),
    ("application/vnd.ms-excel", "xls"),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    ),
];

/// The message that carries the results.
#[derive(Serialize)]
pub struct ResultMessage<'a> {
    role: &'static str,
    content: AnswerList<'a, ResultBlock<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultBlock<'a> {
    tool_result: ToolResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    tool_use_id: AnswerId<'a>,
    content: Vec<Block<'a>>,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    Image {
        format: &'static str,
        source: Source<'a>,
    },
    Document {
        format: &'static str,
        name: String,
        source: Source<'a>,
    },
}

/// The bytes of a medium, in base64.
#[derive(Serialize)]
struct Source<'a> {
    bytes: Cow<'a, str>,
}

/// Builds the message that carries all results.
pub fn build_message(answers: &[CallAnswer]) -> ResultMessage<'_> {
    ResultMessage {
        role: "user",
        content: AnswerList::new(answers, |answer| ResultBlock {
            tool_result: ToolResult {
                tool_use_id: AnswerId::of(answer),
                content: content_parts(&answer.content)
                    .into_iter()
                    .map(build_block)
                    .collect(),
                status: if answer.is_error { "error" } else { "success" },
            },
        }),
    }
}

fn build_block(part: ContentPart<'_>) -> Block<'_> {
    let (title, media) = match part {
        ContentPart::Text(text) => return Block::Text(text),
        ContentPart::Image(media) => (None, media),
        ContentPart::Document { title, media } => (Some(title), media),
    };
    let format = match &media {
        Media::Data(kind, _) => FORMATS.iter().find(|(known, _)| known == kind),
        Media::Url(_) => None,
    };
    let (Some((_, format)), Media::Data(_, bytes)) = (format, &media) else {
        return Block::Text(omitted_label(&media).into());
    };
    let source = Source {
        bytes: bytes.clone(),
    };
    match title {
        None => Block::Image { format, source },
        Some(title) => Block::Document {
            format,
            name: document_name(title.as_deref()),
            source,
        },
    }
}

/// Returns a title with the characters that the API takes in a name.
fn document_name(title: Option<&str>) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-()[] ".contains(letter);
    let title = title
        .filter(|title| !title.is_empty())
        .unwrap_or("document");
    title
        .chars()
        .map(|letter| if is_allowed(letter) { letter } else { '-' })
        .collect()
}
