//! Splits the bytes of a stdio connection into lines. Each line is one message.
//!
//! Official SDKs accept more than the specification asks for, and so do we: `\r\n`, a byte order mark before the first
//! line, and blank lines.

#[cfg(test)]
mod tests;

use std::mem;

use memchr::memchr;
use serde::Serialize;

use crate::message::{KEPT_BYTES, RequestId, RpcError};

/// A line beyond this gets [`LONG_LINE_ROOM`] at once, of which only what is written takes memory: each step from one buffer to
/// the next, larger one would hold both.
const LONG_LINE_BYTES: usize = 1 << 20;
/// How much room a long line gets at once, since a limit may be far beyond what any line has.
const LONG_LINE_ROOM: usize = 64 << 20;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'b> {
    /// A whole line, without its line break.
    Line(&'b [u8]),
    /// A line over the limit. Only its beginning is kept.
    TooLong {
        /// The first bytes of the line.
        start: &'b [u8],
        /// The length of the whole line.
        bytes: u64,
    },
}

/// Splits bytes into lines of a limited length, in memory of that length.
#[derive(Debug)]
pub struct LineFramer {
    max_line_bytes: usize,
    /// The beginning of a line whose end hasn't come.
    partial: Vec<u8>,
    /// How many bytes of the line were dropped because it is too long.
    dropped_bytes: u64,
    is_first_line: bool,
}

impl LineFramer {
    /// Creates a framer for lines of at most `max_line_bytes`, at least 4 KiB.
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            max_line_bytes: max_line_bytes.max(KEPT_BYTES),
            partial: Vec::new(),
            dropped_bytes: 0,
            is_first_line: true,
        }
    }

    /// Takes the next bytes, and calls `on_frame` for every line that ends in them.
    pub fn push(&mut self, mut bytes: &[u8], mut on_frame: impl FnMut(Frame<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let line = &bytes[..end];
            bytes = &bytes[end + 1..];
            if self.partial.is_empty() && self.dropped_bytes == 0 && end <= self.max_line_bytes {
                emit(line, &mut self.is_first_line, &mut on_frame);
            } else {
                self.keep(line);
                self.end_line(&mut on_frame);
            }
        }
        self.keep(bytes);
    }

    /// Ends the connection. A last line without a line break counts, too.
    pub fn finish(mut self, mut on_frame: impl FnMut(Frame<'_>)) {
        if !self.partial.is_empty() {
            self.end_line(&mut on_frame);
        }
    }

    /// Adds to the line whose end hasn't come. Drops what is over the limit.
    fn keep(&mut self, bytes: &[u8]) {
        let length = self.partial.len() + bytes.len();
        if self.dropped_bytes == 0 && length <= self.max_line_bytes {
            if length > self.partial.capacity() && length > LONG_LINE_BYTES {
                let left = self.max_line_bytes - self.partial.len();
                self.partial.reserve_exact(left.min(LONG_LINE_ROOM));
            }
            self.partial.extend_from_slice(bytes);
            return;
        }
        let missing = KEPT_BYTES
            .saturating_sub(self.partial.len())
            .min(bytes.len());
        self.partial.extend_from_slice(&bytes[..missing]);
        let surplus = self.partial.len() - self.partial.len().min(KEPT_BYTES);
        self.partial.truncate(KEPT_BYTES);
        self.partial.shrink_to_fit();
        self.dropped_bytes += (surplus + bytes.len() - missing) as u64;
    }

    fn end_line(&mut self, on_frame: &mut impl FnMut(Frame<'_>)) {
        let line = mem::take(&mut self.partial);
        let dropped = mem::take(&mut self.dropped_bytes);
        if dropped == 0 {
            emit(&line, &mut self.is_first_line, on_frame);
        } else {
            self.is_first_line = false;
            on_frame(Frame::TooLong {
                start: &line,
                bytes: line.len() as u64 + dropped,
            });
        }
    }
}

/// Hands over a line without its carriage return and byte order mark, unless it is blank.
fn emit(line: &[u8], is_first_line: &mut bool, on_frame: &mut impl FnMut(Frame<'_>)) {
    let line = if mem::take(is_first_line) {
        line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line)
    } else {
        line
    };
    let line = line.trim_ascii();
    if !line.is_empty() {
        on_frame(Frame::Line(line));
    }
}

// Messages that are to be sent, each on a line of its own.

/// Room for a message of common length, so that its buffer isn't moved each time it grows.
const MESSAGE_CAPACITY: usize = 512;
/// How much memory is kept for later messages.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// Messages that are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
}

/// A message.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Outgoing<'a, I, B> {
    jsonrpc: &'static str,
    id: Option<I>,
    method: Option<&'a str>,
    #[serde(flatten)]
    body: Option<Body<B>>,
}

/// What a message has to say.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Body<B> {
    Params(B),
    Result(B),
    Error(RpcError),
}

impl Outbox {
    /// Takes what is to be sent.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        mem::take(&mut self.bytes)
    }

    /// Appends what is to be sent to `output`, and keeps the buffer for later messages unless it is large.
    pub(crate) fn move_to(&mut self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.bytes);
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT_CAPACITY);
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: u64, method: &str, params: impl Serialize) {
        self.push(Some(id), Some(method), Some(Body::Params(params)));
    }

    /// Sends a notification.
    pub(crate) fn notification(&mut self, method: &str, params: Option<impl Serialize>) {
        self.push(None::<u64>, Some(method), params.map(Body::Params));
    }

    /// Answers the request `id` with a result.
    pub(crate) fn result(&mut self, id: &RequestId, result: impl Serialize) {
        self.push(Some(id.as_raw()), None, Some(Body::Result(result)));
    }

    /// Answers the request `id` with an error. A message whose id can't be read gets an error without one.
    pub(crate) fn error(&mut self, id: Option<&RequestId>, error: RpcError) {
        let body = Body::<()>::Error(error);
        self.push(id.map(RequestId::as_raw), None, Some(body));
    }

    fn push<I: Serialize, B: Serialize>(
        &mut self,
        id: Option<I>,
        method: Option<&str>,
        body: Option<Body<B>>,
    ) {
        let message = Outgoing {
            jsonrpc: "2.0",
            id,
            method,
            body,
        };
        let start = self.bytes.len();
        self.bytes.reserve(MESSAGE_CAPACITY);
        // Nothing that is sent can fail to serialize: all keys are text.
        if serde_json::to_writer(&mut self.bytes, &message).is_err() {
            self.bytes.truncate(start);
            return;
        }
        // Raw JSON may have line breaks between its values, and a message must not. A line break inside a string is
        // always escaped.
        for byte in &mut self.bytes[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.bytes.push(b'\n');
    }
}

#[cfg(test)]
mod outbox_tests {
    use super::*;

    #[test]
    fn messages_are_appended_in_order_and_a_large_buffer_is_not_kept() {
        let (mut outbox, mut expected) = (Outbox::default(), Outbox::default());
        let mut output = Vec::new();
        for (id, text) in [(1, "a".to_owned()), (2, "b".repeat(100_000))] {
            outbox.request(id, "echo", &text);
            expected.request(id, "echo", &text);
            outbox.move_to(&mut output);
        }
        assert_eq!(output, expected.take());
        assert!(outbox.bytes.is_empty());
        assert!(outbox.bytes.capacity() <= MAX_KEPT_CAPACITY);
        let before = output.len();
        outbox.move_to(&mut output);
        assert_eq!(output.len(), before);
    }
}
