//! Which calls have a result in the recording: a result belongs to the nearest call before it that has its id and none
//! yet. Recordings use ids again in later turns, and results stand in another order than their calls.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;

use super::index::ReplyEntry;

/// Pairs while it is told. Of ids it holds digests under a random key, and those of open calls only.
#[derive(Default)]
pub(super) struct Pairing {
    digest: RandomState,
    /// Calls so far.
    calls: u32,
    /// The last open call of each id.
    open: HashMap<NonZeroU64, u32>,
    /// Behind an open call the one before it of the same id, which is open, too.
    before: HashMap<u32, u32>,
    /// By call, as far as the last that has one.
    replies: Vec<Option<ReplyEntry>>,
}

impl Pairing {
    /// What stands for `id`.
    pub fn digest(&self, id: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(self.digest.hash_one(id))
    }

    /// The next call; one without an id no result can name.
    pub fn call(&mut self, id: Option<&str>) {
        let call = self.calls;
        self.calls += 1;
        let Some(id) = id.and_then(|id| self.digest(id)) else {
            return;
        };
        if let Some(before) = self.open.insert(id, call) {
            self.before.insert(call, before);
        }
    }

    /// A result that answers `id`.
    pub fn result(&mut self, id: &str, reply: ReplyEntry) {
        let Some(id) = self.digest(id) else { return };
        let Some(&call) = self.open.get(&id) else {
            return;
        };
        let at = call as usize;
        if self.replies.len() <= at {
            self.replies.resize(at + 1, None);
        }
        self.replies[at] = Some(reply);
        if reply.skipped {
            return;
        }
        match self.before.remove(&call) {
            Some(before) => self.open.insert(id, before),
            None => self.open.remove(&id),
        };
    }

    /// The result of each call, as far as the last that has one.
    pub fn replies(self) -> Vec<Option<ReplyEntry>> {
        self.replies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: ReplyEntry = ReplyEntry {
        offset: 0,
        len: 0,
        skipped: false,
    };

    /// `a` is a call of that id, `A` its result, `_` a call without an id.
    fn answered(story: &str) -> String {
        let mut pairing = Pairing::default();
        for step in story.chars() {
            match step {
                '_' => pairing.call(None),
                'A'..='Z' => pairing.result(&step.to_lowercase().to_string(), REPLY),
                _ => pairing.call(Some(&step.to_string())),
            }
        }
        let replies = pairing.replies();
        replies
            .iter()
            .map(|reply| if reply.is_some() { 'x' } else { '.' })
            .collect()
    }

    #[test]
    fn a_result_belongs_to_the_nearest_call_before_it() {
        assert_eq!(answered("ab"), "", "no result at all");
        assert_eq!(answered("abBA"), "xx", "another order");
        assert_eq!(answered("aAbcB"), "xx", "between the calls of a turn");
        assert_eq!(answered("aAaA"), "xx", "an id used again");
        assert_eq!(answered("aaA"), ".x", "the nearest");
        assert_eq!(answered("aaAA"), "xx", "two calls of one id, two results");
        assert_eq!(answered("Aa"), "", "a result never comes before its call");
        assert_eq!(answered("a_AA"), "x", "a second result answers nothing");
    }
}
