//! Anthropic's Messages API.

mod document;
mod sse;

pub use document::invalid_input_object;
pub(crate) use document::{
    Anthropic, ending, is_block, read_assistant_message, read_other_message, returnable_content,
};
