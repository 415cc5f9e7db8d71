//! Replaces secrets in complete texts.
//!
//! `spellings` lists the ways a secret may be written, and has the automaton over all of them. `decoder` undoes escapes.
//! `scanner` looks for secrets in the raw and the decoded text at once.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::scanner::SecretScanner;
use crate::spellings::{self, Patterns, SecretSpelling, SpellingEdges, TooManySpellings};

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

// Keeps masked JSON valid: what was masked outside a string becomes a string.

/// Quotes every value outside of strings that contains a mask. `json` was valid JSON before it was masked.
fn quote_masks(json: &str) -> String {
    let mut quoted = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => string_len(rest),
            _ => scalar_len(rest).max(first.len_utf8()),
        };
        let (token, tail) = rest.split_at(len);
        let is_masked_scalar = first != '"' && token.contains(MASKED);
        let quote = if is_masked_scalar { "\"" } else { "" };
        quoted.extend([quote, token, quote]);
        rest = tail;
    }
    quoted
}

/// Returns the length of the string that `json` starts with, quotes included.
fn string_len(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Returns the length of the number, literal or mask that `json` starts with; 0 if it starts with another token.
fn scalar_len(json: &str) -> usize {
    let mut len = 0;
    loop {
        let rest = &json[len..];
        if rest.starts_with(MASKED) {
            len += MASKED.len();
        } else if let Some(byte) = rest.bytes().next()
            && (byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            len += 1;
        } else {
            return len;
        }
    }
}

// Replaces secrets in texts that arrive in pieces.

/// How many bytes the base64 of a secret may extend before and after a match: one digit before it, one digit and the
/// padding after it. In a URL, digits are written as `%2B` or `%2F`, and the padding as `%3D%3D`.
const MAX_BYTES_BEFORE: usize = 3;
const MAX_BYTES_AFTER: usize = 9;

/// Replaces secrets in a stream of bytes, including those split across pieces. Apply it before anything is cut from the
/// stream or written to a file: at a cut, half a secret would remain, which can't be recognized anymore.
#[derive(Debug)]
pub struct MaskedStream {
    mask: Arc<Mask>,
    /// `None` if no secrets are looked for. On the heap, since it takes kilobytes that most streams don't need.
    scanner: Option<Box<SecretScanner>>,
    /// The last bytes received: a secret may start in them.
    pending: PendingText,
    /// How many bytes of `pending` were scanned.
    scanned_bytes: usize,
}

impl MaskedStream {
    /// Creates a stream that has received nothing yet.
    pub fn new(mask: Arc<Mask>) -> Self {
        Self {
            scanner: match &mask.scope {
                MaskScope::Secrets(patterns) => Some(Box::new(SecretScanner::new(patterns))),
                MaskScope::Nothing | MaskScope::Everything => None,
            },
            mask,
            pending: PendingText::default(),
            scanned_bytes: 0,
        }
    }

    /// Reads the next bytes, and emits the masked text as far as it is certain.
    pub fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(&[u8])) {
        let (scanner, patterns) = match (&mut self.scanner, &self.mask.scope) {
            (Some(scanner), MaskScope::Secrets(patterns)) => (scanner, patterns),
            (_, MaskScope::Everything) => {
                // A single replacement is emitted for the whole stream.
                if !bytes.is_empty() && self.scanned_bytes == 0 {
                    self.scanned_bytes = bytes.len();
                    emit(MASKED.as_bytes());
                }
                return;
            }
            _ => return emit(bytes),
        };
        let pending = &mut self.pending;
        pending.bytes.extend_from_slice(bytes);
        let scan_end = pending
            .bytes
            .len()
            .saturating_sub(MAX_BYTES_AFTER)
            .max(self.scanned_bytes);
        scanner.push(patterns, &pending.bytes[self.scanned_bytes..scan_end]);
        let until = scanner
            .safe_until(patterns)
            .saturating_sub(MAX_BYTES_BEFORE);
        pending.release(scanner, until, &mut |part| emit(part.shown()));
        self.scanned_bytes = scan_end - pending.discard_released(scan_end);
    }

    /// Emits the rest of the masked text: no more bytes follow.
    pub fn finish(&mut self, mut emit: impl FnMut(&[u8])) {
        let (Some(scanner), MaskScope::Secrets(patterns)) = (&mut self.scanner, &self.mask.scope)
        else {
            return;
        };
        scanner.push(patterns, &self.pending.bytes[self.scanned_bytes..]);
        scanner.finish(patterns);
        self.scanned_bytes = self.pending.bytes.len();
        self.pending
            .release(scanner, usize::MAX, &mut |part| emit(part.shown()));
    }
}

/// A part of a masked text.
enum MaskedPart<'t> {
    /// Text without secrets, and where it starts.
    Text { start: usize, bytes: &'t [u8] },
    /// A secret, up to the next text.
    Secret,
}

impl<'t> MaskedPart<'t> {
    /// Returns what is shown of it.
    fn shown(self) -> &'t [u8] {
        match self {
            Self::Text { bytes, .. } => bytes,
            Self::Secret => MASKED.as_bytes(),
        }
    }
}

/// The part of a text that is still held: its last bytes, up to the last one received.
#[derive(Debug, Default)]
struct PendingText {
    bytes: Vec<u8>,
    /// How many bytes of the text came before `bytes`.
    offset: usize,
    /// Up to where the text was emitted or replaced.
    released_until: usize,
}

impl PendingText {
    fn from_text(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Emits the text up to `until`, replacing every secret that starts before it.
    fn release(
        &mut self,
        scanner: &mut SecretScanner,
        until: usize,
        emit: &mut dyn FnMut(MaskedPart<'_>),
    ) {
        let end = self.offset + self.bytes.len();
        while let Some(secret_match) = scanner.take_match_before(until) {
            let mut secret = secret_match.start..secret_match.end;
            if secret_match.edges.shares_digit_before {
                secret.start -= spellings::last_digit_len(self.slice(0, secret_match.start));
            }
            if secret_match.edges.shares_digit_after {
                secret.end += spellings::first_digit_len(self.slice(secret.end, end));
                secret.end += spellings::padding_len(self.slice(secret.end, end));
            }
            // A match that starts in a replaced range is covered by the replacement; only its end is new.
            if secret_match.start >= self.released_until {
                emit(self.text_part(secret.start));
                emit(MaskedPart::Secret);
            }
            self.released_until = self.released_until.max(secret.end);
        }
        // The digit before the next match may belong to it.
        let next_match = scanner.next_match_start().unwrap_or(usize::MAX);
        let until = until
            .min(end)
            .min(next_match.saturating_sub(MAX_BYTES_BEFORE));
        emit(self.text_part(until));
        self.released_until = self.released_until.max(until);
    }

    /// Returns what follows the released text, up to `until`.
    fn text_part(&self, until: usize) -> MaskedPart<'_> {
        MaskedPart::Text {
            start: self.released_until,
            bytes: self.slice(self.released_until, until),
        }
    }

    /// Returns the text from `start` to `end`, as far as it is still held.
    fn slice(&self, start: usize, end: usize) -> &[u8] {
        let start = start.saturating_sub(self.offset);
        let end = end.saturating_sub(self.offset);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Discards the bytes that were released, at most `max`. Returns how many.
    fn discard_released(&mut self, max: usize) -> usize {
        let released = (self.released_until - self.offset).min(max);
        self.bytes.drain(..released);
        self.offset += released;
        released
    }
}

#[cfg(test)]
mod json_tests {
    use super::*;

    #[test]
    fn masks_outside_strings_become_strings() {
        for (masked, expected) in [
            ("[masked]", r#""[masked]""#),
            ("-1[masked]0.5e+3", r#""-1[masked]0.5e+3""#),
            (
                r#"{"a":[masked],"b":[1,[masked], [masked]]}"#,
                r#"{"a":"[masked]","b":[1,"[masked]", "[masked]"]}"#,
            ),
            (
                r#"{"[masked]":"\"[masked]","c":[true,null,"é"]}"#,
                r#"{"[masked]":"\"[masked]","c":[true,null,"é"]}"#,
            ),
            (r#"["\\",[masked]]"#, r#"["\\","[masked]"]"#),
        ] {
            assert_eq!(quote_masks(masked), expected);
            assert!(serde_json::from_str::<serde_json::Value>(expected).is_ok());
        }
    }
}

#[cfg(test)]
mod stream_tests {
    use super::*;

    /// Regardless of what an endless input repeats, only a little of it is held, and overlapping matches are replaced
    /// only once.
    #[test]
    fn pending_text_stays_small_on_endless_input() {
        let secret = format!("aaaaaaaa\\\\\"{}", "s3cr3t".repeat(100));
        let mask = Arc::new(Mask::new(["aaaaaaaa", &*secret]));
        for endless in [
            "\\",
            "\\u005c",
            "\\u0061",
            "\\n",
            "\\\"",
            "\\ud83d",
            "%",
            "%61",
            "&#",
            "&#97;",
            "a",
            "YWFh",
            "s3cr3t",
            "\n",
            "x",
            "AAAAAAAAAAAAAAAAAAAA\n",
        ] {
            let mut stream = MaskedStream::new(Arc::clone(&mask));
            let mut passed = 0;
            for _ in 0..40 {
                stream.push(endless.repeat(1000).as_bytes(), |bytes| {
                    passed += bytes.len();
                });
                let (held, room) = (stream.pending.bytes.len(), stream.pending.bytes.capacity());
                assert!(held < 5000 && room < 50_000, "{endless}: {held} of {room}");
            }
            stream.finish(|bytes| passed += bytes.len());
            let is_secret = mask.apply(&endless.repeat(10)).contains(MASKED);
            let all = endless.len() * 40_000;
            assert_eq!(
                passed,
                if is_secret { MASKED.len() } else { all },
                "{endless}"
            );
        }
    }

    /// Such a digit has bits of the secret. In a stream, it arrives long before the match is certain.
    #[test]
    fn a_base64_digit_before_a_secret_is_masked_in_pieces_too() {
        let mask = Arc::new(Mask::new(["aaaaaaab"]));
        let text = "VhYWFhYWFhYWFhYWFhYW p";
        let mut stream = MaskedStream::new(Arc::clone(&mask));
        let mut masked = Vec::new();
        for byte in text.as_bytes().chunks(1) {
            stream.push(byte, |bytes| masked.extend_from_slice(bytes));
        }
        stream.finish(|bytes| masked.extend_from_slice(bytes));
        assert_eq!(String::from_utf8(masked).unwrap(), mask.apply(text));
    }
}
