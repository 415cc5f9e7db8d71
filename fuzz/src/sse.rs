//! Server-sent events, compared with a naive reading of the standard.

use toolq_core::transcript::{SseDecoder, SseError};

use crate::choices::cut_at_random;

/// Limit of an event's size, for inputs that begin with the mark below.
const SMALL_LIMIT: u64 = 24;
/// Selects the small limit.
const SMALL_LIMIT_MARK: u8 = 1;

/// The data of a server-sent event, with the line and the column where it begins.
type SseData = (String, usize, usize);

/// Decodes a stream whole, in pieces, and naively.
pub fn sse(data: &[u8]) {
    let (text, limit) = match data.split_first() {
        Some((&SMALL_LIMIT_MARK, rest)) => (rest, SMALL_LIMIT),
        _ => (data, 1 << 20),
    };
    let whole = decode_sse([text], limit);
    assert_eq!(decode_sse(text.chunks(1), limit), whole, "byte by byte");
    assert_eq!(decode_sse(cut_at_random(text), limit), whole, "in pieces");
    if limit > SMALL_LIMIT {
        assert_eq!(whole, decode_naively(text), "naively");
    }
}

/// Reads a stream as the HTML Living Standard describes it, line by line. Unlike it, keeps an event at the end that no
/// blank line follows, and stops at data that isn't valid UTF-8.
fn decode_naively(text: &[u8]) -> (Vec<SseData>, Option<usize>) {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut events = Vec::new();
    let mut open: Option<SseData> = None;
    for (index, line) in split_lines(text).into_iter().enumerate() {
        if line.is_empty() {
            events.extend(open.take());
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        if field != b"data" {
            continue;
        }
        let column = line.len() - value.len() + 1 + usize::from(value.starts_with(b" "));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let Ok(value) = str::from_utf8(value) else {
            return (events, Some(index + 1));
        };
        match &mut open {
            Some((text, _, _)) => {
                text.push('\n');
                text.push_str(value);
            }
            None => open = Some((value.to_owned(), index + 1, column)),
        }
    }
    events.extend(open);
    (events, None)
}

/// Splits at LF, CR, and CRLF.
fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let is_crlf = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_crlf)..];
    }
    lines.push(rest);
    lines
}

/// Decodes server-sent events that arrive in `pieces`. Returns the events and, if decoding failed, the line where.
fn decode_sse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    max_event_bytes: u64,
) -> (Vec<SseData>, Option<usize>) {
    let mut decoder = SseDecoder::new(max_event_bytes);
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.next_event(&mut piece) {
                Ok(Some(event)) => events.push((event.text, event.line, event.column)),
                Ok(None) => break,
                Err(error) => return (events, Some(error_line(error))),
            }
        }
    }
    match decoder.finish() {
        Ok(last) => {
            events.extend(last.map(|event| (event.text, event.line, event.column)));
            (events, None)
        }
        Err(error) => (events, Some(error_line(error))),
    }
}

fn error_line(error: SseError) -> usize {
    match error {
        SseError::NotUtf8 { line } | SseError::TooLarge { line } => line,
    }
}
