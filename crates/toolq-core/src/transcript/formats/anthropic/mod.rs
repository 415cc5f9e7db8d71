//! Anthropic's Messages API.

mod document;
mod returned_content;
mod sse;

pub(crate) use document::{
    REFUSAL_REASON, is_block, is_cut_off_reason, is_message_without_role, parse_call, parse_result,
    read_assistant_message, read_document, read_results,
};
pub use returned_content::invalid_input_object;
pub(crate) use returned_content::returnable_content;
pub(crate) use sse::{is_event, read_event};
