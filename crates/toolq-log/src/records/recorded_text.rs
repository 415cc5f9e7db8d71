//! Masks and shortens texts that go into metadata.

use std::borrow::Cow;

use crate::records::line::sha256_hex;
use redact::Mask;

/// Longest text that metadata holds whole, in bytes. Metadata is never stored in a file, so it has to be small.
const MAX_TEXT_BYTES: usize = 512;
/// How much of a longer text is kept, in bytes.
const TRUNCATED_TEXT_BYTES: usize = 400;

/// Returns the form in which metadata holds a text that toolq didn't choose, such as an id, a tool name or an error. Its
/// secrets are masked. Of a text longer than 512 bytes, only the beginning is kept, with the length and digest of the
/// whole text so that it can still be distinguished from others.
pub(crate) fn recorded_text<'a>(text: &'a str, mask: &Mask) -> Cow<'a, str> {
    let whole = mask.apply(text);
    if whole.len() <= MAX_TEXT_BYTES {
        return whole;
    }
    let kept = &whole[..whole.floor_char_boundary(TRUNCATED_TEXT_BYTES)];
    let (bytes, digest) = (whole.len(), sha256_hex(whole.as_bytes()));
    Cow::Owned(format!("{kept}… ({bytes} bytes, sha256 {digest})"))
}

/// Returns whether metadata has only part of this text.
pub(crate) fn is_truncated(text: &str, mask: &Mask) -> bool {
    mask.apply(text).len() > MAX_TEXT_BYTES
}
