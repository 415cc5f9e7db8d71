//! `tool_result` blocks, alone, in an array, or in the user's message.

use serde::{Serialize, Serializer};

use crate::types::{Answer, Content};

/// The message that the user sends back.
#[derive(Serialize)]
pub struct Message<'a> {
    role: &'static str,
    content: Vec<ToolResult<'a>>,
}

/// One `tool_result` block.
#[derive(Serialize)]
pub struct ToolResult<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: Body<'a>,
    is_error: bool,
}

pub fn message(answers: &[Answer]) -> Message<'_> {
    Message {
        role: "user",
        content: results(answers),
    }
}

pub fn results(answers: &[Answer]) -> Vec<ToolResult<'_>> {
    answers.iter().map(result).collect()
}

pub fn result(answer: &Answer) -> ToolResult<'_> {
    ToolResult {
        r#type: "tool_result",
        tool_use_id: &answer.tool_use_id,
        content: Body(&answer.content),
        is_error: answer.is_error,
    }
}

/// A text as a string, blocks as they are.
struct Body<'a>(&'a Content);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Content::Text(text) => to.serialize_str(text),
            Content::Blocks(blocks) => blocks.serialize(to),
        }
    }
}
