//! Anthropic's Messages API.

mod document;
mod sse;

pub(crate) use document::{
    is_block, is_cut_off_reason, parse_call, parse_result, read_assistant_message, read_document,
    read_results,
};
pub(crate) use sse::{is_event, read_event};
