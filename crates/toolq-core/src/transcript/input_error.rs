//! Errors in an input, with their position and a hint for the user.

use std::fmt;
use std::io;

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
    pub(super) fn from_io(input_name: &str, what: &str, error: &io::Error) -> Self {
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
