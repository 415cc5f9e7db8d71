//! Renders `tool_result` blocks: alone, in an array, or in a user message.

use serde::{Serialize, Serializer};

use crate::answer::render::answer_id::AnswerId;
use crate::answer::render::answer_list::AnswerList;
use crate::answer::render::model_content::content_for_model;
use crate::types::{CallAnswer, ResultContent};

/// The user message that carries the results.
#[derive(Serialize)]
pub struct UserMessage<'a> {
    role: &'static str,
    content: AnswerList<'a, ToolResultBlock<'a>>,
}

/// One `tool_result` block.
#[derive(Serialize)]
pub struct ToolResultBlock<'a> {
    r#type: &'static str,
    tool_use_id: AnswerId<'a>,
    content: ToolResultContent<'a>,
    is_error: bool,
}

/// Builds the user message that carries all results.
pub fn build_message(answers: &[CallAnswer]) -> UserMessage<'_> {
    UserMessage {
        role: "user",
        content: build_blocks(answers),
    }
}

/// Builds one `tool_result` block per result.
pub fn build_blocks(answers: &[CallAnswer]) -> AnswerList<'_, ToolResultBlock<'_>> {
    AnswerList::new(answers, build_block)
}

/// Builds the `tool_result` block of one result.
pub fn build_block(answer: &CallAnswer) -> ToolResultBlock<'_> {
    ToolResultBlock {
        r#type: "tool_result",
        tool_use_id: AnswerId::of(answer),
        content: ToolResultContent(&answer.content),
        is_error: answer.is_error,
    }
}

/// Text as a string, and blocks as a model reads them.
pub(super) struct ToolResultContent<'a>(pub(super) &'a ResultContent);

impl Serialize for ToolResultContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &*content_for_model(self.0) {
            ResultContent::Text(text) => serializer.serialize_str(text),
            ResultContent::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}
