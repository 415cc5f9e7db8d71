//! `OpenAI` chat completions, which many servers implement.

mod document;
mod sse;

pub(crate) use document::{
    REFUSAL_REASON, expect_object, has_refusal, is_document, parse_call, parse_result,
    read_document, reject_legacy_call,
};
pub(crate) use sse::{is_event, read_event};
