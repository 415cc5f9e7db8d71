//! Renders the `toolResult` blocks of the Converse API.

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::model_content::{
    AnswerId, ContentPart, Keyed, Media, content_parts, omitted_label,
};
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

/// What is under the key of a block.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult<'a> {
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
type Source<'a> = Keyed<Cow<'a, str>>;

/// Builds the block of one result.
pub(super) fn build_block(answer: &CallAnswer) -> Keyed<ToolResult<'_>> {
    Keyed::ToolResult(ToolResult {
        tool_use_id: AnswerId::of(answer),
        content: content_parts(&answer.content)
            .into_iter()
            .map(build_part)
            .collect(),
        status: if answer.is_error { "error" } else { "success" },
    })
}

fn build_part(part: ContentPart<'_>) -> Block<'_> {
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
    let source = Keyed::Bytes(bytes.clone());
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
