//! A secret → every spelling in which it is looked for, in a text and in what it says.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::decoder::{View, said};

/// Values shorter than this, in bytes, are never masked: they would hide innocent text.
pub(crate) const SHORTEST: usize = 6;

/// A spelling of a secret.
pub(crate) struct Form {
    pub(crate) text: Vec<u8>,
    pub(crate) ends: Ends,
}

/// Of base64: whether the character before or behind a piece of it has bits of the secret, too, mixed with those of its
/// neighbours.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub(crate) is_base64: bool,
    pub(crate) before: bool,
    pub(crate) behind: bool,
}

/// The longest text that is clipped somewhere, in characters.
const CLIPPED: usize = 400;

/// The spellings of a value that reading escapes does not make alike.
pub(crate) fn of(value: &str) -> Vec<Form> {
    let mut texts = named(value).to_vec();
    texts.extend(quoted(value));
    let read = texts.iter().flat_map(|text| read(text)).collect::<Vec<_>>();
    texts.extend(named(value).iter().flat_map(|name| clipped(name)));
    let texts = texts.into_iter().map(String::into_bytes);
    let plain = texts.chain(read).map(|text| Form {
        text,
        ends: Ends::default(),
    });
    plain.chain(base64(value)).collect()
}

/// What readings make of a spelling: all of them where it stands as it is, and those that are left where it was escaped
/// once or twice, or written for a URL. Also behind a backslash that is none of it but takes its first letter along. What
/// gets short by it would hide innocent text.
fn read(text: &str) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for text in [text, &format!("\\{text}")] {
        for first in 0..3 {
            texts.push(said(text, first..View::STAGES));
            texts.push(said(text, first..View::STAGES - 1));
        }
    }
    texts.retain(|text| text.len() >= SHORTEST);
    texts
}

/// As it stands between quotes: in JSON, where it is escaped again by others, and in a shell, in YAML, in CSV.
fn quoted(value: &str) -> Vec<String> {
    let mut quoted: Vec<String> = [
        ("'", r"'\''"),
        ("'", "'\"'\"'"),
        ("'", "''"),
        ("\"", "\"\""),
        (" ", "+"),
    ]
    .into_iter()
    .map(|(sign, spelled)| value.replace(sign, spelled))
    .collect();
    if let Ok(json) = serde_json::to_string(value) {
        quoted.push(json[1..json.len() - 1].to_owned());
    }
    quoted
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
    let ends = ends.filter(|end| *end >= SHORTEST);
    ends.map(|end| format!("{}…", &value[..end]))
}

/// The characters that depend on the value alone, wherever it begins in what was encoded.
fn base64(value: &str) -> Vec<Form> {
    let mut forms = Vec::new();
    for skip in 0..3 {
        let shifted = [&b"\0\0\0"[..skip], value.as_bytes()].concat();
        let (first, bits) = ((skip * 8).div_ceil(6), shifted.len() * 8);
        let ends = Ends {
            is_base64: true,
            before: skip > 0,
            behind: !bits.is_multiple_of(6),
        };
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = alphabet.encode(&shifted);
            let text = encoded.as_bytes()[first..bits / 6].to_vec();
            forms.push(Form { text, ends });
        }
    }
    forms
}

/// The digits of base64 that a URL may have to spell.
const SPELLED: [&[u8]; 6] = [b"%2B", b"%2b", b"%2F", b"%2f", b"%2D", b"%5F"];

/// How many bytes the digit of base64 takes that `bytes` end with.
pub(crate) fn last_digit(bytes: &[u8]) -> usize {
    let spelled = SPELLED.iter().any(|digit| bytes.ends_with(digit));
    let digit = bytes.last().copied().is_some_and(is_digit);
    if spelled { 3 } else { usize::from(digit) }
}

/// How many bytes the digit of base64 takes that `bytes` begin with.
pub(crate) fn first_digit(bytes: &[u8]) -> usize {
    let spelled = SPELLED.iter().any(|digit| bytes.starts_with(digit));
    let digit = bytes.first().copied().is_some_and(is_digit);
    if spelled { 3 } else { usize::from(digit) }
}

/// Whether this is a digit of base64.
pub(crate) fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// How many bytes the padding takes that `bytes` begin with: two signs at most.
pub(crate) fn padding(bytes: &[u8]) -> usize {
    let mut len = 0;
    for _ in 0..2 {
        let sign = [&b"="[..], b"%3D", b"%3d"].into_iter();
        let sign = sign.filter(|sign| bytes[len..].starts_with(sign));
        len += sign.map(<[u8]>::len).sum::<usize>();
    }
    len
}
