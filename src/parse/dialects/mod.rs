//! One file for each wire form: what its documents look like, which calls and results they hold, how one of each is read.
//!
//! A new dialect is a file here, a line in each of the functions below and in `recognise`, and its word in
//! `model::Dialect`; its stream has a file beside it. What belongs to the API itself (server tools, MCP connectors), text and
//! reasoning are left alone.

pub(super) mod anthropic;
mod anthropic_sse;
pub(super) mod claude_code;
pub(super) mod codex;
pub(super) mod openai_chat;
pub(super) mod openai_chat_sse;
pub(super) mod openai_responses;
mod openai_responses_sse;
pub(super) mod toolq;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::complaint::Complaint;
use super::document::Document;
use super::stream::Messages;
use super::turns::Turns;
use crate::model::json::{Json, Object};
use crate::model::{Content, Dialect, Input, InputFault, Recorded};

/// Whether a document was read, or why it is no form of its dialect.
type Read<'a> = Result<(), Complaint<'a>>;

/// Reads one document of `dialect` into the index.
///
/// # Errors
/// It is no form of that dialect. The lines of a session log that are no messages are passed over.
pub(super) fn read<'a>(dialect: Dialect, document: &Document<'a>, turns: &mut Turns) -> Read<'a> {
    match dialect {
        Dialect::Anthropic => anthropic::read(document, turns),
        Dialect::OpenAiChat => openai_chat::read(document, turns),
        Dialect::OpenAiResponses => openai_responses::read(document, turns),
        Dialect::ClaudeCode => claude_code::read(document, turns),
        Dialect::Codex => codex::read(document, turns),
        Dialect::Toolq => toolq::read(document, turns),
    }
}

/// Reads the JSON of one call.
pub(super) fn asked(dialect: Dialect, call: &Object) -> Asked {
    match dialect {
        Dialect::Anthropic | Dialect::ClaudeCode => anthropic::asked(call),
        Dialect::OpenAiChat => openai_chat::asked(call),
        Dialect::OpenAiResponses | Dialect::Codex => openai_responses::asked(call),
        Dialect::Toolq => toolq::asked(call),
    }
}

/// The dialect that has such an event in its streams; none where several or none have.
pub(super) fn of_event(event: &Object) -> Option<Dialect> {
    if anthropic_sse::is_event(event) {
        Some(Dialect::Anthropic)
    } else if openai_responses_sse::is_event(event) {
        Some(Dialect::OpenAiResponses)
    } else {
        openai_chat_sse::is_event(event).then_some(Dialect::OpenAiChat)
    }
}

/// Reads one event of a stream.
///
/// # Errors
/// It is no form of such an event, or what it says can't follow what was said before.
pub(super) fn event<'a>(dialect: Dialect, event: &Object<'a>, messages: &mut Messages) -> Read<'a> {
    match dialect {
        Dialect::OpenAiChat => openai_chat_sse::event(event, messages),
        Dialect::OpenAiResponses => openai_responses_sse::event(event, messages),
        _ => anthropic_sse::event(event, messages),
    }
}

/// Adds a piece, which stands in `around`, to the input of the call at a position.
fn piece<'a>(around: &Object<'a>, call: usize, piece: &str, messages: &mut Messages) -> Read<'a> {
    if messages.piece(call, piece) {
        return Ok(());
    }
    let what = "a piece of a call that was whole already";
    Err(Complaint::new(around.json(), what))
}

/// Reads the JSON of one result, whose form says what it is. `log` is the session log that it stands in.
pub(super) fn answered(log: Dialect, result: &Object) -> Recorded {
    if log == Dialect::Toolq {
        toolq::answered(result)
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

/// The content of a result: a text, a list of blocks or parts, or whatever else stands there, as its JSON.
fn content(value: Option<Json>) -> Content {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Content::Text(String::new());
    };
    if let Some(parts) = value.list() {
        let raw = |part: Json| RawValue::from_string(part.get().to_owned());
        let blocks: Result<Vec<_>, _> = parts.into_iter().map(raw).collect();
        return blocks.map_or(Content::Text(value.get().to_owned()), Content::Blocks);
    }
    let text = value.text().unwrap_or(Cow::Borrowed(value.get()));
    Content::Text(text.into_owned())
}

/// A result of a form that knows no errors.
fn plain(value: Option<Json>) -> Recorded {
    Recorded {
        content: content(value),
        is_error: None,
        skipped: false,
    }
}

/// What one call asks.
pub(super) struct Asked {
    /// None where it is missing or no string.
    pub id: Option<String>,
    /// None where it is missing or no string.
    pub name: Option<String>,
    pub input: Result<Input, InputFault>,
}

impl Asked {
    pub fn new(
        id: Option<Cow<str>>,
        name: Option<Cow<str>>,
        input: Result<Input, InputFault>,
    ) -> Self {
        let input = match name {
            Some(_) => input,
            None => Err(InputFault::NoName),
        };
        Self {
            id: id.map(Cow::into_owned),
            name: name.map(Cow::into_owned),
            input,
        }
    }

    /// The same call, refused where a key of `around` stands twice: elsewhere it would be read as another call.
    fn unless_twice(mut self, around: &Object) -> Self {
        if let Some(key) = around.twice() {
            self.input = Err(InputFault::twice(key));
        }
        self
    }
}

/// An input that stands there as an object.
fn input(value: Option<Json>) -> Result<Input, InputFault> {
    value.map_or(Err(InputFault::Missing), Input::of)
}

/// An input that stands there as a string of JSON. `OpenAI` sends `""` for no arguments; some servers send an object.
fn arguments(value: Option<Json>) -> Result<Input, InputFault> {
    let Some(string) = value.filter(|value| value.get().starts_with('"')) else {
        return input(value);
    };
    match string.text() {
        None => Err(InputFault::NotJson("a lone surrogate".to_owned())),
        Some(json) if json.trim().is_empty() => Ok(Input::empty()),
        Some(json) => Input::parse(&json),
    }
}
