//! Renders the results of calls in a given form: this is what goes to stdout.
//!
//! A tool's output is always a string inside its own result: it can't add, end or forge a result.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::answer::model_content::{
    AnswerId, ContentPart, Keyed, Media, content_for_model, content_parts, content_text,
    omitted_label,
};
use crate::json::{EachOf, expect_json};
use crate::types::{AnswerForm, CallAnswer, CallKind, ResultContent};

/// Renders the results of a turn, or of all open turns of one document, in the order of `answers`: compact JSON without
/// a trailing newline. [`AnswerForm::BlockLines`] and [`AnswerForm::ResultLines`] have one line per result, and are empty without results. Any other form
/// without results is an empty list.
pub fn render_answers(form: AnswerForm, answers: &[CallAnswer]) -> String {
    match (form, answers) {
        (AnswerForm::BlockLines, _) => render_lines(answers, build_block),
        (AnswerForm::ResultLines, _) => render_lines(answers, build_row),
        (_, []) => "[]".to_owned(),
        (AnswerForm::Message, _) => render_message(answers, build_block),
        (AnswerForm::Block, [answer]) => to_compact_json(&build_block(answer)),
        (AnswerForm::Blocks | AnswerForm::Block, _) => render_list(answers, build_block),
        (AnswerForm::Results, _) => render_list(answers, build_row),
        (AnswerForm::OpenAiChat, _) => render_list(answers, build_chat_message),
        (AnswerForm::OpenAiResponses, _) => render_list(answers, build_output_item),
        (AnswerForm::Gemini, _) => to_compact_json(&build_function_message(answers)),
        (AnswerForm::Bedrock, _) => render_message(answers, build_converse_block),
        (AnswerForm::Ollama, _) => render_list(answers, build_ollama_message),
    }
}

fn render_lines<'a, T: Serialize>(
    answers: &'a [CallAnswer],
    build: fn(&'a CallAnswer) -> T,
) -> String {
    let lines: Vec<String> = answers
        .iter()
        .map(|answer| to_compact_json(&build(answer)))
        .collect();
    lines.join("\n")
}

fn render_list<'a, T: Serialize>(
    answers: &'a [CallAnswer],
    build: fn(&'a CallAnswer) -> T,
) -> String {
    to_compact_json(&EachOf(answers.iter().map(build)))
}

/// Renders the user message that carries all results.
fn render_message<'a, T: Serialize>(
    answers: &'a [CallAnswer],
    build: fn(&'a CallAnswer) -> T,
) -> String {
    to_compact_json(&UserMessage {
        role: "user",
        content: EachOf(answers.iter().map(build)),
    })
}

/// The user message that carries the results.
#[derive(Serialize)]
struct UserMessage<L> {
    role: &'static str,
    content: L,
}

/// Converts content to text, for forms that only carry text.
pub fn content_as_text(content: &ResultContent) -> Cow<'_, str> {
    content_text(content)
}

fn to_compact_json(value: &impl Serialize) -> String {
    expect_json(serde_json::to_string(value))
}

// Renders results for programs: with how each call ended, which no dialect has a place for.

/// One result.
#[derive(Serialize)]
struct ResultRow<'a> {
    tool_use_id: &'a str,
    tool_name: &'a str,
    status: &'a str,
    is_error: bool,
    content: ToolResultContent<'a>,
    error: Option<&'a str>,
    duration_ms: u128,
    attempts: u32,
    /// The age of a result from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_age_ms: Option<u128>,
}

/// Builds the row of one result.
fn build_row(answer: &CallAnswer) -> ResultRow<'_> {
    ResultRow {
        tool_use_id: &answer.tool_use_id,
        tool_name: &answer.tool_name,
        status: answer.report.status.as_str(),
        is_error: answer.is_error,
        content: ToolResultContent(&answer.content),
        error: answer.report.error.as_deref(),
        duration_ms: answer.report.duration.as_millis(),
        attempts: answer.report.attempts,
        cached_age_ms: answer.report.cached_age.map(|age| age.as_millis()),
    }
}

/// One `tool_result` block.
#[derive(Serialize)]
struct ToolResultBlock<'a> {
    r#type: &'static str,
    tool_use_id: AnswerId<'a>,
    content: ToolResultContent<'a>,
    is_error: bool,
}

/// Builds the `tool_result` block of one result.
fn build_block(answer: &CallAnswer) -> ToolResultBlock<'_> {
    ToolResultBlock {
        r#type: "tool_result",
        tool_use_id: AnswerId::of(answer),
        content: ToolResultContent(&answer.content),
        is_error: answer.is_error,
    }
}

/// Text as a string, and blocks as a model reads them.
struct ToolResultContent<'a>(&'a ResultContent);

impl Serialize for ToolResultContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &*content_for_model(self.0) {
            ResultContent::Text(text) => serializer.serialize_str(text),
            ResultContent::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

// The `role: tool` messages of chat completions and of Ollama, and the items with results of the responses API.
//
// None has an error flag, so the text says what failed. Items of the responses API can carry images and files; a message
// carries only text, so a label replaces other content.

/// The message with the result of one call.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: Option<AnswerId<'a>>,
    tool_name: Option<&'a str>,
    content: Cow<'a, str>,
}

/// The item with the result of one call.
#[derive(Serialize)]
struct CallOutputItem<'a> {
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
fn build_chat_message(answer: &CallAnswer) -> ToolMessage<'_> {
    ToolMessage {
        role: "tool",
        tool_call_id: Some(AnswerId::of(answer)),
        tool_name: None,
        content: content_text(&answer.content),
    }
}

/// Builds the message of Ollama for one result, whose call may have had no id.
fn build_ollama_message(answer: &CallAnswer) -> ToolMessage<'_> {
    ToolMessage {
        tool_call_id: AnswerId::own(answer),
        tool_name: Some(&answer.tool_name),
        ..build_chat_message(answer)
    }
}

/// Builds the item of the responses API for one result.
fn build_output_item(answer: &CallAnswer) -> CallOutputItem<'_> {
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

// The message of Gemini, with `functionResponse` parts. A text is under `output`, or under `error` if the call failed.

/// The message that carries the results.
#[derive(Serialize)]
struct FunctionMessage<P> {
    role: &'static str,
    parts: P,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    /// Most calls have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<AnswerId<'a>>,
    name: &'a str,
    response: FunctionOutcome,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Keyed<InlineData<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum FunctionOutcome {
    Output(String),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: Cow<'a, str>,
    data: Cow<'a, str>,
}

/// Builds the message that carries all results.
fn build_function_message(answers: &[CallAnswer]) -> impl Serialize {
    FunctionMessage {
        role: "user",
        parts: EachOf(
            answers
                .iter()
                .map(|answer| Keyed::FunctionResponse(build_response(answer))),
        ),
    }
}

fn build_response(answer: &CallAnswer) -> FunctionResponse<'_> {
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for part in content_parts(&answer.content) {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::Image(Media::Data(mime_type, data))
            | ContentPart::Document {
                media: Media::Data(mime_type, data),
                ..
            } => parts.push(Keyed::InlineData(InlineData { mime_type, data })),
            ContentPart::Image(media) | ContentPart::Document { media, .. } => {
                texts.push(omitted_label(&media).into());
            }
        }
    }
    let text = texts.join("\n");
    FunctionResponse {
        id: AnswerId::own(answer),
        name: &answer.tool_name,
        response: if answer.is_error {
            FunctionOutcome::Error(text)
        } else {
            FunctionOutcome::Output(text)
        },
        parts,
    }
}

// The `toolResult` blocks of the Converse API.

/// Types of images and documents that the API takes, each with its name for them.
const CONVERSE_FORMATS: [(&str, &str); 13] = [
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
struct ToolResult<'a> {
    tool_use_id: AnswerId<'a>,
    content: Vec<ConverseBlock<'a>>,
    status: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ConverseBlock<'a> {
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
fn build_converse_block(answer: &CallAnswer) -> Keyed<ToolResult<'_>> {
    Keyed::ToolResult(ToolResult {
        tool_use_id: AnswerId::of(answer),
        content: content_parts(&answer.content)
            .into_iter()
            .map(build_converse_part)
            .collect(),
        status: if answer.is_error { "error" } else { "success" },
    })
}

fn build_converse_part(part: ContentPart<'_>) -> ConverseBlock<'_> {
    let (title, media) = match part {
        ContentPart::Text(text) => return ConverseBlock::Text(text),
        ContentPart::Image(media) => (None, media),
        ContentPart::Document { title, media } => (Some(title), media),
    };
    let format = match &media {
        Media::Data(kind, _) => CONVERSE_FORMATS.iter().find(|(known, _)| known == kind),
        Media::Url(_) => None,
    };
    let (Some((_, format)), Media::Data(_, bytes)) = (format, &media) else {
        return ConverseBlock::Text(omitted_label(&media).into());
    };
    let source = Keyed::Bytes(bytes.clone());
    match title {
        None => ConverseBlock::Image { format, source },
        Some(title) => ConverseBlock::Document {
            format,
            name: converse_name(title.as_deref()),
            source,
        },
    }
}

/// Returns a title with the characters that the API takes in a name.
fn converse_name(title: Option<&str>) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-()[] ".contains(letter);
    let title = title
        .filter(|title| !title.is_empty())
        .unwrap_or("document");
    title
        .chars()
        .map(|letter| if is_allowed(letter) { letter } else { '-' })
        .collect()
}
