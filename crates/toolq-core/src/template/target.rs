//! Where a value may end up, and what it must not contain there.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything except the unreserved characters of RFC 3986, section 2.3.
const URL_ESCAPE_SET: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The kind of place that a value is put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateTarget {
    /// An argument of a program.
    Argument,
    /// An environment variable of a program.
    EnvVariable,
    /// A part of a URL.
    Url,
    /// A header of a request.
    Header,
    /// Text without rules of its own: standard input, a query pair (encoded when it is sent), or a string in a JSON
    /// body.
    Text,
}

impl TemplateTarget {
    /// Encodes a value for this place.
    ///
    /// # Errors
    /// Why the value isn't allowed there, as the continuation of a sentence.
    pub(crate) fn encode(self, value: String) -> Result<String, &'static str> {
        match self {
            Self::Argument if value.contains('\0') => {
                Err("contains a NUL character, which an argument can't")
            }
            Self::EnvVariable if value.contains('\0') => {
                Err("contains a NUL character, which an environment variable can't")
            }
            Self::Header
                if !value
                    .bytes()
                    .all(|byte| matches!(byte, b' '..=b'~' | b'\t')) =>
            {
                Err("is sent in a header, which allows only visible ASCII, spaces and tabs")
            }
            Self::Url => Ok(utf8_percent_encode(&value, URL_ESCAPE_SET).to_string()),
            _ => Ok(value),
        }
    }
}
