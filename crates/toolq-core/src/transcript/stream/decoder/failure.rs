//! The end of a stream whose rest can't be read: why, and where.

use crate::text::format_bytes;
use crate::transcript::input_error::{InputError, LineCol};
use crate::transcript::stream::decoder::StreamDecoder;
use crate::transcript::stream::decoder::event_error::EventError;
use crate::transcript::stream::sse::SseError;

impl StreamDecoder {
    /// Ends the stream because its remaining bytes can't be read.
    pub fn fail_with_io_error(&mut self, error: &std::io::Error) {
        let message = format!("can't read the rest of the stream: {error}");
        self.fail_at_line(message);
    }

    pub(super) fn fail_with_sse_error(&mut self, error: SseError) {
        let (line, message) = match error {
            SseError::NotUtf8 { line } => (line, "invalid UTF-8".to_owned()),
            SseError::TooLarge { line } => (
                line,
                format!(
                    "the event is larger than {}",
                    format_bytes(self.max_message_bytes)
                ),
            ),
        };
        let error = EventError::new(message);
        self.set_failure(line, 1, error);
    }

    pub(super) fn fail_at_line(&mut self, message: impl Into<String>) {
        let line = self.sse_decoder.line_number();
        self.set_failure(line, 1, EventError::new(message));
    }

    /// Ends an input in which no message began: because it has no events at all, if it was only said to be a stream.
    pub(super) fn fail_without_message(&mut self) {
        let Some(given) = self.vendor.filter(|_| !self.has_events) else {
            return self.fail_at_line("the stream has no model response");
        };
        let given = given.flag();
        let message = format!("this isn't a stream of events, but `--from` says `{given}`");
        let error = EventError {
            hint: Some("leave it out: toolq detects the format".to_owned()),
            ..EventError::new(message)
        };
        self.set_failure(1, 1, error);
    }

    /// Ends decoding with an error, unless there was one before.
    pub(super) fn set_failure(&mut self, line: usize, column: usize, error: EventError) {
        self.failure.get_or_insert_with(|| InputError {
            input_name: self.name.clone(),
            position: Some(LineCol { line, column }),
            message: error.message,
            hint: error.hint,
            errno: None,
        });
    }
}
