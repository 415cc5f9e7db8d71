//! A stream of server-sent events that is decoded as it arrives.

use std::collections::VecDeque;
use std::io;

use crate::input::stdin::ChunkReader;
use crate::output::{CommandError, Exit};
use toolq_core::transcript::{
    FollowedLine, InputError, LineFollower, StreamDecoder, StreamEvent, collect_turns,
};
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

// The input of `run --follow`: JSON lines that are answered as they arrive.

/// Parses lines as they arrive.
pub struct FollowInput {
    reader: ChunkReader,
    follow: LineFollower,
    /// Lines that were put back.
    buffered: VecDeque<FollowedLine>,
    at_end: bool,
    read_error: Option<io::Error>,
    /// At least one line was returned.
    has_begun: bool,
    /// At least one of them was no message.
    has_bad_line: bool,
    /// Number of turns in the lines without calls that came before the first call.
    skipped_turns: usize,
}

impl FollowInput {
    /// Creates the input without reading from it.
    pub fn new(reader: ChunkReader, follow: LineFollower) -> Self {
        Self {
            reader,
            follow,
            buffered: VecDeque::new(),
            at_end: false,
            read_error: None,
            has_begun: false,
            has_bad_line: false,
            skipped_turns: 0,
        }
    }

    /// Blocks until the next line arrives. Returns `None` at the end of the input.
    pub fn next_blocking(&mut self) -> Result<Option<FollowedLine>, CommandError> {
        loop {
            if let Some(line) = self.next_ready()? {
                return Ok(Some(line));
            }
            if self.at_end {
                return Ok(None);
            }
            let chunk = self.reader.next_blocking();
            self.push_chunk(chunk);
        }
    }

    /// Counts `turns`, which have no calls.
    pub fn skip_turns(&mut self, turns: usize) {
        self.skipped_turns += turns;
    }

    /// Returns the number of turns counted by [`skip_turns`](Self::skip_turns).
    pub fn skipped_turns(&self) -> usize {
        self.skipped_turns
    }

    /// Makes `line` the next one again.
    pub fn put_back(&mut self, line: FollowedLine) {
        self.buffered.push_front(line);
    }

    /// Starts reading in the background.
    pub fn read_in_background(&mut self) -> io::Result<()> {
        self.reader.read_in_background()
    }

    /// Waits for the next line. Returns `None` at the end of the input. Requires
    /// [`read_in_background`](Self::read_in_background).
    pub async fn next(&mut self) -> Result<Option<FollowedLine>, CommandError> {
        loop {
            if let Some(line) = self.next_ready()? {
                return Ok(Some(line));
            }
            if self.at_end {
                return Ok(None);
            }
            let chunk = self.reader.next().await;
            self.push_chunk(chunk);
        }
    }

    /// Returns whether a line couldn't be answered with results.
    pub fn has_bad_line(&self) -> bool {
        self.has_bad_line
    }

    /// Returns the next line if it has arrived.
    fn next_ready(&mut self) -> Result<Option<FollowedLine>, CommandError> {
        if let Some(line) = self.buffered.pop_front() {
            return Ok(Some(line));
        }
        if let Some(line) = self.follow.next() {
            self.has_begun = true;
            self.has_bad_line |= !matches!(line, FollowedLine::Recording(_));
            return Ok(Some(line));
        }
        if let Some(error) = self.read_error.take() {
            let failure =
                CommandError::usage(format!("failed to read the rest of the input: {error}"));
            let exit = if self.has_begun {
                Exit::Incomplete
            } else {
                failure.exit
            };
            return Err(CommandError { exit, ..failure });
        }
        if self.at_end && !self.has_begun {
            return Err(self.follow.empty_error().into());
        }
        Ok(None)
    }

    fn push_chunk(&mut self, chunk: io::Result<Vec<u8>>) {
        match chunk {
            Ok(bytes) if !bytes.is_empty() => return self.follow.push(&bytes),
            Ok(_) => self.follow.end_line(),
            Err(error) => self.read_error = Some(error),
        }
        self.at_end = true;
    }
}
