//! `OpenAI` responses.

mod document;
mod sse;

pub(crate) use document::{answered, asked, is_document, item, read};
pub(crate) use sse::{event, is_event};
