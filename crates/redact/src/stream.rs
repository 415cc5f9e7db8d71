//! Replaces secrets in texts that arrive in pieces.

use std::sync::Arc;

use crate::mask::{MASKED, Mask, MaskScope};
use crate::scanner::SecretScanner;
use crate::spellings;

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
pub(crate) enum MaskedPart<'t> {
    /// Text without secrets, and where it starts.
    Text { start: usize, bytes: &'t [u8] },
    /// A secret, up to the next text.
    Secret,
}

impl<'t> MaskedPart<'t> {
    /// Returns what is shown of it.
    pub(crate) fn shown(self) -> &'t [u8] {
        match self {
            Self::Text { bytes, .. } => bytes,
            Self::Secret => MASKED.as_bytes(),
        }
    }
}

/// The part of a text that is still held: its last bytes, up to the last one received.
#[derive(Debug, Default)]
pub(crate) struct PendingText {
    bytes: Vec<u8>,
    /// How many bytes of the text came before `bytes`.
    offset: usize,
    /// Up to where the text was emitted or replaced.
    released_until: usize,
}

impl PendingText {
    pub(crate) fn from_text(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Emits the text up to `until`, replacing every secret that starts before it.
    pub(crate) fn release(
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
mod tests {
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
