//! The `OpenAI` responses API.

mod document;
mod sse;

pub(crate) use document::{CUSTOM_CALL, OpenAiResponses, ending, is_api_item, is_call, read_item};
