//! Reads the lines of the host.

use std::collections::VecDeque;
use std::fs::File;
use std::io;

use toolq_mcp::{Frame, LineFramer};

use crate::commands::run::control::message::{HostMessage, MessageError};
use crate::input::ChunkReader;
use crate::output::ClientOutput;
use toolq_core::text::format_bytes;

/// A line, or what is wrong with it.
pub(super) type HostLine = Result<HostMessage, MessageError>;

/// The lines of the host, in their order.
pub(super) struct HostLines {
    reader: ChunkReader,
    framer: LineFramer,
    max_line_bytes: u64,
    /// Lines that were read and not returned yet.
    ready: VecDeque<HostLine>,
    is_at_end: bool,
}

impl HostLines {
    pub(super) fn new(input: File, max_line_bytes: u64) -> Self {
        Self {
            reader: ChunkReader::new(Vec::new(), input),
            framer: LineFramer::new(usize::try_from(max_line_bytes).unwrap_or(usize::MAX)),
            max_line_bytes,
            ready: VecDeque::new(),
            is_at_end: false,
        }
    }

    /// Blocks until the next line is there. Returns `None` at the end.
    ///
    /// # Errors
    /// Stdin can't be read.
    pub(super) fn next_blocking(&mut self) -> io::Result<Option<HostLine>> {
        while self.ready.is_empty() && !self.is_at_end {
            let bytes = self.reader.next_blocking()?;
            self.push(&bytes);
        }
        Ok(self.ready.pop_front())
    }

    /// Returns a line that [`next_blocking`](Self::next_blocking) returned, so that it comes again.
    pub(super) fn put_back(&mut self, line: HostLine) {
        self.ready.push_front(line);
    }

    /// Starts a thread that does the reading from now on, for [`next`](Self::next).
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn read_in_background(&mut self) -> io::Result<()> {
        self.reader.read_in_background()
    }

    /// Waits for the next line. While the host doesn't read what `output` has, nothing more is read. Returns `None` at the
    /// end. Cancel safe: dropping the future loses no line.
    ///
    /// # Errors
    /// Stdin can't be read.
    pub(super) async fn next(&mut self, output: &ClientOutput) -> io::Result<Option<HostLine>> {
        while self.ready.is_empty() && !self.is_at_end {
            output.wait_for_room().await;
            let bytes = self.reader.next().await?;
            self.push(&bytes);
        }
        Ok(self.ready.pop_front())
    }

    /// Takes the next bytes. An empty slice means the end of the input.
    fn push(&mut self, bytes: &[u8]) {
        let (ready, max_line_bytes) = (&mut self.ready, self.max_line_bytes);
        let mut take = |frame: Frame<'_>| ready.extend(read_line(&frame, max_line_bytes));
        if bytes.is_empty() {
            self.is_at_end = true;
            std::mem::replace(&mut self.framer, LineFramer::new(0)).finish(&mut take);
        } else {
            self.framer.push(bytes, &mut take);
        }
    }
}

/// Returns `None` for a blank line.
fn read_line(frame: &Frame<'_>, max_line_bytes: u64) -> Option<HostLine> {
    match frame {
        Frame::Line(line) if line.trim_ascii().is_empty() => None,
        Frame::Line(line) => Some(HostMessage::parse(line)),
        Frame::TooLong { bytes, .. } => Some(Err(MessageError {
            id: None,
            message: format!(
                "a line of {} is too long: at most {} (`--max-input`)",
                format_bytes(*bytes),
                format_bytes(max_line_bytes)
            ),
        })),
    }
}
