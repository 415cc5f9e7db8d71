//! Decodes a stream of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're known.
//!
//! It does no I/O itself. Its events don't depend on where the bytes are cut. While a message is
//! open, its dialect applies to all events; between messages the dialect is detected again, so that streams of
//! different vendors can be concatenated.

#[cfg(test)]
mod tests;

use crate::json::{ParsedObject, describe_parse_error};
use crate::text::format_bytes;
use crate::transcript::document_frames::DocumentError;
use crate::transcript::formats::{event_dialect, stream_format_of};
use crate::transcript::input_source::{InputError, LineCol};
use crate::transcript::raw_call;
use crate::transcript::stream::message_record::StreamEvent;
use crate::transcript::stream::messages::Messages;
use crate::transcript::stream::sse::{SseDecoder, SseError, SseEvent};
use crate::types::{Call, Dialect, StreamVendor};

/// Decodes a stream. Iterate over it for its events.
#[derive(Debug)]
pub struct StreamDecoder {
    name: String,
    vendor: Option<StreamVendor>,
    sse_decoder: SseDecoder,
    messages: Messages,
    /// Whether anything in it was an event.
    has_events: bool,
    /// The dialect of the open message, or of the last one.
    dialect: Option<Dialect>,
    /// Size of the open message so far, in bytes.
    message_bytes: u64,
    /// Maximum size of a message, in bytes.
    max_message_bytes: u64,
    /// What is wrong with the first event that no dialect has, before any that one has. It may mean nothing.
    unrecognized: Option<InputError>,
    /// Why the rest can't be read.
    failure: Option<InputError>,
    is_finished: bool,
}

impl StreamDecoder {
    /// Creates a decoder. `name` is the display name of the stream, and a message may have at most `max_message_bytes`
    /// bytes. Without `vendor`, the dialect is detected.
    pub fn new(
        name: impl Into<String>,
        vendor: Option<StreamVendor>,
        max_message_bytes: u64,
    ) -> Self {
        let name = name.into();
        Self {
            messages: Messages::new(name.clone()),
            name,
            vendor,
            sse_decoder: SseDecoder::new(max_message_bytes),
            has_events: false,
            dialect: None,
            message_bytes: 0,
            max_message_bytes,
            unrecognized: None,
            failure: None,
            is_finished: false,
        }
    }

    /// Keeps what each message amounts to, from now on.
    pub fn keep_messages(&mut self) {
        self.messages.keeps_records = true;
    }

    /// Takes what the messages amount to that have ended, each as one line of JSON: what goes back to the API with the results.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages.records)
    }

    /// Returns kinds of blocks that toolq doesn't run, each with whether it looks like a call.
    pub fn unknown_kinds(&self) -> impl Iterator<Item = (&str, bool)> {
        let kinds = self.messages.unknown_kinds.iter();
        kinds.map(|(kind, is_call)| (kind.as_str(), *is_call))
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while self.failure.is_none() && !self.is_finished {
            match self.sse_decoder.next_event(&mut bytes) {
                Ok(Some(data)) => self.handle_event(&data, false),
                Ok(None) => return,
                Err(error) => self.fail_with_sse_error(error),
            }
        }
    }

    /// Ends the stream. It fails if the stream has no message, or ends in the middle of one that hasn't said why it ends.
    pub fn finish(&mut self) {
        match self.sse_decoder.finish() {
            _ if self.failure.is_some() || self.is_finished => return,
            Ok(Some(data)) => self.handle_event(&data, true),
            Ok(None) => {}
            Err(error) => self.fail_with_sse_error(error),
        }
        if self.failure.is_some() {
            return;
        }
        if self.messages.has_stopped() {
            self.messages.close();
        } else if self.messages.is_open() {
            self.fail_at_line("the stream ends in the middle of a message");
        } else if self.messages.count() == 0 {
            self.fail_without_message();
        }
    }

    /// Stops decoding and returns the calls that started and weren't reported as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        self.is_finished = true;
        self.messages.abort()
    }

    /// Returns the number of messages that have started so far.
    pub fn message_count(&self) -> usize {
        self.messages.count()
    }

    /// Handles an event. The `last` one may have been cut off.
    fn handle_event(&mut self, data: &SseEvent, last: bool) {
        self.has_events = true;
        let (line, column) = (data.line, data.column);
        self.messages.place = Some(LineCol { line, column });
        self.read_event(data, last);
        self.message_bytes = if self.messages.is_open() {
            self.message_bytes + data.text.len() as u64
        } else {
            0
        };
        if self.message_bytes > self.max_message_bytes {
            let limit = format_bytes(self.max_message_bytes);
            let message = format!("the message is larger than {limit}");
            self.set_failure(line, 1, message, None);
        }
    }

    fn read_event(&mut self, data: &SseEvent, last: bool) {
        let text = data.text.trim();
        if text.is_empty() {
            return;
        }
        if text == "[DONE]" {
            if self.dialect == Some(Dialect::OpenAiChat) {
                self.messages.close();
            }
            self.messages.last_closed_id = None;
            return;
        }
        let (line, column) = (data.line, data.column);
        match ParsedObject::parse(text) {
            Ok(Some(object)) => {
                if let Err(error) = self.handle_object(&object, data) {
                    self.set_failure(line, column, error.message, error.hint);
                }
            }
            // Other values, such as `null`, keep connections alive.
            Ok(None) => {}
            // A `[DONE]` that was cut off after the last message isn't needed.
            Err(_) if last && !self.messages.is_open() && "[DONE]".starts_with(text) => {}
            Err(error) if last && error.is_eof() => {
                let message = "the stream ends in the middle of an event";
                self.set_failure(line, column, message.to_owned(), None);
            }
            Err(error) => {
                let is_first_line = error.line() == 1;
                let before = if is_first_line { error.column() } else { 0 };
                let message = describe_parse_error("the event", text, &error);
                self.set_failure(line, column + before.saturating_sub(1), message, None);
            }
        }
    }

    fn handle_object<'a>(
        &mut self,
        object: &ParsedObject<'a>,
        data: &SseEvent,
    ) -> Result<(), DocumentError<'a>> {
        if object.has_value("error") || object.get_unique_text("type")?.as_deref() == Some("error")
        {
            return Err(raw_call::stream_error(object));
        }
        if !self.messages.is_open() || self.messages.has_stopped() {
            let found = event_dialect(object);
            let vendors = found.map(StreamVendor::of_dialect).zip(self.vendor);
            match vendors {
                Some((found, given)) if found != given && self.dialect.is_none() => {
                    return Err(raw_call::vendor_mismatch_error(object, found, given));
                }
                Some((found, given)) if found != given => {}
                _ if found.is_some() && found != self.dialect => {
                    self.messages.close();
                    self.dialect = found;
                }
                _ => {}
            }
        }
        if let Some(format) = self.dialect.and_then(stream_format_of) {
            return format.read_event(object, &mut self.messages);
        }
        if self.unrecognized.is_none() {
            let error = raw_call::unrecognized_event(object);
            self.unrecognized =
                Some(self.error_at(data.line, data.column, error.message, error.hint));
        }
        Ok(())
    }

    /// Ends the stream because its remaining bytes can't be read.
    pub fn fail_with_io_error(&mut self, error: &std::io::Error) {
        self.fail_at_line(&format!("can't read the rest of the stream: {error}"));
    }

    fn fail_with_sse_error(&mut self, error: SseError) {
        let (line, message) = match error {
            SseError::NotUtf8 { line } => (line, "invalid UTF-8".to_owned()),
            SseError::TooLarge { line } => {
                let limit = format_bytes(self.max_message_bytes);
                (line, format!("the event is larger than {limit}"))
            }
        };
        self.set_failure(line, 1, message, None);
    }

    fn fail_at_line(&mut self, message: &str) {
        let line = self.sse_decoder.line_number();
        self.set_failure(line, 1, message.to_owned(), None);
    }

    /// Ends an input in which no message began: because it has no events at all, if it was only said to be a stream.
    fn fail_without_message(&mut self) {
        if self.unrecognized.is_some() {
            self.failure = self.unrecognized.take();
            return;
        }
        let Some(given) = self.vendor.filter(|_| !self.has_events) else {
            return self.fail_at_line("the stream has no model response");
        };
        let given = given.name();
        let message = format!("this isn't a stream of events, but `--from` says `{given}`");
        let hint = "leave it out: toolq detects the format".to_owned();
        self.set_failure(1, 1, message, Some(hint));
    }

    /// Ends decoding with an error, unless there was one before.
    fn set_failure(&mut self, line: usize, column: usize, message: String, hint: Option<String>) {
        if self.failure.is_none() {
            self.failure = Some(self.error_at(line, column, message, hint));
        }
    }

    fn error_at(
        &self,
        line: usize,
        column: usize,
        message: String,
        hint: Option<String>,
    ) -> InputError {
        InputError {
            input_name: self.name.clone(),
            position: Some(LineCol { line, column }),
            message,
            hint,
            errno: None,
        }
    }
}

/// Yields the events in order, and `None` until more bytes arrive.
impl Iterator for StreamDecoder {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        let event = self.messages.next_event();
        if event.is_some() || self.is_finished {
            return event;
        }
        let error = self.failure.clone()?;
        self.is_finished = true;
        let unfinished_calls = self.messages.abort();
        Some(StreamEvent::Aborted {
            unfinished_calls,
            error,
        })
    }
}
