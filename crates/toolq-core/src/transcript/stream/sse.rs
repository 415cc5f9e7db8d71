//! Decodes server-sent events, as specified by the HTML Living Standard: lines end at CR, LF, or CRLF, wherever the
//! bytes are cut. The type of an event doesn't matter here, since both vendors repeat it in the data.
//!
//! Unlike the standard, an event without a blank line at the end of the stream is kept: saved streams often lack their
//! last blank line.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_whole_event_and_the_retry_time_are_kept() {
        let mut events = SseDecoder::new(1000);
        let mut read = |text: &str| {
            let mut bytes = text.as_bytes();
            while events.next_event(&mut bytes).unwrap().is_some() {}
            let id = events.last_event_id().map(<[u8]>::to_vec);
            (id.map(|id| String::from_utf8(id).unwrap()), events.retry())
        };
        let (first, second) = (Some("a 1".to_owned()), Some(String::new()));
        assert_eq!(read(": hi\n\ndata: x\n\n"), (None, None));
        assert_eq!(
            read("id: a 1\nretry: 20\ndata:"),
            (None, Some(Duration::from_millis(20)))
        );
        assert_eq!(read("\n\ndata: y\n\n").0, first);
        assert_eq!(
            read("id: \0\nretry: -1\nretry\n\n"),
            (first, Some(Duration::from_millis(20)))
        );
        assert_eq!(read("id\n\n").0, second);
        assert_eq!(read("id: b\ndata: cut off").0, second);
    }

    fn read_events(pieces: &[&[u8]]) -> Vec<(String, usize)> {
        let mut events = SseDecoder::new(1000);
        let mut found = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while let Some(data) = events.next_event(&mut piece).unwrap() {
                found.push((data.text, data.line));
            }
        }
        found.extend(events.finish().unwrap().map(|data| (data.text, data.line)));
        found
    }

    /// All forms of the standard, in one piece and cut at every byte.
    #[test]
    fn events_are_found_however_the_bytes_arrive() {
        let text = "\u{FEFF}: hello\r\rdata:ä\r\ndata:  b\r\n\r\nevent: x\nid\ndata\n\nretry: 1\n\n\ndata: {é}\rnonsense\r\rdata: end";
        let expected = [("ä\n b", 3), ("", 8), ("{é}", 13), ("end", 16)]
            .map(|(text, line)| (text.to_owned(), line));
        assert_eq!(read_events(&[text.as_bytes()]), expected);
        for cut in 0..text.len() {
            let (start, rest) = text.as_bytes().split_at(cut);
            assert_eq!(read_events(&[start, rest]), expected, "{cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read_events(&bytes), expected);
    }

    #[test]
    fn a_stream_is_detected_by_its_first_line() {
        for (begin, expected) in [
            ("", None),
            ("\u{FEFF}", None),
            ("\r\n\n", None),
            ("eve", None),
            ("event", None),
            ("event:", Some(true)),
            (": hello", Some(true)),
            ("\u{FEFF}data\n", Some(true)),
            ("\nretry: 1", Some(true)),
            ("evil", Some(false)),
            ("identity: 1", Some(false)),
            ("{", Some(false)),
            (" data:", Some(false)),
        ] {
            assert_eq!(is_event_stream(begin.as_bytes()), expected, "{begin:?}");
        }
    }

    #[test]
    fn a_too_large_or_non_utf8_event_is_an_error() {
        let mut endless = SseDecoder::new(10);
        assert_eq!(
            endless.next_event(&mut &b"data: 12345"[..]),
            Err(SseError::TooLarge { line: 1 })
        );
        let mut many = SseDecoder::new(10);
        assert_eq!(
            many.next_event(&mut &b"data:1234\ndata:5678\ndata:9\n"[..]),
            Err(SseError::TooLarge { line: 2 })
        );
        let mut binary = SseDecoder::new(10);
        assert_eq!(
            binary.next_event(&mut &b"\ndata: \xFF\n"[..]),
            Err(SseError::NotUtf8 { line: 2 })
        );
    }

    #[test]
    fn bytes_that_are_not_utf8_matter_only_in_data() {
        let text = b": \xFF\n\xFE: x\nevent: \xC3\ndata: \xC3\xA4\n\n";
        assert_eq!(read_events(&[text]), [("ä".to_owned(), 4)]);
    }
}
