//! A stream of server-sent events that is decoded as it arrives.

use std::collections::VecDeque;
use std::io;

use crate::input::chunk_reader::ChunkReader;
use toolq_core::transcript::{InputError, StreamDecoder, StreamEvent, collect_turns};
use toolq_core::types::{Call, Turn};
use toolq_engine::MessageSource;

/// Decodes the events of a stream as they arrive.
pub struct StreamInput {
    reader: ChunkReader,
    stream: StreamDecoder,
    /// Events that were decoded while waiting for the first call.
    buffered: VecDeque<StreamEvent>,
    at_end: bool,
}

impl StreamInput {
    /// Creates the input without reading from it.
    pub fn new(reader: ChunkReader, stream: StreamDecoder) -> Self {
        Self {
            reader,
            stream,
            buffered: VecDeque::new(),
            at_end: false,
        }
    }

    /// Blocks until a call starts and returns `true`, or `false` if the stream ends without one. The events up to there
    /// aren't lost: they are returned later.
    pub fn wait_for_call(&mut self) -> bool {
        loop {
            for event in self.stream.by_ref() {
                let starts_call = matches!(event, StreamEvent::CallStarted { .. });
                self.buffered.push_back(event);
                if starts_call {
                    return true;
                }
            }
            if self.at_end {
                return false;
            }
            let chunk = self.reader.next_blocking();
            self.push_chunk(chunk);
        }
    }

    /// Starts reading in the background.
    pub fn read_in_background(&mut self) -> io::Result<()> {
        self.reader.read_in_background()
    }

    /// Blocks until the stream ends. Returns its complete messages, and the error if the stream broke off.
    pub fn read_to_end(&mut self) -> (Vec<Turn>, Option<InputError>) {
        while !self.at_end {
            let chunk = self.reader.next_blocking();
            self.push_chunk(chunk);
        }
        collect_turns(std::iter::from_fn(|| self.next_ready()))
    }

    /// Keeps what each message amounts to.
    pub fn keep_messages(&mut self) {
        self.stream.keep_messages();
    }

    /// Takes what the messages amount to that have ended, each as one line of JSON.
    pub fn take_messages(&mut self) -> Vec<String> {
        self.stream.take_messages()
    }

    /// Returns kinds of blocks that toolq doesn't run, each with whether it looks like a call.
    pub fn unknown_kinds(&self) -> impl Iterator<Item = (&str, bool)> {
        self.stream.unknown_kinds()
    }

    /// Returns the number of messages that have started.
    pub fn message_count(&self) -> usize {
        self.stream.message_count()
    }

    fn push_chunk(&mut self, chunk: io::Result<Vec<u8>>) {
        match chunk {
            Ok(bytes) if bytes.is_empty() => {
                self.stream.finish();
                self.at_end = true;
            }
            Ok(bytes) => self.stream.push(&bytes),
            Err(error) => {
                self.stream.fail_with_io_error(&error);
                self.at_end = true;
            }
        }
    }
}

impl MessageSource for StreamInput {
    /// Waits for the next event. Returns `None` at the end of the stream. Requires
    /// [`read_in_background`](Self::read_in_background).
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let event = self.next_ready();
            if event.is_some() || self.at_end {
                return event;
            }
            // Yield, so that a fast stream can't starve the calls it started.
            tokio::task::yield_now().await;
            let chunk = self.reader.next().await;
            self.push_chunk(chunk);
        }
    }

    /// Returns the next event if it has arrived.
    fn next_ready(&mut self) -> Option<StreamEvent> {
        self.buffered.pop_front().or_else(|| self.stream.next())
    }

    /// Stops decoding and returns the calls that had started but are incomplete.
    fn abandon(&mut self) -> Vec<Call> {
        self.stream.abort()
    }
}
