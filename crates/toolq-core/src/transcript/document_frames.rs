//! Splits an input's bytes into JSON documents: pretty-printed, one per line, or several on one line.
//!
//! Its only buffer grows with the largest document, never with the input. It doesn't know what a document means.

use std::str::Utf8Error;

use serde::de::IgnoredAny;

use crate::json::{DuplicateKey, JsonText, ParsedObject, describe_parse_error, parse_error_offset};
use crate::text::format_bytes;
use crate::transcript::input_source::{InputError, InputSource, OffsetError};
use crate::transcript::json_end_scanner::JsonEndScanner;

/// Initial size of the buffer, in bytes. It grows when a document doesn't fit.
const INITIAL_BUFFER_BYTES: usize = 256 << 10;

/// The largest file whose rest is read at once if a document doesn't fit in the initial buffer.
const MAX_WHOLE_FILE_BYTES: usize = 8 << 20;

/// Receives the documents of an input.
pub(crate) trait DocumentVisitor {
    /// Handles the next document.
    fn visit_document<'a>(&mut self, document: &InputDocument<'a>)
    -> Result<(), DocumentError<'a>>;

    /// Whether the input may end in the middle of a document, which is then left out.
    fn allows_torn_end(&self) -> bool {
        false
    }

    /// Whether the input may end in NUL bytes, which a file has where it was being written when the power was lost.
    fn allows_nul_end(&self) -> bool {
        false
    }

    /// Learns that it does, from this offset on.
    fn note_nul_end(&mut self, _offset: u64) {}
}

/// Reads `source` to its end and passes each document to `visitor`.
///
/// # Errors
/// The source can't be read, or a document isn't valid JSON, has more than `max_document` bytes, or is rejected by
/// `visitor`.
pub(crate) fn read_documents(
    source: &mut InputSource,
    max_document: u64,
    visitor: &mut impl DocumentVisitor,
) -> Result<(), InputError> {
    let max = usize::try_from(max_document).unwrap_or(usize::MAX - 1);
    let mut window = InputWindow::default();
    let mut capacity = INITIAL_BUFFER_BYTES.min(max.saturating_add(1));
    loop {
        window.fill(source, capacity)?;
        if window.is_in_nul_end {
            let passed = window.pass_nul_bytes();
            passed.map_err(|error| source.locate(error))?;
            if window.at_end {
                return Ok(());
            }
            window.advance(window.len);
        } else if window.should_parse(max) {
            let parsed_bytes;
            (parsed_bytes, window.is_in_nul_end) = window
                .read_complete_documents(max, visitor)
                .map_err(|error| source.locate(error))?;
            if window.at_end && !window.is_in_nul_end {
                return Ok(());
            }
            window.advance(parsed_bytes);
        }
        if window.len > capacity / 2 {
            let larger = capacity.saturating_mul(2).max(whole_file_capacity(source));
            capacity = larger.min(max.saturating_add(1));
        }
    }
}

/// Returns the size of a buffer that holds a whole file, or 0 if the input isn't a file or the file is too large. With it, a
/// document that doesn't fit in the initial buffer needs only one larger one.
fn whole_file_capacity(source: &InputSource) -> usize {
    let bytes: Option<usize> = source.file_bytes().and_then(|bytes| bytes.try_into().ok());
    // One byte more shows that the file ends.
    let capacity = bytes.filter(|bytes| *bytes <= MAX_WHOLE_FILE_BYTES);
    capacity.map_or(0, |bytes| bytes + 1)
}

/// Bytes that were read but not yet passed to the visitor.
#[derive(Default)]
struct InputWindow {
    /// Begins with these bytes. The rest stays as it is, so that no read has to fill it with zeros first: that takes longer than
    /// reading a small input.
    buffer: Vec<u8>,
    /// Number of these bytes.
    len: usize,
    /// Offset of the first of them in the input.
    offset: u64,
    /// The input ends after them.
    at_end: bool,
    /// Scans for the end of the document that they start with, once it was found to be incomplete.
    unfinished_document: Option<JsonEndScanner>,
    /// Only NUL bytes may follow.
    is_in_nul_end: bool,
}

impl InputWindow {
    fn fill(&mut self, source: &mut InputSource, capacity: usize) -> Result<(), InputError> {
        if self.buffer.len() < capacity {
            let mut larger = vec![0; capacity];
            larger[..self.len].copy_from_slice(self.bytes());
            self.buffer = larger;
        }
        self.len += source.fill(&mut self.buffer[self.len..])?;
        self.at_end = self.len < capacity;
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    fn advance(&mut self, count: usize) {
        self.buffer.copy_within(count..self.len, 0);
        self.len -= count;
        self.offset += count as u64;
        self.unfinished_document = Some(JsonEndScanner::default());
    }

    /// Returns whether to parse the window. An incomplete document is parsed again only when it's complete or can no
    /// longer be completed, so no document is parsed more than twice, however large it is.
    fn should_parse(&mut self, max: usize) -> bool {
        // Borrowed without the scanner.
        let bytes = &self.buffer[..self.len];
        let last_chance = self.at_end || bytes.len() > max;
        last_chance
            || bytes.last() == Some(&0)
            || (self.unfinished_document.as_mut()).is_none_or(|scanner| scanner.reaches_end(bytes))
    }

    /// Passes all complete documents to `visitor`. Returns the number of bytes they took, and whether NUL bytes follow.
    fn read_complete_documents(
        &self,
        max: usize,
        visitor: &mut impl DocumentVisitor,
    ) -> Result<(usize, bool), OffsetError> {
        let (text, utf8_error) = self.valid_text();
        self.check_byte_order_mark(text)?;
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let mut passed = 0;
        loop {
            let begin = passed + leading_whitespace_len(&text[passed..]);
            match stream.next() {
                Some(Ok(_)) => {
                    passed = stream.byte_offset();
                    self.read_document(&text[begin..passed], begin, max, visitor)?;
                }
                Some(Err(error)) if !error.is_eof() && !self.may_continue(text, &error) => {
                    let nul = text[begin..].find('\0').map(|at| begin + at);
                    if let Some(nul) = nul.filter(|nul| is_torn(&text[begin..*nul]))
                        && visitor.allows_nul_end()
                    {
                        visitor.note_nul_end(self.input_offset(begin));
                        return Ok((nul, true));
                    }
                    return Err(self.not_json_error(text, begin, &error));
                }
                unfinished => {
                    if !(self.at_end && visitor.allows_torn_end()) {
                        self.check_rest(begin, unfinished.is_some(), utf8_error, max)?;
                    }
                    return Ok((begin, false));
                }
            }
        }
    }

    /// Checks that everything that is left is NUL bytes.
    fn pass_nul_bytes(&self) -> Result<(), OffsetError> {
        let is_filler = |byte: &u8| matches!(byte, 0 | b'\r' | b'\n');
        match self.bytes().iter().position(|byte| !is_filler(byte)) {
            Some(at) => Err(self.error_at(at, "NUL bytes stand before this", None)),
            None => Ok(()),
        }
    }

    /// Whether an error is only that the window ends in the middle of a number.
    fn may_continue(&self, text: &str, error: &serde_json::Error) -> bool {
        !self.at_end && parse_error_offset(text, error) + 1 >= text.len() && text.len() == self.len
    }

    fn read_document(
        &self,
        text: &str,
        begin: usize,
        max: usize,
        visitor: &mut impl DocumentVisitor,
    ) -> Result<(), OffsetError> {
        if text.len() > max {
            return Err(self.too_large_error(begin, max));
        }
        let origin = DocumentOrigin::new(text, self.input_offset(begin));
        let json = JsonText::new(text);
        let document = InputDocument {
            json,
            object: ParsedObject::open(json).map_err(|error| {
                self.error_at(begin, describe_parse_error("the input", text, &error), None)
            })?,
            origin,
        };
        let read = visitor.visit_document(&document);
        read.map_err(|error| origin.locate(error))
    }

    /// Returns the text up to the first invalid UTF-8 sequence, and the error about that sequence.
    fn valid_text(&self) -> (&str, Option<Utf8Error>) {
        match std::str::from_utf8(self.bytes()) {
            Ok(text) => (text, None),
            Err(error) => {
                let valid = &self.bytes()[..error.valid_up_to()];
                (str::from_utf8(valid).unwrap_or_default(), Some(error))
            }
        }
    }

    /// Checks the bytes after the last complete document. They may be the start of another one if more input follows.
    fn check_rest(
        &self,
        begin: usize,
        in_document: bool,
        utf8_error: Option<Utf8Error>,
        max: usize,
    ) -> Result<(), OffsetError> {
        // A character may be cut in two by the end of the window; that isn't an error until the input ends.
        if let Some(error) = utf8_error.filter(|error| self.at_end || error.error_len().is_some()) {
            return Err(self.error_at(error.valid_up_to(), "invalid UTF-8", Some(UTF8_HINT)));
        }
        if self.len - begin > max {
            return Err(self.too_large_error(begin, max));
        }
        if self.at_end && in_document {
            let message = "the input ends in the middle of a JSON value";
            return Err(self
                .error_at(self.len, message, None)
                .in_document_at(self.input_offset(begin)));
        }
        Ok(())
    }

    /// Rejects UTF-16, UTF-32, and byte order marks. The JSON parser would only report an unexpected character.
    fn check_byte_order_mark(&self, text: &str) -> Result<(), OffsetError> {
        if self.offset > 0 {
            return Ok(());
        }
        if matches!(
            self.bytes(),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0, ..] | [_, 0, ..]
        ) {
            return Err(self.error_at(
                0,
                "the input is UTF-16 or UTF-32, not UTF-8",
                Some(UTF8_HINT),
            ));
        }
        if text.starts_with('\u{FEFF}') {
            let hint = "remove the first three bytes, for example with `tail -c +4`";
            return Err(self.error_at(0, "the input begins with a byte order mark", Some(hint)));
        }
        Ok(())
    }

    fn not_json_error(&self, text: &str, begin: usize, error: &serde_json::Error) -> OffsetError {
        let at = parse_error_offset(text, error).min(text.len());
        let message = describe_parse_error("the input", text, error);
        let error = self.error_at(at, message, foreign_format_hint(&text[begin..]));
        // Within a line, it is that line which is wrong, and no line before it lacks its end.
        match text.as_bytes()[..at].last() {
            Some(b'\n') => error.in_document_at(self.input_offset(begin)),
            _ => error,
        }
    }

    fn too_large_error(&self, begin: usize, max: usize) -> OffsetError {
        let message = format!("the document is larger than {}", format_bytes(max as u64));
        self.error_at(begin, message, None)
    }

    fn error_at(&self, at: usize, message: impl Into<String>, hint: Option<&str>) -> OffsetError {
        OffsetError {
            hint: hint.map(str::to_owned),
            ..OffsetError::at(self.input_offset(at), message)
        }
    }

    /// Converts an offset in the window to an offset in the input.
    fn input_offset(&self, at: usize) -> u64 {
        self.offset + at as u64
    }
}

const UTF8_HINT: &str = "convert it to UTF-8, for example with `iconv -t utf-8`";

/// Returns whether `text` is nothing, or the beginning of a document.
fn is_torn(text: &str) -> bool {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let first = documents.next();
    first.is_none_or(|read| read.is_err_and(|error| error.is_eof()))
}

/// Returns the number of bytes of JSON whitespace at the start of `text`.
fn leading_whitespace_len(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Returns a hint for text that isn't JSON but looks like a known other format.
fn foreign_format_hint(text: &str) -> Option<&'static str> {
    let is_stream = ["event:", "data:"]
        .iter()
        .any(|mark| text.starts_with(mark));
    match text.as_bytes() {
        _ if is_stream => Some(
            "this is a stream of events, which only `run`, `plan` and `submit` read, and not with `--follow`",
        ),
        [b'<', ..] => Some("this looks like HTML: did a proxy answer?"),
        [b'#', ..] => Some("this looks like tools.yaml: name it with `-c`. An input is JSON"),
        _ if ["version:", "tools:"]
            .iter()
            .any(|key| text.starts_with(key)) =>
        {
            Some("this looks like tools.yaml: name it with `-c`. An input is JSON")
        }
        _ => None,
    }
}

// One JSON document of an input, and the offsets of its parts.

/// A document. Its outermost object is parsed once and shared by all readers.
pub(crate) struct InputDocument<'a> {
    pub json: JsonText<'a>,
    /// `None` if the document isn't an object.
    pub object: Option<ParsedObject<'a>>,
    pub origin: DocumentOrigin,
}

/// Where a document starts, to find the offsets of its parts in the input.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct DocumentOrigin {
    /// Address of its first byte in memory.
    address: usize,
    /// Offset of its first byte in the input.
    offset: u64,
}

impl DocumentOrigin {
    /// Creates the origin of a document whose `text` starts at byte `offset` of the input.
    pub fn new(text: &str, offset: u64) -> Self {
        let address = text.as_ptr().addr();
        Self { address, offset }
    }

    /// Returns the offset of a part of the document in the input.
    pub fn offset_of(self, part: JsonText) -> u64 {
        let distance = part.get().as_ptr().addr().saturating_sub(self.address);
        self.offset + distance as u64
    }

    /// Replaces the value that an error borrows from the document by its offset, so that the error can outlive the
    /// document.
    pub fn locate(self, error: DocumentError) -> OffsetError {
        OffsetError {
            hint: error.hint,
            ..OffsetError::at(self.offset_of(error.value), error.message)
        }
    }
}

// An error about a value of a document that is still in memory.

/// The result of reading a document or an event: an error if it doesn't have a form of its dialect.
pub(crate) type DocumentResult<'a> = Result<(), DocumentError<'a>>;

/// What is wrong with a value of a document.
#[derive(Debug)]
pub(crate) struct DocumentError<'a> {
    /// The value, borrowed from the document.
    pub value: JsonText<'a>,
    pub message: String,
    pub hint: Option<String>,
}

impl<'a> DocumentError<'a> {
    pub fn new(value: JsonText<'a>, message: impl Into<String>) -> Self {
        Self {
            value,
            message: message.into(),
            hint: None,
        }
    }

    /// Creates the error for a `value` that isn't an object; `what` says what was expected there.
    pub fn not_an_object(what: &str, value: JsonText<'a>) -> Self {
        Self::new(
            value,
            format!("{what} must be an object, not {}", value.kind()),
        )
    }

    /// Creates the error for the `value` of `key` that isn't an array.
    pub fn not_an_array(key: &str, value: JsonText<'a>) -> Self {
        Self::new(
            value,
            format!("`{key}` must be an array, not {}", value.kind()),
        )
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl<'a> From<DuplicateKey<'a>> for DocumentError<'a> {
    fn from(
        DuplicateKey {
            key,
            second_value: second,
        }: DuplicateKey<'a>,
    ) -> Self {
        Self::new(
            second,
            format!(
                "the key `{}` appears twice in one object",
                key.escape_debug()
            ),
        )
    }
}
