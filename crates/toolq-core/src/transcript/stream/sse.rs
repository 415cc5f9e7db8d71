//! Decodes server-sent events, as specified by the HTML Living Standard: lines end at CR, LF, or CRLF, wherever the
//! bytes are cut. The type of an event doesn't matter here, since both vendors repeat it in the data.
//!
//! Unlike the standard, an event without a blank line at the end of the stream is kept: saved streams often lack their
//! last blank line.

#[cfg(test)]
mod tests;

use std::mem;
use std::time::Duration;

/// The byte order mark that UTF-8 text may start with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The fields that the standard defines.
const FIELD_NAMES: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Returns whether an input that starts with `begin` is a stream of events, or `None` if more bytes are needed to tell.
pub fn is_event_stream(begin: &[u8]) -> Option<bool> {
    if begin.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(begin) {
        return None;
    }
    let text = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin);
    let first = text
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let line = &text[first..];
    if FIELD_NAMES.iter().any(|field| field.starts_with(line)) {
        return None;
    }
    let mut fields = FIELD_NAMES
        .iter()
        .filter_map(|field| line.strip_prefix(*field)?.first());
    Some(line[0] == b':' || fields.any(|next| matches!(next, b':' | b'\r' | b'\n')))
}

/// Splits bytes into events.
#[derive(Debug)]
pub struct SseDecoder {
    /// The line that is still arriving.
    partial_line: Vec<u8>,
    /// Number of that line, counted from 1.
    line_number: usize,
    /// The last byte was a CR, so an LF right after it belongs to the same line end.
    after_cr: bool,
    /// The event that is still arriving.
    data: Option<SseEvent>,
    /// The id of that event.
    id: Option<Vec<u8>>,
    /// The id of the last event that has arrived with one.
    last_event_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    /// Maximum size of an event, in bytes.
    max_event_bytes: u64,
}

/// The data of an event.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The values of its `data` fields, joined by line breaks.
    pub text: String,
    /// Line of its first `data` field, counted from 1.
    pub line: usize,
    /// Column in that line where the value starts, counted from 1.
    pub column: usize,
}

/// Why bytes can't be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SseError {
    /// The line is data and isn't valid UTF-8.
    NotUtf8 {
        /// Number of the line, counted from 1.
        line: usize,
    },
    /// An event is larger than the limit.
    TooLarge {
        /// Number of the line at which it is too large, counted from 1.
        line: usize,
    },
}

impl SseDecoder {
    /// Creates a decoder. An event of more than `max_event_bytes` bytes is an error.
    pub fn new(max_event_bytes: u64) -> Self {
        Self {
            partial_line: Vec::new(),
            line_number: 1,
            after_cr: false,
            data: None,
            id: None,
            last_event_id: None,
            retry: None,
            max_event_bytes,
        }
    }

    /// Returns the number of the line that is still arriving.
    pub fn line_number(&self) -> usize {
        self.line_number
    }

    /// Returns the id of the last whole event with one. A server can resume the stream after that event.
    pub fn last_event_id(&self) -> Option<&[u8]> {
        self.last_event_id.as_deref()
    }

    /// Returns how long the server wants a client to wait before it asks for the stream again.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Consumes `bytes` up to the end of the next event and returns the event, or `None` if it's incomplete.
    ///
    /// # Errors
    /// The event can't be decoded.
    pub fn next_event(&mut self, bytes: &mut &[u8]) -> Result<Option<SseEvent>, SseError> {
        while let Some(first) = bytes.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.partial_line.extend_from_slice(bytes);
                *bytes = &[];
                break;
            };
            self.partial_line.extend_from_slice(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            *bytes = &bytes[end + 1..];
            if let Some(data) = self.end_line()? {
                return Ok(Some(data));
            }
        }
        self.check_size()?;
        Ok(None)
    }

    /// Ends the input and returns the event that this completes, if any.
    ///
    /// # Errors
    /// The event can't be decoded.
    pub fn finish(&mut self) -> Result<Option<SseEvent>, SseError> {
        let ended = self.end_line()?;
        Ok(ended.or_else(|| self.data.take()))
    }

    /// Ends the current line and returns the event that this completes, if any.
    fn end_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        self.check_size()?;
        let mut line = mem::take(&mut self.partial_line);
        let line_number = self.line_number;
        self.line_number += 1;
        if line_number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.last_event_id = self.id.take().or_else(|| self.last_event_id.take());
            return Ok(self.data.take());
        }
        let field_end = line.iter().position(|byte| *byte == b':');
        let name = &line[..field_end.unwrap_or(line.len())];
        let value = field_end.map_or(&b""[..], |end| &line[end + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            // Only `data` is decoded, so invalid bytes in comments and other fields don't matter. In `data`, the standard's
            // replacement characters would change the input of a call.
            b"data" => {
                let text =
                    str::from_utf8(value).map_err(|_| SseError::NotUtf8 { line: line_number })?;
                self.add_data_line(text, line_number, line.len() - text.len() + 1);
            }
            b"id" if !value.contains(&0) => self.id = Some(value.to_owned()),
            b"retry" => self.retry = parse_retry(value).or(self.retry),
            _ => {}
        }
        Ok(None)
    }

    fn add_data_line(&mut self, text: &str, line: usize, column: usize) {
        match &mut self.data {
            Some(data) => {
                data.text.push('\n');
                data.text.push_str(text);
            }
            empty => {
                let text = text.to_owned();
                *empty = Some(SseEvent { text, line, column });
            }
        }
    }

    fn check_size(&self) -> Result<(), SseError> {
        let buffered_bytes =
            self.data.as_ref().map_or(0, |data| data.text.len()) + self.partial_line.len();
        if buffered_bytes as u64 > self.max_event_bytes {
            return Err(SseError::TooLarge {
                line: self.line_number,
            });
        }
        Ok(())
    }
}

/// Reads a number of milliseconds. It has nothing but digits.
fn parse_retry(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let digits = str::from_utf8(value).ok().filter(|_| is_number)?;
    digits.parse().ok().map(Duration::from_millis)
}
