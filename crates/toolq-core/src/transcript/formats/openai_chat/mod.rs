//! `OpenAI` chat completions, which many servers implement.

mod document;
mod sse;

pub(crate) use document::{an_object, answered, asked, is_document, no_old_call, read};
pub(crate) use sse::{begins_another, event, is_event};
