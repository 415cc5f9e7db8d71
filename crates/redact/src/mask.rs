//! Replaces secrets in complete texts.
//!
//! `spellings` lists the ways a secret may be written, and `patterns` is the automaton over all of them. `decoder` and
//! `escapes` undo escapes. `scanner` looks for secrets in the raw and the decoded text at once, and skips (`skip`)
//! bytes that can't matter. `stream` replaces what was found.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::json_masks::quote_masks;
use crate::patterns::{Patterns, TooManySpellings};
use crate::scanner::SecretScanner;
use crate::spellings::{self, SecretSpelling, SpellingEdges};
use crate::stream::{MaskedPart, PendingText};

/// The replacement for a secret.
pub(crate) const MASKED: &str = "[masked]";

/// Replaces the values of secrets wherever they appear: verbatim, percent-encoded, base64-encoded, JSON-escaped (even
/// repeatedly), or written with HTML entities.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    pub(crate) scope: MaskScope,
}

/// What a mask replaces.
#[derive(Debug, Clone, Default)]
pub(crate) enum MaskScope {
    /// Nothing: there are no secrets.
    #[default]
    Nothing,
    /// Every secret.
    Secrets(Box<Patterns>),
    /// Every text as a whole: there are secrets, but no way to find them.
    Everything,
}

impl Mask {
    /// Values shorter than this many bytes are never masked: that would hide innocent text.
    pub const MIN_SECRET_BYTES: usize = spellings::MIN_SECRET_BYTES;

    /// Creates a mask for these values, which may be any bytes. Whitespace around a value is ignored, because programs often
    /// trim it. Each line of a value with several lines is a secret, too, because programs often indent them. If the values
    /// are too many or too large to be looked for, every text is masked as a whole.
    pub fn new<'a, V: AsRef<[u8]> + ?Sized + 'a>(values: impl IntoIterator<Item = &'a V>) -> Self {
        let values = values
            .into_iter()
            .flat_map(|value| parts_of_secret(value.as_ref()));
        let mut spellings: Vec<SecretSpelling> = values
            .filter(|value| value.len() >= Self::MIN_SECRET_BYTES)
            .flat_map(|value| spellings::all_spellings(&value))
            .collect();
        // Of two equal spellings, the one that matches more often stays.
        spellings.sort_by(|a, b| {
            let rank = |edges: &SpellingEdges| (edges.is_base64, edges.min_text_bytes);
            (&a.text, rank(&a.edges)).cmp(&(&b.text, rank(&b.edges)))
        });
        spellings.dedup_by(|a, b| a.text == b.text && a.edges.is_base64 == b.edges.is_base64);
        if spellings.is_empty() {
            return Self::default();
        }
        Self {
            scope: MaskScope::new(Patterns::new(&spellings)),
        }
    }

    /// Returns the text with every secret replaced by `[masked]`. The text is borrowed if it contains no secret.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let patterns = match &self.scope {
            MaskScope::Secrets(patterns) => patterns,
            MaskScope::Everything if !text.is_empty() => return Cow::Borrowed(MASKED),
            MaskScope::Everything | MaskScope::Nothing => return Cow::Borrowed(text),
        };
        let mut scanner = SecretScanner::new(patterns);
        scanner.push(patterns, text.as_bytes());
        scanner.finish(patterns);
        if scanner.is_clean() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut emit = |part: MaskedPart<'_>| masked.extend_from_slice(part.shown());
        PendingText::from_text(text).release(&mut scanner, usize::MAX, &mut emit);
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Returns the text with every secret covered by `[masked]` and as many `*` as it takes to keep its length, so that
    /// offsets into the text stay valid. Line breaks stay, too.
    pub fn cover<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let patterns = match &self.scope {
            MaskScope::Secrets(patterns) => patterns,
            MaskScope::Everything => return Cow::Owned(cover_all(text)),
            MaskScope::Nothing => return Cow::Borrowed(text),
        };
        let mut scanner = SecretScanner::new(patterns);
        scanner.push(patterns, text.as_bytes());
        scanner.finish(patterns);
        if scanner.is_clean() {
            return Cow::Borrowed(text);
        }
        let mut covered = Vec::with_capacity(text.len());
        let mut emit = |part: MaskedPart<'_>| {
            if let MaskedPart::Text { start, bytes } = part {
                cover_bytes(&text.as_bytes()[covered.len()..start], &mut covered);
                covered.extend_from_slice(bytes);
            }
        };
        PendingText::from_text(text).release(&mut scanner, usize::MAX, &mut emit);
        cover_bytes(&text.as_bytes()[covered.len()..], &mut covered);
        // A secret may be a part of a character.
        Cow::Owned(String::from_utf8(covered).unwrap_or_else(|_| cover_all(text)))
    }

    /// Masks a JSON text and keeps it valid JSON: a secret that wasn't inside a string, a number for example, becomes a
    /// string.
    pub fn apply_to_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let masked = self.apply(json);
        if *masked == *json {
            return masked;
        }
        let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
        if is_json(&masked) {
            return masked;
        }
        let quoted = quote_masks(&masked);
        if is_json(&quoted) {
            return Cow::Owned(quoted);
        }
        // A secret reached beyond one value.
        Cow::Owned(serde_json::Value::from(masked).to_string())
    }

    /// Returns how many bytes of `text`, which is still arriving, may be shown: everything up to a possible start of a
    /// secret at its end, verbatim or escaped.
    pub fn safe_prefix_len(&self, text: &str) -> usize {
        let patterns = match &self.scope {
            MaskScope::Secrets(patterns) => patterns,
            MaskScope::Everything => return 0,
            MaskScope::Nothing => return text.len(),
        };
        let mut scanner = SecretScanner::new(patterns);
        scanner.push(patterns, text.as_bytes());
        let safe_until = text.floor_char_boundary(scanner.safe_until(patterns));
        // The base64 digit before a match also carries bits of the secret.
        let without_digit = |end: usize| end - spellings::last_digit_len(&text.as_bytes()[..end]);
        let mut shown = without_digit(safe_until);
        // What begins before one secret may end in another.
        while let Some(found) = scanner.match_at(shown) {
            // The digit ends a secret, which can be recognized only as a whole.
            if found.end <= safe_until && scanner.match_at(found.end).is_none() {
                return found.end;
            }
            let before = without_digit(found.start);
            if before == shown {
                break;
            }
            shown = before;
        }
        shown
    }
}

fn cover_all(text: &str) -> String {
    let mut covered = Vec::with_capacity(text.len());
    cover_bytes(text.as_bytes(), &mut covered);
    String::from_utf8_lossy(&covered).into_owned()
}

/// Adds as many bytes as `secret` has.
fn cover_bytes(secret: &[u8], covered: &mut Vec<u8>) {
    let mut cover = MASKED.bytes().chain(std::iter::repeat(b'*'));
    covered.extend(secret.iter().map(|byte| match byte {
        b'\n' | b'\r' => *byte,
        _ => cover.next().unwrap_or(b'*'),
    }));
}

impl MaskScope {
    fn new(patterns: Result<Patterns, TooManySpellings>) -> Self {
        match patterns {
            Ok(patterns) => Self::Secrets(Box::new(patterns)),
            Err(TooManySpellings) => Self::Everything,
        }
    }
}

// The parts of a secret that are secrets themselves: the lines of a key, for example.

/// Lines shorter than this many bytes aren't looked for by themselves: that would hide innocent text.
const MIN_LINE_BYTES: usize = 8;
/// What the first and the last line of a PEM file begin with. They are the same in all such files.
const PEM_FRAME: &str = "-----";

/// Returns what to look for if this value is secret: the value, and, if it has several lines, each of them and all of them
/// joined, because programs indent, prefix, wrap and join lines. A value that isn't valid UTF-8 is also looked for as it
/// is displayed, with U+FFFD.
fn parts_of_secret(value: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(value);
    let mut parts = vec![text.trim().as_bytes().to_vec()];
    if text.as_bytes() != value {
        parts.push(value.trim_ascii().to_vec());
    }
    // Variables often hold line breaks as `\n`, which programs turn into real ones.
    let text = text.replace("\\r", "\r").replace("\\n", "\n");
    let lines: Vec<&str> = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.len() < 2 {
        return parts;
    }
    let body: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.starts_with(PEM_FRAME))
        .collect();
    let joined = [
        lines.join(""),
        lines.join(" "),
        lines.join("\r\n"),
        body.join(""),
        body.join(" "),
    ];
    let long_lines = body.iter().filter(|line| line.len() >= MIN_LINE_BYTES);
    parts.extend(long_lines.map(|line| line.as_bytes().to_vec()));
    parts.extend(joined.map(String::into_bytes));
    parts
}
