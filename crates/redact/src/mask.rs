//! Replaces secrets in complete texts.
//!
//! `spellings` lists the ways a secret may be written, and `patterns` is the automaton over all of them. `decoder` and
//! `escapes` undo escapes. `scanner` looks for secrets in the raw and the decoded text at once, and skips (`skip`)
//! bytes that can't matter. `stream` replaces what was found.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::patterns::Patterns;
use crate::scanner::SecretScanner;
use crate::spellings;
use crate::spellings::SecretSpelling;
use crate::stream::PendingText;

/// The replacement for a secret.
pub(crate) const MASKED: &str = "[masked]";

/// Replaces the values of secrets wherever they appear: verbatim, percent-encoded, base64-encoded, JSON-escaped (even
/// repeatedly), or written with HTML entities.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    pub(crate) patterns: Option<Patterns>,
}

impl Mask {
    /// Values shorter than this many bytes are never masked: that would hide innocent text.
    pub const MIN_SECRET_BYTES: usize = spellings::MIN_SECRET_BYTES;

    /// Creates a mask for these values. Whitespace around a value is ignored, because programs often trim it.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(str::trim);
        let mut spellings: Vec<SecretSpelling> = values
            .filter(|value| value.len() >= Self::MIN_SECRET_BYTES)
            .flat_map(spellings::all_spellings)
            .collect();
        spellings.sort_by(|a, b| (&a.text, a.edges.is_base64).cmp(&(&b.text, b.edges.is_base64)));
        spellings.dedup_by(|a, b| a.text == b.text && a.edges.is_base64 == b.edges.is_base64);
        let patterns = Patterns::new(&spellings);
        Self { patterns }
    }

    /// Returns the text with every secret replaced by `[masked]`; borrowed if it contains none.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(patterns) = &self.patterns else {
            return Cow::Borrowed(text);
        };
        let mut scanner = SecretScanner::new(patterns);
        scanner.push(patterns, text.as_bytes());
        scanner.finish(patterns);
        if scanner.is_clean() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut emit = |bytes: &[u8]| masked.extend_from_slice(bytes);
        PendingText::from_text(text).release(&mut scanner, usize::MAX, &mut emit);
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Masks a JSON text and keeps it valid JSON. If a secret wasn't inside a string (a number, for example), the whole
    /// masked text becomes one JSON string.
    pub fn apply_to_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let masked = self.apply(json);
        if matches!(masked, Cow::Owned(_)) && serde_json::from_str::<IgnoredAny>(&masked).is_err() {
            return Cow::Owned(serde_json::Value::from(masked).to_string());
        }
        masked
    }

    /// Returns how many bytes of `text`, which is still arriving, may be shown: everything up to a possible start of a
    /// secret at its end, verbatim or escaped.
    pub fn safe_prefix_len(&self, text: &str) -> usize {
        let Some(patterns) = &self.patterns else {
            return text.len();
        };
        let mut scanner = SecretScanner::new(patterns);
        scanner.push(patterns, text.as_bytes());
        let safe_until = text.floor_char_boundary(scanner.safe_until(patterns));
        // The base64 digit before a match also carries bits of the secret.
        safe_until - spellings::last_digit_len(&text.as_bytes()[..safe_until])
    }
}
