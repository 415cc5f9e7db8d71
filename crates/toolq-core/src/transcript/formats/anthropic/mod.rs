//! Anthropic's Messages API.

mod document;
mod returned_content;
mod sse;

pub(crate) use document::{
    Anthropic, ending, is_block, read_assistant_message, read_other_message,
};
pub use returned_content::invalid_input_object;
pub(crate) use returned_content::returnable_content;
