//! Renders the results of calls in a given form: this is what goes to stdout.
//!
//! A tool's output is always a string inside its own result: it can't add, end or forge a result.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::anthropic;
use crate::answer::render::bedrock;
use crate::answer::render::gemini;
use crate::answer::render::model_content;
use crate::answer::render::openai;
use crate::answer::render::results;
use crate::json::expect_json;
use crate::types::{AnswerForm, CallAnswer, ResultContent};

/// Renders the results of a turn, or of all open turns of one document, in the order of `answers`: compact JSON without
/// a trailing newline. [`AnswerForm::BlockLines`] and [`AnswerForm::ResultLines`] have one line per result, and are empty without results. Any other form
/// without results is an empty list.
pub fn render_answers(form: AnswerForm, answers: &[CallAnswer]) -> String {
    match (form, answers) {
        (AnswerForm::BlockLines, _) => {
            let lines: Vec<String> = answers
                .iter()
                .map(|answer| to_compact_json(&anthropic::build_block(answer)))
                .collect();
            lines.join("\n")
        }
        (AnswerForm::ResultLines, _) => {
            let rows = answers.iter().map(results::build_row);
            let lines: Vec<String> = rows.map(|row| to_compact_json(&row)).collect();
            lines.join("\n")
        }
        (_, []) => "[]".to_owned(),
        (AnswerForm::Message, _) => to_compact_json(&anthropic::build_message(answers)),
        (AnswerForm::Block, [answer]) => to_compact_json(&anthropic::build_block(answer)),
        (AnswerForm::Blocks | AnswerForm::Block, _) => {
            to_compact_json(&anthropic::build_blocks(answers))
        }
        (AnswerForm::Results, _) => to_compact_json(&results::build_rows(answers)),
        (AnswerForm::OpenAiChat, _) => to_compact_json(&openai::build_messages(answers)),
        (AnswerForm::OpenAiResponses, _) => to_compact_json(&openai::build_outputs(answers)),
        (AnswerForm::Gemini, _) => to_compact_json(&gemini::build_message(answers)),
        (AnswerForm::Bedrock, _) => to_compact_json(&bedrock::build_message(answers)),
        (AnswerForm::Ollama, _) => to_compact_json(&openai::build_named_messages(answers)),
    }
}

/// Converts content to text, for forms that only carry text.
pub fn content_as_text(content: &ResultContent) -> Cow<'_, str> {
    model_content::content_text(content)
}

fn to_compact_json(value: &impl Serialize) -> String {
    expect_json(serde_json::to_string(value))
}
