//! What toolq knows about each dialect: how to recognize its documents, and how to read its calls and results.
//!
//! Readers only look for calls and their results. They ignore text, reasoning, and what the API runs itself (server tools,
//! MCP connectors). A new dialect is a file here, a [`Dialect`] with its place in [`format_of`], and a form to answer in.

mod agent_logs;
mod anthropic;
mod bedrock;
mod conversation;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;
pub(crate) mod session_log;

use crate::json::ParsedObject;
use crate::transcript::document_frames::{DocumentResult, InputDocument};
use crate::transcript::formats::conversation::objects_at;
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::raw_call::RawCall;
use crate::transcript::stream::Messages;
use crate::types::{Dialect, RecordedResult};

pub(crate) use anthropic::returnable_content;

/// A dialect's documents.
pub(crate) trait Format: Sync {
    /// Returns whether only this dialect has such a document, message, or part of one. `content` has the objects of its array
    /// `content`.
    fn recognizes(&self, object: &ParsedObject, content: &[ParsedObject]) -> bool;

    /// Reads a document into the index.
    ///
    /// # Errors
    /// The document doesn't have a form of this dialect. A session log's lines other than messages are skipped.
    fn read_document<'a>(
        &self,
        document: &InputDocument<'a>,
        builder: &mut IndexBuilder,
    ) -> DocumentResult<'a>;

    /// Parses the JSON of one call.
    fn parse_call(&self, call: &ParsedObject) -> RawCall;

    /// Parses the JSON of one result.
    fn parse_result(&self, result: &ParsedObject) -> RecordedResult;
}

/// Returns what is known about a dialect.
pub(crate) fn format_of(dialect: Dialect) -> &'static dyn Format {
    match dialect {
        Dialect::Anthropic => &anthropic::Anthropic,
        Dialect::OpenAiChat => &openai_chat::OpenAiChat,
        Dialect::OpenAiResponses => &openai_responses::OpenAiResponses,
        Dialect::Gemini => &gemini::Gemini,
        Dialect::Bedrock => &bedrock::Bedrock,
        Dialect::Ollama => &ollama::Ollama,
        Dialect::ClaudeCode => &agent_logs::ClaudeCode,
        Dialect::Codex => &agent_logs::Codex,
        Dialect::Toolq => &session_log::SessionLog,
    }
}

/// Returns the dialect of a result. Except in logs of one program, its form decides: a recording may mix dialects.
pub(crate) fn dialect_of_result(recording: Dialect, result: &ParsedObject) -> Dialect {
    match recording {
        Dialect::Toolq => Dialect::Toolq,
        _ if result.has_value("tool_use_id") => Dialect::Anthropic,
        Dialect::Codex if result.has_value("call_id") => Dialect::Codex,
        _ if result.has_value("call_id") => Dialect::OpenAiResponses,
        _ if result.has_value("toolUseId") => Dialect::Bedrock,
        _ if result.has_value("response") => Dialect::Gemini,
        _ if result.get_text("type").as_deref() == Some("tool_result") => Dialect::Anthropic,
        _ if result.has_value("output") => Dialect::OpenAiResponses,
        _ => Dialect::OpenAiChat,
    }
}

/// A dialect's streams.
pub(super) trait StreamFormat: Sync {
    /// Returns whether only this dialect has such an event.
    fn is_event(&self, event: &ParsedObject) -> bool;

    /// Reads an event.
    ///
    /// # Errors
    /// The event is malformed, or can't follow the events before it.
    fn read_event<'a>(
        &self,
        event: &ParsedObject<'a>,
        messages: &mut Messages,
    ) -> DocumentResult<'a>;
}

/// The dialects that have streams.
const STREAM_FORMATS: [(Dialect, &dyn StreamFormat); 4] = [
    (Dialect::Anthropic, &anthropic::Anthropic),
    (Dialect::OpenAiResponses, &openai_responses::OpenAiResponses),
    (Dialect::OpenAiChat, &openai_chat::OpenAiChat),
    (Dialect::Gemini, &gemini::Gemini),
];

/// Returns what is known about the streams of a dialect.
pub(crate) fn stream_format_of(dialect: Dialect) -> Option<&'static dyn StreamFormat> {
    let known = STREAM_FORMATS.iter().find(|(known, _)| *known == dialect);
    known.map(|(_, format)| *format)
}

/// Returns the dialect whose streams have such an event, or `None` if no dialect or several have it.
pub(crate) fn event_dialect(event: &ParsedObject) -> Option<Dialect> {
    let mut formats = STREAM_FORMATS.iter();
    let found = formats.find(|(_, format)| format.is_event(event));
    found.map(|(dialect, _)| *dialect)
}

/// Returns the dialect that an object shows, if it shows one.
pub(crate) fn recognize(object: &ParsedObject) -> Option<Dialect> {
    let content: Vec<ParsedObject> = objects_at(object, "content").collect();
    // What wraps others comes first.
    let mut order = Dialect::ALL.iter().copied().rev();
    order.find(|dialect| format_of(*dialect).recognizes(object, &content))
}
