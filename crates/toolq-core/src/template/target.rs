//! Where a value may end up, and what it must not hold there.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986, section 2.3.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A kind of place for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    /// An argument of a program.
    Argument,
    /// A variable of a program's environment.
    Variable,
    /// A part of a URL.
    Url,
    /// A header of a request.
    Header,
    /// A text with no rules of its own: standard input, a query pair (encoded when it is sent), a string in a JSON body.
    Text,
}

impl Sink {
    /// The value as it stands there.
    ///
    /// # Errors
    /// Why it can't.
    pub(crate) fn admitted(self, value: String) -> Result<String, &'static str> {
        match self {
            Self::Argument if value.contains('\0') => {
                Err("holds a NUL character, which no argument can")
            }
            Self::Variable if value.contains('\0') => {
                Err("holds a NUL character, which no environment variable can")
            }
            Self::Header
                if !value
                    .bytes()
                    .all(|byte| matches!(byte, b' '..=b'~' | b'\t')) =>
            {
                Err("is sent as a header, where only visible ASCII characters and spaces may stand")
            }
            Self::Url => Ok(utf8_percent_encode(&value, SEGMENT).to_string()),
            _ => Ok(value),
        }
    }
}
