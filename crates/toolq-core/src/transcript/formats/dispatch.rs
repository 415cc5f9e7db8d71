//! One file for each wire form: what its documents look like, which calls and results they hold, how one of each is read.
//!
//! A new dialect is a file here, a line in each of the functions below and in `recognise`, and its word in
//! `model::Dialect`; its stream has a file beside it. What belongs to the API itself (server tools, MCP connectors), text and
//! reasoning are left alone.

use crate::json::Object;
use crate::transcript::document::Document;
use crate::transcript::formats::anthropic;
use crate::transcript::formats::claude_code;
use crate::transcript::formats::codex;
use crate::transcript::formats::common::Read;
use crate::transcript::formats::openai_chat;
use crate::transcript::formats::openai_responses;
use crate::transcript::index_builder::Turns;
use crate::transcript::raw_call::Asked;
use crate::transcript::stream::Messages;
use crate::types::{Dialect, Recorded};

/// Reads one document of `dialect` into the index.
///
/// # Errors
/// It is no form of that dialect. The lines of a session log that are no messages are passed over.
pub(crate) fn read<'a>(dialect: Dialect, document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    match dialect {
        Dialect::Anthropic => anthropic::read(document, turns),
        Dialect::OpenAiChat => openai_chat::read(document, turns),
        Dialect::OpenAiResponses => openai_responses::read(document, turns),
        Dialect::ClaudeCode => claude_code::read(document, turns),
        Dialect::Codex => codex::read(document, turns),
        Dialect::Toolq => crate::transcript::formats::session_log::read(document, turns),
    }
}

/// Reads the JSON of one call.
pub(crate) fn asked(dialect: Dialect, call: &Object) -> Asked {
    match dialect {
        Dialect::Anthropic | Dialect::ClaudeCode => anthropic::asked(call),
        Dialect::OpenAiChat => openai_chat::asked(call),
        Dialect::OpenAiResponses | Dialect::Codex => openai_responses::asked(call),
        Dialect::Toolq => crate::transcript::formats::session_log::asked(call),
    }
}

/// The dialect that has such an event in its streams; none where several or none have.
pub(crate) fn of_event(event: &Object) -> Option<Dialect> {
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
/// It is no form of such an event, or what it says can't follow what was said before.
pub(crate) fn event<'a>(dialect: Dialect, event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    match dialect {
        Dialect::OpenAiChat => openai_chat::event(event, messages),
        Dialect::OpenAiResponses => openai_responses::event(event, messages),
        _ => anthropic::event(event, messages),
    }
}

/// Reads the JSON of one result, whose form says what it is. `log` is the session log that it stands in.
pub(crate) fn answered(log: Dialect, result: &Object) -> Recorded {
    if log == Dialect::Toolq {
        crate::transcript::formats::session_log::answered(result)
    } else if result.has("tool_use_id") {
        anthropic::answered(result)
    } else if result.has("call_id") {
        match log {
            Dialect::Codex => codex::answered(result),
            _ => openai_responses::answered(result),
        }
    } else {
        openai_chat::answered(result)
    }
}
