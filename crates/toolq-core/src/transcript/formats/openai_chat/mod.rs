//! `OpenAI` chat completions, which many servers implement.

mod document;
mod sse;

pub(crate) use document::{OpenAiChat, ending, has_refusal, reject_legacy_call};
