//! Decodes a stream of server-sent events: bytes in as they arrive, events about messages and calls out as soon as
//! they're known.
//!
//! A state machine that does no I/O itself. Its events don't depend on where the bytes are cut. While a message is
//! open, its dialect applies to all events; between messages the dialect is detected again, so that streams of
//! different vendors can be concatenated.

mod event_error;
mod failure;
#[cfg(test)]
mod tests;

use crate::json::ParsedObject;
use crate::text::format_bytes;
use crate::transcript::document_error::DocumentError;
use crate::transcript::formats::dispatch;
use crate::transcript::input_error::InputError;
use crate::transcript::stream::decoder::event_error::EventError;
use crate::transcript::stream::event::StreamEvent;
use crate::transcript::stream::message_tracker::MessageTracker;
use crate::transcript::stream::sse::{SseDecoder, SseEvent};
use crate::transcript::stream::vendor::StreamVendor;
use crate::transcript::unrecognized;
use crate::types::{Call, Dialect};

/// Decodes a stream. Iterate over it for its events.
#[derive(Debug)]
pub struct StreamDecoder {
    name: String,
    vendor: Option<StreamVendor>,
    sse_decoder: SseDecoder,
    tracker: MessageTracker,
    /// Whether anything in it was an event.
    has_events: bool,
    /// The dialect of the open message, or of the last one.
    dialect: Option<Dialect>,
    /// Size of the open message so far, in bytes.
    message_bytes: u64,
    /// Maximum size of a message, in bytes.
    max_message_bytes: u64,
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
        Self {
            name: name.into(),
            vendor,
            sse_decoder: SseDecoder::new(max_message_bytes),
            tracker: MessageTracker::default(),
            has_events: false,
            dialect: None,
            message_bytes: 0,
            max_message_bytes,
            failure: None,
            is_finished: false,
        }
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

    /// Ends the stream. It fails if the stream has no message or ends in the middle of one.
    pub fn finish(&mut self) {
        match self.sse_decoder.finish() {
            _ if self.failure.is_some() || self.is_finished => return,
            Ok(Some(data)) => self.handle_event(&data, true),
            Ok(None) => {}
            Err(error) => self.fail_with_sse_error(error),
        }
        let message = if self.tracker.is_open() {
            "the stream ends in the middle of a message"
        } else if self.tracker.message_count() == 0 {
            return self.fail_without_message();
        } else {
            return;
        };
        self.fail_at_line(message);
    }

    /// Stops decoding and returns the calls that started and weren't reported as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        self.is_finished = true;
        self.tracker.abort()
    }

    /// Returns the number of messages that have started so far.
    pub fn message_count(&self) -> usize {
        self.tracker.message_count()
    }

    /// Handles an event. The `last` one may have been cut off.
    fn handle_event(&mut self, data: &SseEvent, last: bool) {
        self.has_events = true;
        if let Err(error) = self.read_event(data, last) {
            let column = data.column + error.column;
            self.set_failure(data.line, column, error);
        }
        self.message_bytes = if self.tracker.is_open() {
            self.message_bytes + data.text.len() as u64
        } else {
            0
        };
        if self.message_bytes > self.max_message_bytes {
            let limit = format_bytes(self.max_message_bytes);
            let message = format!("the message is larger than {limit}");
            let error = EventError::new(message);
            self.set_failure(data.line, 1, error);
        }
    }

    fn read_event(&mut self, data: &SseEvent, last: bool) -> Result<(), EventError> {
        let text = data.text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if text == "[DONE]" {
            if self.dialect == Some(Dialect::OpenAiChat) {
                self.tracker.end_message();
            }
            self.tracker.forget_last_closed();
            return Ok(());
        }
        let object = match ParsedObject::parse(text) {
            Ok(Some(object)) => object,
            Ok(None) => {
                return Err(EventError::new("the event is not a JSON object"));
            }
            // A `[DONE]` that was cut off after the last message isn't needed.
            Err(_) if last && !self.tracker.is_open() && "[DONE]".starts_with(text) => {
                return Ok(());
            }
            Err(error) if last && error.is_eof() => {
                let message = "the stream ends in the middle of an event";
                return Err(EventError::new(message));
            }
            Err(error) => return Err(EventError::invalid_json(&error)),
        };
        self.handle_object(&object).map_err(EventError::unexpected)
    }

    fn handle_object<'a>(&mut self, object: &ParsedObject<'a>) -> Result<(), DocumentError<'a>> {
        if object.has_value("error") || object.get_unique_text("type")?.as_deref() == Some("error")
        {
            return Err(unrecognized::stream_error(object));
        }
        if !self.tracker.is_open() {
            let found = dispatch::event_dialect(object);
            let vendors = found.map(StreamVendor::of_dialect).zip(self.vendor);
            match vendors {
                Some((found, given)) if found != given && self.dialect.is_none() => {
                    return Err(unrecognized::vendor_mismatch_error(object, found, given));
                }
                Some((found, given)) if found != given => {}
                _ => self.dialect = found.or(self.dialect),
            }
        }
        match self.dialect {
            Some(dialect) => dispatch::read_event(dialect, object, &mut self.tracker),
            None if object
                .get_text("type")
                .is_some_and(|kind| matches!(&*kind, "ping" | "keepalive")) =>
            {
                Ok(())
            }
            None => Err(unrecognized::unrecognized_event(object)),
        }
    }
}

/// Yields the events in order, and `None` until more bytes arrive.
impl Iterator for StreamDecoder {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        let event = self.tracker.next_event();
        if event.is_some() || self.is_finished {
            return event;
        }
        let error = self.failure.clone()?;
        self.is_finished = true;
        let unfinished = self.tracker.abort();
        Some(StreamEvent::Aborted {
            unfinished_calls: unfinished,
            error,
        })
    }
}
