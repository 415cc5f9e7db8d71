//! The `OpenAI` responses API.

mod document;
mod sse;

pub(crate) use document::{
    CUSTOM_CALL, OpenAiResponses, OtherItem, classify_item, ending, is_call, read_item,
};
