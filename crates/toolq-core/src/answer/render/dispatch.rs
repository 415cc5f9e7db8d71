//! Answers → the JSON of a form: what goes to stdout. One file for each vendor.
//!
//! Whatever a tool printed is a string inside its own result: it can't add, end or imitate one.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Serialize;

use crate::answer::render::anthropic;
use crate::answer::render::openai;
use crate::types::{Answer, Content, Form};

/// The results of a turn, or of all open turns of one document, in the order of `answers`: compact JSON without a line
/// break at its end. [`Form::BlockLines`] has a line for each answer. Nothing to answer is an empty list in any form.
pub fn render(form: Form, answers: &[Answer]) -> String {
    match (form, answers) {
        (Form::BlockLines, _) => {
            let lines: Vec<String> = answers
                .iter()
                .map(|answer| json(&anthropic::result(answer)))
                .collect();
            lines.join("\n")
        }
        (_, []) => "[]".to_owned(),
        (Form::Message, _) => json(&anthropic::message(answers)),
        (Form::Block, [answer]) => json(&anthropic::result(answer)),
        (Form::Blocks | Form::Block, _) => json(&anthropic::results(answers)),
        (Form::OpenAiChat, _) => json(&openai::messages(answers)),
        (Form::OpenAiResponses, _) => json(&openai::outputs(answers)),
    }
}

/// What a form that carries only text has of a content.
pub fn as_text(content: &Content) -> Cow<'_, str> {
    openai::text(content)
}

/// Strings and raw JSON always have a JSON text.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
