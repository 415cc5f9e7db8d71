//! Anthropic's Messages API.

mod document;
mod sse;

pub(crate) use document::{answer, answered, asked, cuts_off, is_block, read, results};
pub(crate) use sse::{event, is_event};
