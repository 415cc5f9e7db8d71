//! Bytes that say what they are: what may be passed over without being read in more than one way.

use memchr::{memchr2_iter, memchr3_iter};

use crate::patterns::Needles;
use crate::spellings::is_digit;

/// Fewer digits of base64 are no line of it. Writers break lines at 64 or 76.
pub(crate) const LINE: usize = 16;
/// How many backslashes a quote has in JSON in JSON in JSON.
const DEEP: usize = 7;

/// Up to where bytes say what they are, and no line of base64 ends. `before` digits of it came before them.
pub(crate) fn telling(bytes: &[u8], before: usize) -> usize {
    let mut escapes = memchr3_iter(b'\\', b'%', b'&', bytes);
    let escape = escapes.find(|at| is_escape(bytes[*at], &bytes[at + 1..]));
    let plain = &bytes[..escape.unwrap_or(bytes.len())];
    let mut breaks = memchr2_iter(b'\n', b'\r', plain);
    let end = breaks.find(|at| digits(&plain[..*at], before) >= LINE);
    end.unwrap_or(plain.len())
}

/// Whether an escape may begin with `byte`, where `rest` follows.
pub(crate) fn is_escape(byte: u8, rest: &[u8]) -> bool {
    match (byte, rest.first()) {
        (b'\\', _) | (b'%' | b'&', None) => true,
        (b'%', Some(next)) => next.is_ascii_hexdigit() || *next == b'\\',
        (b'&', Some(next)) => b"#algq\\".contains(next),
        _ => false,
    }
}

/// How many bytes an escaped quote takes, however often it was escaped, where no needle begins in it whatever is made of
/// it: JSON is full of them.
pub(crate) fn dull(needles: &Needles, bytes: &[u8]) -> Option<usize> {
    let run = bytes
        .iter()
        .take_while(|byte| **byte == b'\\')
        .take(DEEP)
        .count();
    let is_quote = run > 0 && bytes.get(run) == Some(&b'"');
    let is_dull = is_quote && needles.is_idle(b'"') && needles.is_idle(b'\\');
    is_dull.then_some(run + 1)
}

/// How many digits of base64 `bytes` end with, but for more than a line needs; `before` came before them.
pub(crate) fn digits(bytes: &[u8], before: usize) -> usize {
    let last = bytes.iter().rev().take(LINE);
    let digits = last.take_while(|byte| is_digit(**byte)).count();
    if digits == bytes.len() {
        digits + before
    } else {
        digits
    }
}

/// Whether lines end here.
pub(crate) fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
