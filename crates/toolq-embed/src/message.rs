//! Reads messages.

use std::io::Cursor;

use toolq_core::transcript::{InputSource, Recording, is_event_stream};

use crate::error::Error;

/// Reads a message, or a recording of many.
pub(crate) fn read_message(message: Vec<u8>, max_bytes: u64) -> Result<Recording, Error> {
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
    Ok(Recording::read(source, None, max_bytes)?)
}
