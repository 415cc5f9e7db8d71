//! The input of `run --follow`: JSON lines that are answered as they arrive.

use std::collections::VecDeque;
use std::io;

use crate::input::chunk_reader::ChunkReader;
use crate::output::{CommandError, Exit};
use toolq_core::transcript::{LineFollower, Recording};

/// Parses lines as they arrive.
pub struct FollowInput {
    reader: ChunkReader,
    follow: LineFollower,
    /// Lines that were put back.
    buffered: VecDeque<Recording>,
    at_end: bool,
    read_error: Option<io::Error>,
    /// At least one line was returned.
    has_begun: bool,
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
            skipped_turns: 0,
        }
    }

    /// Blocks until the next line arrives. Returns `None` at the end of the input.
    pub fn next_blocking(&mut self) -> Result<Option<Recording>, CommandError> {
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

    /// Counts the turns of `line`, which has no calls.
    pub fn skip(&mut self, line: &Recording) {
        self.skipped_turns += line.len();
    }

    /// Returns the number of turns counted by [`skip`](Self::skip).
    pub fn skipped_turns(&self) -> usize {
        self.skipped_turns
    }

    /// Makes `line` the next one again.
    pub fn put_back(&mut self, line: Recording) {
        self.buffered.push_front(line);
    }

    /// Starts reading in the background.
    pub fn read_in_background(&mut self) -> io::Result<()> {
        self.reader.read_in_background()
    }

    /// Waits for the next line. Returns `None` at the end of the input. Requires
    /// [`read_in_background`](Self::read_in_background).
    pub async fn next(&mut self) -> Result<Option<Recording>, CommandError> {
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

    /// Returns the next line if it has arrived. An unreadable line means that the input broke off, or, if it is the
    /// first one, that the input is wrong.
    fn next_ready(&mut self) -> Result<Option<Recording>, CommandError> {
        if let Some(line) = self.buffered.pop_front() {
            return Ok(Some(line));
        }
        let failure = match (self.follow.next(), self.read_error.take(), self.at_end) {
            (Some(Ok(line)), read_error, _) => {
                (self.has_begun, self.read_error) = (true, read_error);
                return Ok(Some(line));
            }
            (Some(Err(error)), ..) => error.into(),
            (None, Some(error), _) => {
                CommandError::usage(format!("failed to read the rest of the input: {error}"))
            }
            (None, None, true) if !self.has_begun => CommandError::usage("the input is empty"),
            (None, None, _) => return Ok(None),
        };
        let exit = if self.has_begun {
            Exit::Incomplete
        } else {
            failure.exit
        };
        Err(CommandError { exit, ..failure })
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
