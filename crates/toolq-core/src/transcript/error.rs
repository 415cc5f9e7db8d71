//! What is wrong with an input: said to people, with its place and its cure.

use std::fmt;
use std::io;

/// An input that can't be read, or is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The input's name, as it is shown to people.
    pub source: String,
    /// Where; none where the bytes themselves could not be had.
    pub place: Option<Place>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// A place in a text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Lines end at `\n`.
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl InputError {
    /// The operating system refused `what`.
    pub(super) fn io(source: &str, what: &str, error: &io::Error) -> Self {
        Self {
            source: source.to_owned(),
            place: None,
            message: format!("{what}: {error}"),
            hint: None,
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place { line, column }) => {
                write!(f, "{}:{line}:{column}: {}", self.source, self.message)
            }
            None => write!(f, "{}: {}", self.source, self.message),
        }
    }
}

impl std::error::Error for InputError {}

/// What is wrong at one byte of an input: an [`InputError`] before anybody counted lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Counted from the input's first byte.
    pub offset: u64,
    pub message: String,
    pub hint: Option<String>,
    /// Where the document begins that could not be read on.
    pub since: Option<u64>,
}

impl Fault {
    /// What is wrong at `offset`.
    pub fn at(offset: u64, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            hint: None,
            since: None,
        }
    }

    /// The same with what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The same, in a document that begins at `offset`.
    pub fn since(self, offset: u64) -> Self {
        Self {
            since: Some(offset),
            ..self
        }
    }
}
