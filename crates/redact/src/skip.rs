//! Finds plain bytes, which decode to themselves and so needn't be read in more than one view.

use memchr::{memchr2_iter, memchr3_iter};

use crate::patterns::Patterns;
use crate::spellings::is_base64_digit;

/// Fewer base64 digits than this don't count as a line of base64. Encoders wrap lines at 64 or 76.
pub(crate) const MIN_BASE64_LINE_DIGITS: usize = 16;
/// Number of backslashes before a quote in JSON in JSON in JSON.
const MAX_QUOTE_BACKSLASHES: usize = 7;

/// Returns the length of the plain prefix in which no base64 line ends. `digits_before` base64 digits came before it.
pub(crate) fn plain_prefix_len(bytes: &[u8], digits_before: usize) -> usize {
    let mut escapes = memchr3_iter(b'\\', b'%', b'&', bytes);
    let escape = escapes.find(|at| may_begin_escape(bytes[*at], &bytes[at + 1..]));
    let plain = &bytes[..escape.unwrap_or(bytes.len())];
    let mut breaks = memchr2_iter(b'\n', b'\r', plain);
    let line_end = breaks
        .find(|at| trailing_base64_digits(&plain[..*at], digits_before) >= MIN_BASE64_LINE_DIGITS);
    line_end.unwrap_or(plain.len())
}

/// Returns whether `byte`, followed by `rest`, may start an escape.
pub(crate) fn may_begin_escape(byte: u8, rest: &[u8]) -> bool {
    match (byte, rest.first()) {
        (b'\\', _) | (b'%' | b'&', None) => true,
        (b'%', Some(next)) => next.is_ascii_hexdigit() || b"\\&".contains(next),
        (b'&', Some(next)) => next.is_ascii_alphabetic() || b"#\\".contains(next),
        _ => false,
    }
}

/// Returns the length of a quote with up to [`MAX_QUOTE_BACKSLASHES`] backslashes, if no pattern can start in it. JSON
/// is full of such quotes.
pub(crate) fn escaped_quote_len(patterns: &Patterns, bytes: &[u8]) -> Option<usize> {
    let backslashes = bytes
        .iter()
        .take_while(|byte| **byte == b'\\')
        .take(MAX_QUOTE_BACKSLASHES)
        .count();
    let is_quote = bytes.get(backslashes) == Some(&b'"');
    let is_skippable =
        is_quote && patterns.starts_no_pattern(b'"') && patterns.starts_no_pattern(b'\\');
    is_skippable.then_some(backslashes + 1)
}

/// Counts the base64 digits that `bytes` end with, up to [`MIN_BASE64_LINE_DIGITS`]. If all bytes are digits, adds
/// `digits_before`.
pub(crate) fn trailing_base64_digits(bytes: &[u8], digits_before: usize) -> usize {
    let last = bytes.iter().rev().take(MIN_BASE64_LINE_DIGITS);
    let digits = last.take_while(|byte| is_base64_digit(**byte)).count();
    if digits == bytes.len() {
        digits + digits_before
    } else {
        digits
    }
}

/// Returns whether this byte ends a line.
pub(crate) fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_begins_an_escape_only_before_what_may_continue_it() {
        for begin in [
            "\\", "\\q", "%", "%4", "%f", "%\\", "%&", "&", "&#", "&lt;", "&E", "&\\",
        ] {
            assert!(
                may_begin_escape(begin.as_bytes()[0], &begin.as_bytes()[1..]),
                "{begin}"
            );
        }
        for innocent in ["% ", "%g", "%%", "& ", "&&", "&1", "#", "a"] {
            let (sign, rest) = innocent.as_bytes().split_at(1);
            assert!(!may_begin_escape(sign[0], rest), "{innocent}");
        }
    }

    #[test]
    fn a_text_is_plain_up_to_its_first_escape_or_the_end_of_a_base64_line() {
        let line = "A".repeat(MIN_BASE64_LINE_DIGITS);
        let (short, long) = (&line[1..], &line[..]);
        for (plain, rest) in [
            ("an innocent text: 100 % & more\n", ""),
            ("an innocent text: 100 % & more\n", "%41"),
            (&format!("{short}\n\r{short}!"), r"\n"),
            (&format!("{short}\n{long}"), "\n"),
            (&format!("!{long}"), "\r\n"),
        ] {
            let text = format!("{plain}{rest}");
            assert_eq!(plain_prefix_len(text.as_bytes(), 0), plain.len(), "{text}");
        }
        // With the digit before it, the line is long enough.
        let text = format!("{short}\n");
        assert_eq!(plain_prefix_len(text.as_bytes(), 1), short.len());
    }
}
