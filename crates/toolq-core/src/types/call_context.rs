//! Where a call stands: what tells calls apart that look the same.

use std::collections::HashSet;
use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

/// An id has at least this many letters and digits in one piece if it is random.
const MIN_RANDOM_CHARS: usize = 16;
/// At least this many of them are different.
const MIN_DIFFERENT_CHARS: usize = 9;
/// How toolq's own ids begin, which it gives to calls that have none.
pub(crate) const GENERATED_ID_PREFIX: &str = "toolq_";

/// Returns whether toolq made this id for a call that had none.
pub fn is_generated_id(id: &str) -> bool {
    let digits = id.strip_prefix(GENERATED_ID_PREFIX);
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns whether an id was drawn at random, by its look: a long piece of different letters and digits, or a UUID. No other
/// call has it.
pub fn is_random_id(id: &str) -> bool {
    if is_generated_id(id) {
        return false;
    }
    let pieces = id.split(|c: char| !c.is_ascii_alphanumeric());
    pieces.into_iter().any(is_random_piece)
        || uuids_in(id).any(|uuid| is_random_piece(&uuid.replace('-', "")))
}

fn is_random_piece(piece: &str) -> bool {
    let different: HashSet<u8> = piece.bytes().collect();
    piece.len() >= MIN_RANDOM_CHARS
        && different.len() >= MIN_DIFFERENT_CHARS
        && !piece.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the parts of `id` that have the form of a UUID.
fn uuids_in(id: &str) -> impl Iterator<Item = &str> {
    let lengths = [8, 4, 4, 4, 12];
    let has_form = move |text: &&str| {
        let mut groups = text.split('-');
        let fits = |len: &usize| {
            let group = groups.next();
            group.is_some_and(|group| {
                group.len() == *len && group.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
        };
        lengths.iter().all(fits)
    };
    (0..id.len())
        .filter_map(|start| id.get(start..start + 36))
        .filter(has_form)
}

/// A digest of where a call stands. Few bits suffice: a mistake only makes a call look like another that has the same tool and
/// input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextDigest([u8; 6]);

impl ContextDigest {
    /// Digests what something is, in parts.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut first = [0; 6];
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        first.copy_from_slice(&hasher.finalize()[..6]);
        Self(first)
    }

    /// Reads a digest as [`fmt::Display`] writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for ContextDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

/// Where a call stands, as far as its input says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CallContext {
    /// The id of its message, if that is random.
    pub message: Option<ContextDigest>,
    /// What stands before its message, if that is part of a conversation.
    pub before: Option<ContextDigest>,
}

impl CallContext {
    /// The context of a call of a message that has this id.
    pub fn new(message_id: Option<&str>, before: Option<ContextDigest>) -> Self {
        let message = message_id.filter(|id| is_random_id(id));
        Self {
            message: message.map(|id| ContextDigest::of(&[id.as_bytes()])),
            before,
        }
    }

    /// Returns whether a call that stands here is surely another one than a call that looks the same and stands there.
    pub fn differs_from(self, other: Self) -> bool {
        match (self.message, other.message) {
            (Some(message), Some(other)) => message != other,
            _ => {
                matches!((self.before, other.before), (Some(before), Some(other)) if before != other)
            }
        }
    }

    /// Returns whether a call that stands here is surely the one that looks the same and stands there.
    pub fn is_same_place(self, other: Self) -> bool {
        let is_known = |this: Option<ContextDigest>, other| this.is_some() && this == other;
        is_known(self.message, other.message)
            || self.message.zip(other.message).is_none() && is_known(self.before, other.before)
    }
}
