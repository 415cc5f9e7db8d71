//! Dispatches to the reader of a dialect.
//!
//! Readers only look for calls and their results. They ignore text, reasoning, and what the API runs itself (server
//! tools, MCP connectors).

use crate::json::ParsedObject;
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentResult;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::claude_code;
use crate::transcript::formats::codex;
use crate::transcript::formats::openai_chat;
use crate::transcript::formats::openai_responses;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::transcript::stream::MessageTracker;
use crate::types::{Dialect, RecordedResult};

/// Reads one document of `dialect` into the index.
///
/// # Errors
/// The document doesn't have a form of that dialect. A session log's lines other than messages are skipped.
pub(crate) fn read_document<'a>(
    dialect: Dialect,
    document: &InputDocument<'a>,
    builder: &mut IndexBuilder,
) -> DocumentResult<'a> {
    match dialect {
        Dialect::Anthropic => anthropic::read_document(document, builder),
        Dialect::OpenAiChat => openai_chat::read_document(document, builder),
        Dialect::OpenAiResponses => openai_responses::read_document(document, builder),
        Dialect::ClaudeCode => claude_code::read_document(document, builder),
        Dialect::Codex => codex::read_document(document, builder),
        Dialect::Toolq => crate::transcript::formats::session_log::read_document(document, builder),
    }
}

/// Parses the JSON of one call.
pub(crate) fn parse_call(dialect: Dialect, call: &ParsedObject) -> RawCall {
    match dialect {
        Dialect::Anthropic | Dialect::ClaudeCode => anthropic::parse_call(call),
        Dialect::OpenAiChat => openai_chat::parse_call(call),
        Dialect::OpenAiResponses | Dialect::Codex => openai_responses::parse_call(call),
        Dialect::Toolq => crate::transcript::formats::session_log::parse_call(call),
    }
}

/// Returns the dialect whose streams have such an event, or `None` if no dialect or several have it.
pub(crate) fn event_dialect(event: &ParsedObject) -> Option<Dialect> {
    if anthropic::is_event(event) {
        Some(Dialect::Anthropic)
    } else if openai_responses::is_event(event) {
        Some(Dialect::OpenAiResponses)
    } else {
        openai_chat::is_event(event).then_some(Dialect::OpenAiChat)
    }
}

/// Reads one event of a stream.
///
/// # Errors
/// The event is malformed, or can't follow the events before it.
pub(crate) fn read_event<'a>(
    dialect: Dialect,
    event: &ParsedObject<'a>,
    messages: &mut MessageTracker,
) -> DocumentResult<'a> {
    match dialect {
        Dialect::OpenAiChat => openai_chat::read_event(event, messages),
        Dialect::OpenAiResponses => openai_responses::read_event(event, messages),
        _ => anthropic::read_event(event, messages),
    }
}

/// Parses the JSON of one result. Except in toolq's own log, its form decides how it's parsed: a recording may mix
/// dialects. `dialect` is that of the recording.
pub(crate) fn parse_result(dialect: Dialect, result: &ParsedObject) -> RecordedResult {
    if dialect == Dialect::Toolq {
        crate::transcript::formats::session_log::parse_result(result)
    } else if result.has_value("tool_use_id") {
        anthropic::parse_result(result)
    } else if result.has_value("call_id") {
        match dialect {
            Dialect::Codex => codex::parse_result(result),
            _ => openai_responses::parse_result(result),
        }
    } else {
        openai_chat::parse_result(result)
    }
}
