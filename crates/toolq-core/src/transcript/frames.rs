//! Documents out of bytes: pretty-printed JSON, JSON lines and several values on one line are all the same to it.
//!
//! It holds one buffer that grows with the largest document, never with the input. It knows nothing of what a document
//! means.

use std::str::Utf8Error;

use crate::json::{Json, Opened};
use crate::text::format_bytes;
use crate::transcript::document::{Document, Origin};
use crate::transcript::document_error::Complaint;
use crate::transcript::error::{Fault, InputError};
use crate::transcript::json_scanner::Extent;
use crate::transcript::source::Source;

/// The size of the buffer before any document needs a larger one, in bytes.
const BUFFER: usize = 256 << 10;

/// Who reads the documents.
pub(crate) trait Reader {
    /// Takes the next one.
    fn document<'a>(&mut self, document: &Document<'a>) -> Result<(), Complaint<'a>>;
}

/// Reads `source` to its end and hands each document of at most `max_document` bytes to `reader`.
///
/// # Errors
/// What can't be read, is no JSON, is too large, or is refused by the reader, with its place.
pub(crate) fn read(
    source: &mut Source,
    max_document: u64,
    reader: &mut impl Reader,
) -> Result<(), InputError> {
    let max = usize::try_from(max_document).unwrap_or(usize::MAX - 1);
    let mut window = Window::default();
    let mut capacity = BUFFER.min(max.saturating_add(1));
    loop {
        window.fill(source, capacity)?;
        if window.is_ready(max) {
            let passed = window
                .documents(max, reader)
                .map_err(|fault| source.locate(fault))?;
            if window.ended {
                return Ok(());
            }
            window.pass(passed);
        }
        if window.bytes.len() > capacity / 2 {
            capacity = capacity.saturating_mul(2).min(max.saturating_add(1));
        }
    }
}

/// The bytes that were read and not yet passed on.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    /// Where they begin in the input.
    offset: u64,
    /// Nothing comes behind them.
    ended: bool,
    /// They begin with a document that was not all there when it was last parsed.
    unfinished: Option<Extent>,
}

impl Window {
    fn fill(&mut self, source: &mut Source, capacity: usize) -> Result<(), InputError> {
        let held = self.bytes.len();
        self.bytes.resize(capacity.max(held), 0);
        let count = source.fill(&mut self.bytes[held..])?;
        self.bytes.truncate(held + count);
        self.ended = held + count < capacity;
        Ok(())
    }

    fn pass(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.offset += count as u64;
        self.unfinished = Some(Extent::default());
    }

    /// Whether to parse on: a document that was not all there is parsed again when it is, or never will be. So none is
    /// parsed more than twice, however large it is.
    fn is_ready(&mut self, max: usize) -> bool {
        let bytes = &self.bytes;
        let last_chance = self.ended || bytes.len() > max;
        last_chance || (self.unfinished.as_mut()).is_none_or(|extent| extent.ends_in(bytes))
    }

    /// Reads what is complete; how many bytes that was.
    fn documents(&self, max: usize, reader: &mut impl Reader) -> Result<usize, Fault> {
        let (text, broken) = self.text();
        self.check_mark(text)?;
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Opened>();
        let mut passed = 0;
        loop {
            let begin = passed + blanks(&text[passed..]);
            match stream.next() {
                Some(Ok(opened)) => {
                    passed = stream.byte_offset();
                    self.document(&text[begin..passed], begin, opened, max, reader)?;
                }
                Some(Err(error)) if !error.is_eof() => {
                    return Err(self.not_json(text, begin, &error));
                }
                unfinished => {
                    self.check_rest(begin, unfinished.is_some(), broken, max)?;
                    return Ok(begin);
                }
            }
        }
    }

    fn document<'a>(
        &self,
        text: &'a str,
        begin: usize,
        opened: Opened<'a>,
        max: usize,
        reader: &mut impl Reader,
    ) -> Result<(), Fault> {
        if text.len() > max {
            return Err(self.too_large(begin, max));
        }
        let origin = Origin::of(text, self.at(begin));
        let document = Document {
            json: Json::new(text),
            object: opened.object(text),
            origin,
        };
        let read = reader.document(&document);
        read.map_err(|complaint| origin.fault(complaint))
    }

    /// The text up to the first byte that belongs to no character, and what is wrong there.
    fn text(&self) -> (&str, Option<Utf8Error>) {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let valid = &self.bytes[..error.valid_up_to()];
                (str::from_utf8(valid).unwrap_or_default(), Some(error))
            }
        }
    }

    /// What may stand where no further document is complete: the begin of one, if more is to come.
    fn check_rest(
        &self,
        begin: usize,
        in_document: bool,
        broken: Option<Utf8Error>,
        max: usize,
    ) -> Result<(), Fault> {
        // A character may also be cut in two by the window's end.
        if let Some(error) = broken.filter(|error| self.ended || error.error_len().is_some()) {
            return Err(self.fault(
                error.valid_up_to(),
                "a byte that is no UTF-8",
                Some(UTF8_HINT),
            ));
        }
        if self.bytes.len() - begin > max {
            return Err(self.too_large(begin, max));
        }
        if self.ended && in_document {
            let message = "the input ends in the middle of a JSON value";
            return Err(self
                .fault(self.bytes.len(), message, None)
                .since(self.at(begin)));
        }
        Ok(())
    }

    /// UTF-16 and byte order marks would otherwise be reported as strange characters.
    fn check_mark(&self, text: &str) -> Result<(), Fault> {
        if self.offset > 0 {
            return Ok(());
        }
        if matches!(
            self.bytes.as_slice(),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, ..] | [_, 0, ..]
        ) {
            return Err(self.fault(
                0,
                "the input is UTF-16 or UTF-32, not UTF-8",
                Some(UTF8_HINT),
            ));
        }
        if text.starts_with('\u{FEFF}') {
            let hint = "take the first three bytes away: `tail -c +4`";
            return Err(self.fault(0, "the input begins with a byte order mark", Some(hint)));
        }
        Ok(())
    }

    fn not_json(&self, text: &str, begin: usize, error: &serde_json::Error) -> Fault {
        let line: usize = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let at = (line + error.column().saturating_sub(1)).min(text.len());
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or_default();
        let message = format!("the input is no JSON: {what}");
        let fault = self.fault(at, message, foreign(&text[begin..]));
        fault.since(self.at(begin))
    }

    fn too_large(&self, begin: usize, max: usize) -> Fault {
        let message = format!("a document of more than {}", format_bytes(max as u64));
        self.fault(begin, message, None)
    }

    fn fault(&self, at: usize, message: impl Into<String>, hint: Option<&str>) -> Fault {
        Fault {
            hint: hint.map(str::to_owned),
            ..Fault::at(self.at(at), message)
        }
    }

    /// A place of the window as one of the input.
    fn at(&self, at: usize) -> u64 {
        self.offset + at as u64
    }
}

const UTF8_HINT: &str = "convert it to UTF-8, for example with `iconv -t utf-8`";

/// How many bytes of white space `text` begins with, as JSON knows it.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// What to do about a text that is no JSON, where that is known.
fn foreign(text: &str) -> Option<&'static str> {
    let is_stream = ["event:", "data:"]
        .iter()
        .any(|mark| text.starts_with(mark));
    match text.as_bytes() {
        _ if is_stream => Some(
            "this is a stream of events: `run` and `plan` read it, with neither --from nor --follow",
        ),
        [b'<', ..] => Some("this looks like HTML: was it a proxy that answered?"),
        _ => None,
    }
}
