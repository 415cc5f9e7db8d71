//! Decodes the streamed response to a request and assembles its body.

#[cfg(test)]
mod tests;

use crate::transcript::response_error::ResponseError;
use crate::transcript::stream::decoder::{FailureKind, StreamDecoder};
use crate::transcript::stream::event::StreamEvent;
use crate::transcript::stream::message_tracker::MessageTracker;
use crate::types::{Api, Call, Dialect, Usage};

/// A response that is arriving as a stream. The rest of the stream after its last event is ignored.
#[derive(Debug)]
pub struct ResponseAssembler {
    api: Api,
    decoder: StreamDecoder,
}

impl ResponseAssembler {
    /// Creates an assembler for a response of `api`, whose calls are those of turn `turn_number`.
    pub fn new(api: Api, turn_number: usize) -> Self {
        // The reader of the bytes limits their number.
        let decoder = StreamDecoder::new("", None, u64::MAX);
        let decoder = StreamDecoder {
            tracker: MessageTracker::for_response(turn_number),
            dialect: Some(Dialect::from(api)),
            ..decoder
        };
        Self { api, decoder }
    }

    /// Adds the next bytes of the stream.
    ///
    /// # Errors
    /// The API sent an error, or an event is malformed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ResponseError> {
        self.decoder.push(bytes);
        self.check()
    }

    /// Ends the stream and returns the body, or `None` if the stream ended before the response was complete.
    ///
    /// # Errors
    /// The API sent an error, or a call after the end of the response.
    pub fn finish(&mut self) -> Result<Option<String>, ResponseError> {
        self.decoder.finish();
        self.check()?;
        self.end_message();
        let body = self.decoder.tracker.body();
        let body = body.filter(|body| body.is_complete);
        Ok(body.map(|body| body.to_json(self.api)))
    }

    /// If the response is complete, so are all of its calls from now on.
    pub fn end_message(&mut self) {
        if self.is_complete() {
            self.decoder.tracker.end_message();
        }
    }

    /// Returns the next event of its only message. Its failure isn't among them.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        self.decoder.tracker.next_event()
    }

    /// Gives up on the rest of the response and returns the calls that weren't reported as complete.
    pub fn abort(&mut self) -> Vec<Call> {
        self.decoder.abort()
    }

    /// Returns whether the response is complete. Its token counts may still follow.
    pub fn is_complete(&self) -> bool {
        self.decoder.tracker.is_response_complete()
    }

    /// Returns whether the stream is over, even if the server keeps the connection open.
    pub fn is_finished(&self) -> bool {
        self.decoder.is_finished
    }

    /// Returns the number of calls that have started so far.
    pub fn calls_started(&self) -> usize {
        self.decoder.tracker.call_count()
    }

    /// Returns the text so far, each text block on its own line.
    pub fn text(&self) -> String {
        let tracker = &self.decoder.tracker;
        let Some(body) = tracker.body() else {
            return String::new();
        };
        body.text(tracker.open_blocks().unwrap_or(&body.blocks))
    }

    /// Returns the name of the model, if known, and the tokens so far. `None` if no tokens have been reported.
    pub fn usage_so_far(&self) -> Option<(Option<String>, Usage)> {
        self.decoder.tracker.body()?.usage_so_far(self.api)
    }

    fn check(&self) -> Result<(), ResponseError> {
        let Some(failure) = &self.decoder.failure else {
            return Ok(());
        };
        match &failure.kind {
            FailureKind::CutOff => Ok(()),
            FailureKind::Api(error) => Err(error.clone()),
            FailureKind::Malformed | FailureKind::Unexpected => {
                let error = &failure.error;
                let line = error.position.map_or(0, |position| position.line);
                let why = format!("{} (line {line} of the stream)", error.message);
                Err(ResponseError::Unreadable(why))
            }
        }
    }
}
