//! Server-sent events out of bytes, as HTML's living standard reads them: lines end at CR, LF or CRLF, wherever the bytes
//! were cut. Only `data` counts: both vendors say in it what kind of event it is.
//!
//! What the standard drops is kept: an event that nothing ends, since streams are saved without their last blank line.

use std::mem;

/// The mark that a text in UTF-8 may begin with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The fields of an event; lines of others are passed over.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Whether an input that begins so is a stream of events; none where more of it must be known.
pub fn is_stream(begin: &[u8]) -> Option<bool> {
    if begin.len() < MARK.len() && MARK.starts_with(begin) {
        return None;
    }
    let text = begin.strip_prefix(MARK).unwrap_or(begin);
    let first = text
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let line = &text[first..];
    if FIELDS.iter().any(|field| field.starts_with(line)) {
        return None;
    }
    let mut fields = FIELDS
        .iter()
        .filter_map(|field| line.strip_prefix(*field)?.first());
    Some(line[0] == b':' || fields.any(|next| matches!(next, b':' | b'\r' | b'\n')))
}

/// The events so far.
#[derive(Debug)]
pub(crate) struct Events {
    /// The line that is still arriving.
    line: Vec<u8>,
    /// Its number, from 1.
    number: usize,
    /// The last byte was a CR: a LF right behind it belongs to it.
    after_cr: bool,
    /// The event that is still arriving.
    data: Option<Data>,
    /// Bytes that an event may have.
    max: u64,
}

/// The data of an event: its lines, joined.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub text: String,
    /// Where its first line begins.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

/// Why bytes are no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The line is no UTF-8.
    NotUtf8 { line: usize },
    /// An event has more bytes than one may have.
    TooLarge { line: usize },
}

impl Events {
    /// Nothing so far; an event of more than `max` bytes is a fault.
    pub fn new(max: u64) -> Self {
        Self {
            line: Vec::new(),
            number: 1,
            after_cr: false,
            data: None,
            max,
        }
    }

    /// The number of the line that is still arriving.
    pub fn line(&self) -> usize {
        self.number
    }

    /// Reads on in `bytes` until an event is whole; what was read is taken off them.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Data>, Fault> {
        while let Some(first) = bytes.first() {
            if mem::take(&mut self.after_cr) && *first == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.line.extend_from_slice(bytes);
                *bytes = &[];
                break;
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.after_cr = bytes[end] == b'\r';
            *bytes = &bytes[end + 1..];
            if let Some(data) = self.end_line()? {
                return Ok(Some(data));
            }
        }
        self.check_size()?;
        Ok(None)
    }

    /// The event that the end of the input ends.
    pub fn rest(&mut self) -> Result<Option<Data>, Fault> {
        let ended = self.end_line()?;
        Ok(ended.or_else(|| self.data.take()))
    }

    /// The line is whole; the event that it ends, if it ends one.
    fn end_line(&mut self) -> Result<Option<Data>, Fault> {
        self.check_size()?;
        let mut line = mem::take(&mut self.line);
        let number = self.number;
        self.number += 1;
        if number == 1 && line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        let line = String::from_utf8(line).map_err(|_| Fault::NotUtf8 { line: number })?;
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        if field == "data" {
            let text = value.strip_prefix(' ').unwrap_or(value);
            self.add(text, number, line.len() - text.len() + 1);
        }
        Ok(None)
    }

    fn add(&mut self, text: &str, line: usize, column: usize) {
        match &mut self.data {
            Some(data) => {
                data.text.push('\n');
                data.text.push_str(text);
            }
            none => {
                let text = text.to_owned();
                *none = Some(Data { text, line, column });
            }
        }
    }

    fn check_size(&self) -> Result<(), Fault> {
        let held = self.data.as_ref().map_or(0, |data| data.text.len()) + self.line.len();
        if held as u64 > self.max {
            return Err(Fault::TooLarge { line: self.number });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, usize)> {
        let mut events = Events::new(1000);
        let mut found = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while let Some(data) = events.next(&mut piece).unwrap() {
                found.push((data.text, data.line));
            }
        }
        found.extend(events.rest().unwrap().map(|data| (data.text, data.line)));
        found
    }

    /// FAULTS 17: the standard's forms, whole and cut at every byte.
    #[test]
    fn events_are_found_however_the_bytes_arrive() {
        let text = "\u{FEFF}: hello\r\rdata:ä\r\ndata:  b\r\n\r\nevent: x\nid\ndata\n\nretry: 1\n\n\ndata: {é}\rnonsense\r\rdata: end";
        let expected = [("ä\n b", 3), ("", 8), ("{é}", 13), ("end", 16)]
            .map(|(text, line)| (text.to_owned(), line));
        assert_eq!(read(&[text.as_bytes()]), expected);
        for cut in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(read(&[one, other]), expected, "{cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn a_stream_is_known_by_its_first_line() {
        for (begin, known) in [
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
            assert_eq!(is_stream(begin.as_bytes()), known, "{begin:?}");
        }
    }

    /// FAULTS 4, 11.
    #[test]
    fn what_is_too_much_or_no_text_is_a_fault() {
        let mut endless = Events::new(10);
        assert_eq!(
            endless.next(&mut &b"data: 12345"[..]),
            Err(Fault::TooLarge { line: 1 })
        );
        let mut many = Events::new(10);
        assert_eq!(
            many.next(&mut &b"data:1234\ndata:5678\ndata:9\n"[..]),
            Err(Fault::TooLarge { line: 2 })
        );
        let mut binary = Events::new(10);
        assert_eq!(
            binary.next(&mut &b"\n: \xFF\n"[..]),
            Err(Fault::NotUtf8 { line: 2 })
        );
    }
}
