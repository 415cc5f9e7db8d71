//! Secrets are taken out of a stream before anything is cut from it or written to a file: half a secret at a cut would
//! be a secret told by half.

use std::sync::Arc;

use crate::model::Mask;

/// A stream of bytes in which secrets are replaced, also where they lie across two pieces.
#[derive(Debug)]
pub(super) struct Masked {
    mask: Arc<Mask>,
    /// The end of what came: too short to tell whether a secret begins there.
    held: Vec<u8>,
}

impl Masked {
    pub(super) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            held: Vec::new(),
        }
    }

    /// Passes on what is certain of the bytes so far.
    pub(super) fn push(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let longest = self.mask.longest();
        if longest == 0 {
            return pass(bytes);
        }
        self.held.extend_from_slice(bytes);
        let certain = (self.held.len() + 1).saturating_sub(longest);
        let done = self.mask.replace(&self.held, certain, &mut pass);
        self.held.drain(..done);
    }

    /// Passes on the rest.
    pub(super) fn finish(&mut self, mut pass: impl FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        self.mask.replace(&held, held.len(), &mut pass);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// FAULTS 131: however a stream is cut into pieces, no piece of a secret gets through.
        #[test]
        fn pieces_are_masked_like_the_whole(
            words in prop::collection::vec(prop::sample::select(vec!["secret", "secrets-2", "sec", " ", "ret", "c2VjcmV0", "xzZWNyZXQ=", "hAc2VjcmV0cy0yCg=="]), 0..12),
            size in 1_usize..30,
        ) {
            let text = words.concat();
            let mask = Arc::new(Mask::new(["secret", "secrets-2"]));
            let mut masked = Masked::new(Arc::clone(&mask));
            let mut passed = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                masked.push(piece, |bytes| passed.extend_from_slice(bytes));
            }
            masked.finish(|bytes| passed.extend_from_slice(bytes));
            prop_assert_eq!(String::from_utf8(passed).unwrap(), mask.text(&text).into_owned());
        }
    }
}
