use std::sync::Arc;

use crate::mask::{MASKED, Mask};
use crate::scan::Scan;
use crate::spellings;

/// How far base64 of a secret may reach beyond the characters that are looked for, in bytes: a digit before, and behind
/// them one with the padding, which a URL spells `%2B`, `%2F` and `%3D%3D`.
const BEFORE: usize = 3;
const BEHIND: usize = 9;

/// A stream of bytes in which secrets are replaced, also where they lie across two pieces. It is done before anything is
/// cut from the stream or written to a file: half a secret at a cut would be a secret told by half.
#[derive(Debug)]
pub struct MaskedStream {
    mask: Arc<Mask>,
    /// None where there are no secrets.
    scan: Option<Scan>,
    /// The end of what came: a secret may begin there.
    held: Held,
    /// How many bytes of it were read.
    read: usize,
}

impl MaskedStream {
    /// A stream of which nothing came yet.
    pub fn new(mask: Arc<Mask>) -> Self {
        Self {
            scan: mask.needles.as_ref().map(Scan::new),
            mask,
            held: Held::default(),
            read: 0,
        }
    }

    /// Passes on what is certain of the bytes so far.
    pub fn push(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let (Some(scan), Some(needles)) = (&mut self.scan, &self.mask.needles) else {
            return pass(bytes);
        };
        let held = &mut self.held;
        held.bytes.extend_from_slice(bytes);
        let known = held.bytes.len().saturating_sub(BEHIND).max(self.read);
        scan.push(needles, &held.bytes[self.read..known]);
        let until = scan.certain(needles).saturating_sub(BEFORE);
        held.release(scan, until, &mut pass);
        self.read = known - held.forget(known);
    }

    /// Passes on the rest.
    pub fn finish(&mut self, mut pass: impl FnMut(&[u8])) {
        let (Some(scan), Some(needles)) = (&mut self.scan, &self.mask.needles) else {
            return;
        };
        scan.push(needles, &self.held.bytes[self.read..]);
        scan.finish(needles);
        self.read = self.held.bytes.len();
        self.held.release(scan, usize::MAX, &mut pass);
    }
}

/// A part of a text, up to its end as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    /// How many bytes of the text came before it.
    before: usize,
    /// Up to where the text was passed on or replaced.
    done: usize,
}

impl Held {
    pub(crate) fn whole(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Passes on the text up to `until`, with every secret replaced that begins before.
    pub(crate) fn release(&mut self, scan: &mut Scan, until: usize, pass: &mut dyn FnMut(&[u8])) {
        let end = self.before + self.bytes.len();
        while let Some(found) = scan.take(until) {
            let mut secret = found.start..found.end;
            if found.ends.before {
                secret.start -= spellings::last_digit(self.part(0, found.start));
            }
            if found.ends.behind {
                secret.end += spellings::first_digit(self.part(secret.end, end));
                secret.end += spellings::padding(self.part(secret.end, end));
            }
            // Where one begins in what was replaced already, this is its rest.
            if found.start >= self.done {
                pass(self.part(self.done, secret.start));
                pass(MASKED.as_bytes());
            }
            self.done = self.done.max(secret.end);
        }
        let until = until.min(end);
        pass(self.part(self.done, until));
        self.done = self.done.max(until);
    }

    /// The text from one byte to another, as far as it is here.
    fn part(&self, start: usize, end: usize) -> &[u8] {
        let start = start.saturating_sub(self.before);
        let end = end.saturating_sub(self.before);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Forgets what is done of the first bytes. Returns how many there were of it.
    fn forget(&mut self, first: usize) -> usize {
        let done = (self.done - self.before).min(first);
        self.bytes.drain(..done);
        self.before += done;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 131: whatever goes on for ever, little of it is held, and what was found is not counted twice.
    #[test]
    fn little_is_held() {
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
                let (held, room) = (stream.held.bytes.len(), stream.held.bytes.capacity());
                assert!(held < 5000 && room < 50_000, "{endless}: {held} of {room}");
            }
            stream.finish(|bytes| passed += bytes.len());
            let is_secret = mask.text(&endless.repeat(10)).contains(MASKED);
            let all = endless.len() * 40_000;
            assert_eq!(
                passed,
                if is_secret { MASKED.len() } else { all },
                "{endless}"
            );
        }
    }
}
