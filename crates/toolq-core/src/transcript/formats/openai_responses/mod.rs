//! The `OpenAI` responses API.

mod document;
mod sse;

pub(crate) use document::{
    is_document, is_filtered, parse_call, parse_result, read_document, read_item,
};
pub(crate) use sse::{is_event, read_event};
