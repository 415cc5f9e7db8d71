//! The input of `run --follow`: JSON lines that are answered as they arrive.

use std::collections::VecDeque;
use std::io;

use crate::input::chunk_reader::ChunkReader;
use crate::output::{CommandError, Exit};
use toolq_core::transcript::{FollowedLine, LineFollower};

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
