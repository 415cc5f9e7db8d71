//! Masking: a secret never appears in any of the encodings that the documentation lists, whole or in pieces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use redact::{Mask, MaskedStream};

use crate::choices::{Choices, cut_at_random};

/// Maximum length of a secret. Looking for a longer one takes much longer to prepare.
const MAX_SECRET_CHARS: usize = 16;
const MASKED: &str = "[masked]";
/// How many bytes or escapes of an encoded secret may be left: what was encoded with it as base64, or an escape at its edge.
const MAX_LEFT_UNITS: usize = 16;
/// The characters of secrets: ordinary ones, and those that encodings treat in a special way.
const SECRET_CHARS: [char; 40] = [
    'a', 'b', 'c', 'd', 'e', 'k', 'n', 'q', 's', 't', 'u', 'x', 'A', 'B', 'Z', '0', '1', '4', '9',
    '-', '_', '.', '+', '/', '=', '%', '&', '<', '>', '"', '\'', ' ', '#', ';', '~', '$', 'é', '€',
    '😀', '\u{1}',
];
/// Texts around a secret.
const SURROUNDINGS: [&str; 8] = ["", " ", "\"", "key: ", "\n", "é", "{\"a\":\"", "x="];
/// Secrets for texts that consist of the bytes of the fuzzer.
const FIXED_SECRETS: [&str; 3] = ["s3cr3t-value", "p&ss \"w0rd\"", "aaaaaaab"];

/// How many masks are kept, since making one takes much longer than its use. The fuzzer often changes only the encoding.
const MAX_MASKS: usize = 64;

static FIXED_MASK: LazyLock<Arc<Mask>> = LazyLock::new(|| Arc::new(Mask::new(FIXED_SECRETS)));

thread_local! {
    static MASKS: RefCell<BTreeMap<String, Arc<Mask>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Masks a secret in some encoding, or the bytes themselves.
pub fn masking(data: &[u8]) {
    let mut choices = Choices::new(data);
    if choices.byte() == 0 {
        check_encoded_secret(&mut choices);
    } else {
        check_text(&String::from_utf8_lossy(data));
    }
}

/// A text is masked in pieces as it is whole, and JSON stays JSON.
fn check_text(text: &str) {
    let mask = &*FIXED_MASK;
    let masked = mask.apply(text);
    for secret in FIXED_SECRETS {
        assert!(!masked.contains(secret), "{secret} remains in {masked}");
    }
    assert_eq!(mask_in_pieces(mask, text), masked, "{text}");
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json(text) {
        let masked = mask.apply_to_json(text);
        assert!(is_json(&masked), "{text} became {masked}");
    }
    let shown = mask.safe_prefix_len(text);
    let prefix = &text[..shown];
    assert!(
        masked.starts_with(&*mask.apply(prefix)),
        "{prefix} may not be shown yet"
    );
}

fn mask_in_pieces(mask: &Arc<Mask>, text: &str) -> String {
    let mut stream = MaskedStream::new(Arc::clone(mask));
    let mut masked = Vec::new();
    for piece in cut_at_random(text.as_bytes()) {
        stream.push(piece, |bytes| masked.extend_from_slice(bytes));
    }
    stream.finish(|bytes| masked.extend_from_slice(bytes));
    String::from_utf8(masked).unwrap()
}

fn check_encoded_secret(choices: &mut Choices<'_>) {
    let length = 6 + choices.below(MAX_SECRET_CHARS - 5);
    let secret: String = (0..length).map(|_| *choices.pick(&SECRET_CHARS)).collect();
    // Whitespace around a value isn't a part of it.
    if secret.trim().len() < 6 || secret.trim() != secret {
        return;
    }
    let (before, after) = (*choices.pick(&SURROUNDINGS), *choices.pick(&SURROUNDINGS));
    let encoded = encode(&secret, choices);
    let text = format!("{before}{encoded}{after}");
    let mask = mask_of(&secret);
    let masked = mask.apply(&text);
    assert!(
        masked.contains(MASKED),
        "{secret:?} isn't masked in {text:?}"
    );
    assert!(
        !masked.contains(&*encoded),
        "{secret:?} remains in {masked:?}"
    );
    assert!(
        !masked.contains(&*secret),
        "{secret:?} remains in {masked:?}"
    );
    // What is left of it, apart from characters at its edges that belong to the encoding.
    let rest = masked.replacen(MASKED, "", 1);
    let kept = before.len() + after.len();
    assert!(
        count_units(&rest) <= kept + MAX_LEFT_UNITS,
        "{secret:?} is left in part: {masked:?} of {text:?}"
    );
    assert_eq!(mask_in_pieces(&mask, &text), masked, "{text:?}");
}

fn mask_of(secret: &str) -> Arc<Mask> {
    MASKS.with_borrow_mut(|masks| {
        if masks.len() >= MAX_MASKS && !masks.contains_key(secret) {
            masks.clear();
        }
        let mask = masks.entry(secret.to_owned());
        Arc::clone(mask.or_insert_with(|| Arc::new(Mask::new([secret]))))
    })
}

/// Counts the bytes of a text, and each escape like `\\u0041` as one.
fn count_units(text: &str) -> usize {
    text.len().saturating_sub(5 * text.matches("\\u00").count())
}

/// Encodes a secret in one of the documented ways.
fn encode(secret: &str, choices: &mut Choices<'_>) -> String {
    match choices.below(12) {
        0 => secret.to_owned(),
        1 => escape_json(secret, choices),
        2 => {
            let inner = escape_json(secret, choices);
            escape_json(&inner, choices)
        }
        3 => secret.replace('\'', "'\\''"),
        4 => secret.replace('\'', "'\"'\"'"),
        5 => secret.replace('\'', "''"),
        6 => secret.replace('"', "\"\""),
        7 => escape_hex(secret, choices),
        8 => encode_url(secret, choices),
        9 => encode_html(secret, choices),
        10 => encode_base64(secret, choices),
        _ => {
            let inner = match choices.below(3) {
                0 => encode_url(secret, choices),
                1 => encode_html(secret, choices),
                _ => encode_base64(secret, choices),
            };
            escape_json(&inner, choices)
        }
    }
}

/// Escapes a text as JSON does. Some characters that needn't be escaped are.
fn escape_json(text: &str, choices: &mut Choices<'_>) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        let must_escape = c.is_control() || matches!(c, '"' | '\\');
        match (c, choices.byte() % 4) {
            (_, 0 | 1) if !must_escape => escaped.push(c),
            ('"' | '\\' | '/', 0..3) => escaped.extend(['\\', c]),
            ('\n', 0..3) => escaped += "\\n",
            ('\r', 0..3) => escaped += "\\r",
            (_, choice) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = match choice {
                        3 => write!(escaped, "\\u{unit:04X}"),
                        _ => write!(escaped, "\\u{unit:04x}"),
                    };
                }
            }
        }
    }
    escaped
}

/// Writes some characters as `\x26`.
fn escape_hex(text: &str, choices: &mut Choices<'_>) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii() && choices.flag() {
            let _ = write!(escaped, "\\x{:02x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Percent-encodes a text. Some characters that needn't be encoded are.
fn encode_url(text: &str, choices: &mut Choices<'_>) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let _ = match choices.byte() % 4 {
            0..3 if is_unreserved => write!(encoded, "{}", char::from(byte)),
            0 => write!(encoded, "%{byte:02x}"),
            _ => write!(encoded, "%{byte:02X}"),
        };
    }
    encoded
}

/// Writes a text as HTML. Some characters that needn't be entities are.
fn encode_html(text: &str, choices: &mut Choices<'_>) -> String {
    let mut encoded = String::new();
    for c in text.chars() {
        let name = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            _ => "",
        };
        let _ = match choices.byte() % 8 {
            0 => write!(encoded, "&#{};", u32::from(c)),
            1 => write!(encoded, "&#x{:x};", u32::from(c)),
            2 => write!(encoded, "&#x{:X};", u32::from(c)),
            _ if name.is_empty() => write!(encoded, "{c}"),
            _ => write!(encoded, "{name}"),
        };
    }
    encoded
}

/// Encodes a secret together with what surrounds it, in either alphabet, on one line or several.
fn encode_base64(secret: &str, choices: &mut Choices<'_>) -> String {
    let around = |length: usize| "\0".repeat(length);
    let whole = format!(
        "{}{secret}{}",
        around(choices.below(4)),
        around(choices.below(4))
    );
    let alphabet = if choices.flag() { URL_SAFE } else { STANDARD };
    let encoded = alphabet.encode(whole);
    let width = *choices.pick(&[usize::MAX, 60, 64, 76]);
    let line_end = *choices.pick(&["\n", "\r\n"]);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(width)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    lines.join(line_end)
}
