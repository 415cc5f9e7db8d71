//! A secret → every spelling in which it is looked for.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode_byte, utf8_percent_encode};
use url::form_urlencoded::byte_serialize;

use super::Mask;

/// All that a URL may not hold as it is (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// What JavaScript's `encodeURIComponent` escapes.
const COMPONENT: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');
/// What Python's `quote` escapes.
const PATH: &AsciiSet = &RESERVED.remove(b'/');

/// A spelling of a secret.
pub(super) struct Form {
    pub(super) text: String,
    /// Of base64 only.
    pub(super) ends: Ends,
}

/// Whether the character before or behind a piece of base64 has bits of the secret, too, mixed with those of its
/// neighbours.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) before: bool,
    pub(super) behind: bool,
}

/// The longest text that is clipped somewhere, in characters.
const CLIPPED: usize = 400;

/// The spellings of a value: as it is, in JSON, in a URL, in base64.
pub(super) fn of(value: &str) -> Vec<Form> {
    let mut texts = named(value).to_vec();
    texts.extend(named(value).iter().flat_map(|name| clipped(name)));
    texts.extend(json(value));
    let sets = [NON_ALPHANUMERIC, RESERVED, COMPONENT, PATH];
    let encoded = sets.map(|set| utf8_percent_encode(value, set).to_string());
    texts.extend(encoded.into_iter().flat_map(both_cases));
    texts.extend(both_cases(byte_serialize(value.as_bytes()).collect()));
    let bytes = value.bytes().map(percent_encode_byte);
    texts.extend(both_cases(bytes.collect()));
    let plain = texts.into_iter().map(|text| Form {
        text,
        ends: Ends::default(),
    });
    plain.chain(base64(value)).collect()
}

/// As it stands in a JSON string, also of a writer that escapes slashes or all that is not ASCII.
fn json(value: &str) -> Vec<String> {
    let Ok(quoted) = serde_json::to_string(value) else {
        return Vec::new();
    };
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let ascii = |hex: fn(u16) -> String| -> String {
        let mut units = [0; 2];
        let spelled = escaped.chars().map(|c| match c {
            _ if c.is_ascii() => c.to_string(),
            _ => c
                .encode_utf16(&mut units)
                .iter()
                .map(|unit| hex(*unit))
                .collect(),
        });
        spelled.collect()
    };
    vec![
        escaped.replace('/', "\\/"),
        ascii(|unit| format!("\\u{unit:04x}")),
        ascii(|unit| format!("\\u{unit:04X}")),
        escaped,
    ]
}

/// As it stands where a text of toolq's names it: as it is, without control characters, and in a JSON pointer.
fn named(value: &str) -> [String; 4] {
    let pointer = value.replace('~', "~0").replace('/', "~1");
    let spelled = |text: &str| -> String {
        let spelled = text.chars().map(|c| match c {
            _ if c.is_control() => c.escape_unicode().to_string(),
            _ => c.to_string(),
        });
        spelled.collect()
    };
    [spelled(value), spelled(&pointer), pointer, value.to_owned()]
}

/// As it stands where a text was clipped in the midst of it: half a secret would be a secret told by half.
fn clipped(value: &str) -> impl Iterator<Item = String> {
    let ends = value.char_indices().map(|(end, _)| end).take(CLIPPED);
    let ends = ends.filter(|end| *end >= Mask::SHORTEST);
    ends.map(|end| format!("{}…", &value[..end]))
}

/// The text and the same with the digits of each `%2F` in lower case.
fn both_cases(encoded: String) -> [String; 2] {
    let mut digits = 0;
    let lower = encoded.chars().map(|c| {
        if c == '%' {
            digits = 2;
            return c;
        }
        let is_digit = digits > 0;
        digits -= usize::from(is_digit);
        if is_digit { c.to_ascii_lowercase() } else { c }
    });
    [lower.collect(), encoded]
}

/// The characters that depend on the value alone, wherever it begins in what was encoded.
fn base64(value: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for skip in 0..3 {
        let shifted = [&b"\0\0\0"[..skip], value.as_bytes()].concat();
        let (first, bits) = ((skip * 8).div_ceil(6), shifted.len() * 8);
        let ends = Ends {
            before: skip > 0,
            behind: !bits.is_multiple_of(6),
        };
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = alphabet.encode(&shifted);
            let piece = &encoded[first..bits / 6];
            let in_url = [RESERVED, NON_ALPHANUMERIC]
                .map(|set| utf8_percent_encode(piece, set).to_string())
                .map(both_cases);
            let texts = in_url.into_iter().flatten().chain([piece.to_owned()]);
            forms.extend(texts.map(|text| Form { text, ends }));
        }
    }
    forms
}

/// The digits of base64 that a URL may have to spell.
const SPELLED: [&[u8]; 6] = [b"%2B", b"%2b", b"%2F", b"%2f", b"%2D", b"%5F"];

/// How many bytes the digit of base64 takes that `bytes` end with.
pub(super) fn last_digit(bytes: &[u8]) -> usize {
    let spelled = SPELLED.iter().any(|digit| bytes.ends_with(digit));
    let digit = bytes.last().copied().is_some_and(is_digit);
    if spelled { 3 } else { usize::from(digit) }
}

/// How many bytes the digit of base64 takes that `bytes` begin with.
pub(super) fn first_digit(bytes: &[u8]) -> usize {
    let spelled = SPELLED.iter().any(|digit| bytes.starts_with(digit));
    let digit = bytes.first().copied().is_some_and(is_digit);
    if spelled { 3 } else { usize::from(digit) }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// How many bytes the padding takes that `bytes` begin with: two signs at most.
pub(super) fn padding(bytes: &[u8]) -> usize {
    let mut len = 0;
    for _ in 0..2 {
        let sign = [&b"="[..], b"%3D", b"%3d"].into_iter();
        let sign = sign.filter(|sign| bytes[len..].starts_with(sign));
        len += sign.map(<[u8]>::len).sum::<usize>();
    }
    len
}
