//! The bytes of an input: read once from start to end, then again at the offsets of its calls.
//!
//! A regular file is read in place, unless something may change it meanwhile. A pipe is copied to an unnamed temporary file as it's read, so that it's never held
//! in memory and leaves nothing behind on disk.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// How much is read at a time while counting lines, in bytes.
const READ_CHUNK_BYTES: usize = 64 * 1024;

/// An input that hasn't been read to its end yet.
pub struct InputSource {
    spooled: SpooledInput,
    /// The size of a regular file when it was opened, in bytes.
    file_bytes: Option<u64>,
    /// The pipe that is being copied to the temporary file.
    pipe: Option<Box<dyn Read>>,
    /// Digest of the bytes read so far, if requested.
    hasher: Option<Sha256>,
}

impl InputSource {
    /// Creates a source that reads `file` from its current position; `name` is its display name. Anything but a regular
    /// file is treated as a pipe.
    ///
    /// # Errors
    /// The file's metadata or position can't be read, or a temporary file can't be created.
    pub fn from_file(name: impl Into<String>, mut file: File) -> Result<Self, InputError> {
        let name = name.into();
        let unreadable = |error| InputError::from_io(&name, "can't be read", &error);
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Self::from_pipe(name, file);
        }
        let start = file.stream_position().map_err(unreadable)?;
        let spooled = SpooledInput::new(name, file, start);
        Ok(Self {
            spooled,
            file_bytes: Some(metadata.len()),
            pipe: None,
            hasher: None,
        })
    }

    /// Creates a source for bytes that can be read only once; `name` is its display name.
    ///
    /// # Errors
    /// A temporary file can't be created.
    pub fn from_pipe(
        name: impl Into<String>,
        pipe: impl Read + 'static,
    ) -> Result<Self, InputError> {
        let name = name.into();
        let file = tempfile::tempfile().map_err(|error| {
            let dir = std::env::temp_dir();
            let what = format!("can't be copied to a temporary file in {}", dir.display());
            InputError {
                hint: Some("set TMPDIR to a directory in which you can create files".into()),
                ..InputError::from_io(&name, &what, &error)
            }
        })?;
        let spooled = SpooledInput::new(name, file, 0);
        let pipe: Option<Box<dyn Read>> = Some(Box::new(pipe));
        Ok(Self {
            spooled,
            file_bytes: None,
            pipe,
            hasher: None,
        })
    }

    /// Copies a regular file as it's read, as it would a pipe: a call that runs may change it before its later calls are read.
    ///
    /// # Errors
    /// A temporary file can't be created.
    pub fn copied(self) -> Result<Self, InputError> {
        if self.file_bytes.is_none() {
            return Ok(self);
        }
        let original = self.spooled;
        let file = original.file.try_clone();
        let file =
            file.map_err(|error| InputError::from_io(&original.name, "can't be read", &error))?;
        let mut copy = Self::from_pipe(original.name.clone(), file)?;
        copy.spooled.copied_from = Some(Box::new(original));
        Ok(copy)
    }

    /// Computes the SHA-256 of the bytes while they're read.
    #[must_use]
    pub fn with_digest(self) -> Self {
        Self {
            hasher: Some(Sha256::new()),
            ..self
        }
    }

    /// Returns the size of a regular file in bytes, which may grow meanwhile.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Reads until `buffer` is full or the input ends, and returns the number of bytes read.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(InputError::from_io(
                        &self.spooled.name,
                        "can't be read",
                        &error,
                    ));
                }
            }
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..filled]);
        }
        Ok(filled)
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else {
            return self.spooled.file.read(buffer);
        };
        let count = pipe.read(buffer)?;
        self.spooled.file.write_all(&buffer[..count])?;
        Ok(count)
    }

    /// Converts the offset of an error to a line and column.
    pub(super) fn locate(&self, error: OffsetError) -> InputError {
        self.spooled.locate(error)
    }

    /// Returns the SHA-256 of the bytes read, in hexadecimal, or an empty string if it wasn't requested.
    pub(super) fn take_sha256(&mut self) -> String {
        let digest = self.hasher.take().map(Sha256::finalize);
        digest.map_or_else(String::new, |digest| HEXLOWER.encode(&digest))
    }

    /// Returns the bytes read, for reading them again.
    pub(super) fn into_spooled(self) -> SpooledInput {
        self.spooled
    }
}

/// An input that was read once and can be read again at any offset.
pub(crate) struct SpooledInput {
    name: String,
    file: File,
    /// Offset of the input in `file`.
    start: u64,
    copied_from: Option<Box<SpooledInput>>,
}

impl SpooledInput {
    fn new(name: String, file: File, start: u64) -> Self {
        Self {
            name,
            file,
            start,
            copied_from: None,
        }
    }

    /// Returns the file if the input is all of it.
    pub fn whole_file(&self) -> Option<&File> {
        match &self.copied_from {
            Some(original) => original.whole_file(),
            None => Some(&self.file).filter(|_| self.start == 0),
        }
    }

    /// Reads the bytes from `begin` to `end` as text.
    pub fn read_text(&self, begin: u64, end: u64) -> Result<String, InputError> {
        let read = || {
            let count = usize::try_from(end - begin).map_err(io::Error::other)?;
            let mut bytes = vec![0; count];
            self.file.read_exact_at(&mut bytes, self.start + begin)?;
            String::from_utf8(bytes).map_err(io::Error::other)
        };
        read().map_err(|error| InputError::from_io(&self.name, "changed while being read", &error))
    }

    /// Converts the offset of an error to a line and column. If its document starts on an earlier line and there is no
    /// other hint, the hint names that line: it may be the one that lacks its end.
    pub fn locate(&self, error: OffsetError) -> InputError {
        let position = self.line_col_at(error.offset).ok();
        let document_start = error
            .document_offset
            .and_then(|offset| self.line_col_at(offset).ok());
        let start_line = match (document_start, position) {
            (Some(start), Some(position)) if start.line < position.line => Some(start.line),
            _ => None,
        };
        InputError {
            input_name: self.name.clone(),
            position,
            message: error.message,
            hint: error
                .hint
                .or(start_line.map(|line| format!("the unclosed value begins on line {line}"))),
            errno: None,
        }
    }

    fn line_col_at(&self, offset: u64) -> io::Result<LineCol> {
        let mut position = LineCol { line: 1, column: 1 };
        let mut bytes = vec![0; READ_CHUNK_BYTES];
        let (mut from, end) = (self.start, self.start + offset);
        while from < end {
            let want = usize::try_from(end - from)
                .map_or(READ_CHUNK_BYTES, |left| left.min(READ_CHUNK_BYTES));
            let count = self.file.read_at(&mut bytes[..want], from)?;
            if count == 0 {
                break;
            }
            bytes[..count]
                .iter()
                .for_each(|&byte| position.advance(byte));
            from += count as u64;
        }
        Ok(position)
    }
}

impl LineCol {
    /// Advances past `byte`. A character is counted at its first byte.
    fn advance(&mut self, byte: u8) {
        match byte {
            b'\n' => (self.line, self.column) = (self.line + 1, 1),
            0x80..0xC0 => {}
            _ => self.column += 1,
        }
    }
}

// Errors in an input, with their position and a hint for the user.

/// Why an input can't be read or isn't what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// Display name of the input.
    pub input_name: String,
    /// Where the error is. `None` if the bytes themselves couldn't be read.
    pub position: Option<LineCol>,
    /// What is wrong: one sentence without a final period.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The number of the system's error, if it is one.
    pub errno: Option<i32>,
}

/// A position in a text. Both numbers are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCol {
    /// Line number; lines end at `\n`.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl InputError {
    /// Creates the error for a failed I/O operation; `what` says what failed.
    fn from_io(input_name: &str, what: &str, error: &io::Error) -> Self {
        Self {
            input_name: input_name.to_owned(),
            position: None,
            message: format!("{what}: {error}"),
            hint: None,
            errno: error.raw_os_error(),
        }
    }
}

impl InputError {
    /// Returns what is wrong and what to do about it, without the name of the input and a position in it. This is for
    /// callers that passed a value and never saw its text.
    pub fn describe_without_place(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(LineCol { line, column }) => {
                write!(f, "{}:{line}:{column}: {}", self.input_name, self.message)
            }
            None => write!(f, "{}: {}", self.input_name, self.message),
        }
    }
}

impl std::error::Error for InputError {}

/// An error at a byte offset of an input. [`SpooledInput`](super::input_source::SpooledInput) turns it into an
/// [`InputError`] by counting lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffsetError {
    /// Byte offset from the start of the input.
    pub offset: u64,
    pub message: String,
    pub hint: Option<String>,
    /// Offset of the document that the error is in, if it may lack its end.
    pub document_offset: Option<u64>,
}

impl OffsetError {
    /// Creates an error at `offset`.
    pub fn at(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            hint: None,
            document_offset: None,
        }
    }

    /// Adds a hint.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Adds the offset of the document that the error is in.
    pub fn in_document_at(self, offset: u64) -> Self {
        Self {
            document_offset: Some(offset),
            ..self
        }
    }
}
