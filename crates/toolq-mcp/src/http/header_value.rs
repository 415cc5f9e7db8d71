//! Values in headers: as they are if they are plain text, and in Base64 otherwise.

use std::borrow::Cow;

use data_encoding::BASE64;

const BASE64_PREFIX: &str = "=?base64?";
const BASE64_SUFFIX: &str = "?=";

/// Returns the value of a header that says `text`.
pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    if is_plain && !is_padded && encoded_part(text).is_none() {
        return Cow::Borrowed(text);
    }
    let encoded = BASE64.encode(text.as_bytes());
    Cow::Owned(format!("{BASE64_PREFIX}{encoded}{BASE64_SUFFIX}"))
}

/// Returns what the value of a header says, or `None` if it isn't Base64 although it should be.
pub fn decode_header_value(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = encoded_part(value) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = BASE64.decode(encoded.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn encoded_part(value: &str) -> Option<&str> {
    value
        .strip_prefix(BASE64_PREFIX)?
        .strip_suffix(BASE64_SUFFIX)
}
