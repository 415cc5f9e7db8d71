//! The results of a message.

use std::io::Cursor;

use crate::error::Error;
use toolq_core::answer::content_as_text;
use toolq_core::transcript::{InputSource, Recording, is_event_stream};
use toolq_core::types::{CallAnswer, Status};

/// The results of a message, in the dialect of the message: what to append to the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, derive_more::Display)]
#[display("{json}")]
#[non_exhaustive]
pub struct Reply {
    json: String,
    /// One result per call, in call order.
    pub results: Vec<CallResult>,
    /// Why the reply is incomplete, if it is: the stream broke off, or the session log could not be written. Calls that
    /// didn't run for that reason have a result that says so.
    pub problem: Option<String>,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// The name that the model called.
    pub tool_name: String,
    /// How the call ended, as in the session log: `ok`, `failed`, `timeout`, `in_doubt` …
    pub status: Status,
    /// What the model reads. For a content block other than text, there is a note in brackets.
    pub text: String,
    /// Whether the model reads it as an error.
    pub is_error: bool,
}

impl Reply {
    /// The JSON to send to the model. Empty if the message has no calls. For a recording with several lines, and for a
    /// stream with several messages, one JSON value per line.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Whether the message has no calls. This is how an agent's loop ends.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Whether any result is an error.
    pub fn has_errors(&self) -> bool {
        self.results.iter().any(|result| result.is_error)
    }

    pub(crate) fn push_json(&mut self, json: &str) {
        if !self.json.is_empty() {
            self.json.push('\n');
        }
        self.json.push_str(json);
    }

    /// Appends the results of the next message.
    pub(crate) fn append(&mut self, next: Self) {
        if !next.json.is_empty() {
            self.push_json(&next.json);
        }
        self.results.extend(next.results);
    }
}

impl AsRef<str> for Reply {
    fn as_ref(&self) -> &str {
        &self.json
    }
}

impl CallResult {
    pub(crate) fn new(answer: &CallAnswer) -> Self {
        Self {
            tool_use_id: answer.tool_use_id.clone(),
            tool_name: answer.tool_name.clone(),
            status: answer.report.status.clone(),
            text: content_as_text(&answer.content).into_owned(),
            is_error: answer.is_error,
        }
    }
}

// Reads messages.

/// The largest message, in bytes. `toolq run --max-input` has the same default.
pub(crate) const MAX_MESSAGE_BYTES: u64 = 256 << 20;

/// Reads a message, or a recording of many.
pub(crate) fn read_message(message: Vec<u8>) -> Result<Recording, Error> {
    let invalid = |message: &str, hint: Option<&str>| Error::InvalidMessage {
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    };
    if message.trim_ascii().is_empty() {
        return Err(invalid("the message is empty", None));
    }
    if is_event_stream(&message) == Some(true) {
        let hint = "pass it to `answer_stream`";
        let what = "the message is a stream of server-sent events";
        return Err(invalid(what, Some(hint)));
    }
    let source = InputSource::from_pipe("message", Cursor::new(message))?;
    Ok(Recording::read(source, None, MAX_MESSAGE_BYTES)?)
}
