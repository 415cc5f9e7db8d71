//! Renders the results of calls in a given form: this is what goes to stdout.
//!
//! A tool's output is always a string inside its own result: it can't add, end or forge a result.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::answer::render::model_content::{self, AnswerId, content_for_model};
use crate::answer::render::{bedrock, gemini, openai};
use crate::json::{EachOf, expect_json};
use crate::types::{AnswerForm, CallAnswer, ResultContent};

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
        (AnswerForm::OpenAiChat, _) => render_list(answers, openai::build_message),
        (AnswerForm::OpenAiResponses, _) => render_list(answers, openai::build_output),
        (AnswerForm::Gemini, _) => to_compact_json(&gemini::build_message(answers)),
        (AnswerForm::Bedrock, _) => render_message(answers, bedrock::build_block),
        (AnswerForm::Ollama, _) => render_list(answers, openai::build_named_message),
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
    model_content::content_text(content)
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
