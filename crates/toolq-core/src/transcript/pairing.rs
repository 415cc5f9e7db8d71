//! Which calls have a result in the recording: a result belongs to the nearest call before it that has its id and none
//! yet. Recordings use ids again in later turns, and results stand in another order than their calls.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;

use crate::transcript::index::ReplyEntry;

/// Pairs while it is told. Of ids it holds digests under a random key, and those of open calls only.
#[derive(Default)]
pub(crate) struct Pairing {
    digest: RandomState,
    /// Calls so far.
    calls: u32,
    /// The last open call of each id.
    open: HashMap<NonZeroU64, u32>,
    /// Behind an open call the one before it of the same id, which is open, too.
    before: HashMap<u32, u32>,
    /// By call, as far as the last that has one.
    replies: Vec<Option<ReplyEntry>>,
    /// Calls that were started, and nothing says how they ended. Only toolq's own log tells.
    started: HashSet<usize>,
    /// Calls that were answered as in doubt.
    doubted: HashMap<NonZeroU64, u32>,
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

    /// The call `id` was started.
    pub fn started(&mut self, id: &str) {
        let call = self.digest(id).and_then(|id| self.open.get(&id));
        self.started.extend(call.map(|call| *call as usize));
    }

    /// The call `id` may have run or not, and was answered so.
    pub fn in_doubt(&mut self, id: &str, reply: ReplyEntry) {
        let digest = self.digest(id);
        let call = digest.and_then(|id| Some((id, *self.open.get(&id)?)));
        self.doubted.extend(call);
        self.result(id, reply);
    }

    /// The call `id` was done and has this result, or was not done, and is open.
    pub fn resolved(&mut self, id: &str, reply: Option<ReplyEntry>) {
        if let Some(digest) = self.digest(id)
            && let Some(call) = self.doubted.remove(&digest)
        {
            self.replies[call as usize] = None;
            self.open.insert(digest, call);
        }
        if let Some(reply) = reply {
            return self.result(id, reply);
        }
        let call = self.digest(id).and_then(|id| self.open.get(&id));
        if let Some(call) = call {
            self.started.remove(&(*call as usize));
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
        self.started.remove(&at);
        if reply.skipped {
            return;
        }
        match self.before.remove(&call) {
            Some(before) => self.open.insert(id, before),
            None => self.open.remove(&id),
        };
    }

    /// The result of each call, as far as the last that has one, and which calls were started and have none.
    pub fn finish(self) -> (Vec<Option<ReplyEntry>>, HashSet<usize>) {
        (self.replies, self.started)
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

    /// `a` is a call of that id, `A` its result, `_` a call without an id; `<a` says that it started, `?a` that it is in
    /// doubt, `!a` that it was not done.
    fn answered(story: &str) -> String {
        let mut pairing = Pairing::default();
        let mut steps = story.chars();
        while let Some(step) = steps.next() {
            let mut id = || steps.next().unwrap().to_string();
            match step {
                '<' => pairing.started(&id()),
                '?' => pairing.in_doubt(&id(), REPLY),
                '!' => pairing.resolved(&id(), None),
                '_' => pairing.call(None),
                'A'..='Z' => pairing.result(&step.to_lowercase().to_string(), REPLY),
                _ => pairing.call(Some(&step.to_string())),
            }
        }
        let (replies, started) = pairing.finish();
        let calls = replies
            .len()
            .max(started.iter().max().map_or(0, |last| last + 1));
        let mark = |call| match replies.get(call) {
            Some(Some(_)) => 'x',
            _ if started.contains(&call) => '<',
            _ => '.',
        };
        (0..calls).map(mark).collect()
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

    #[test]
    fn what_started_is_neither_open_nor_answered() {
        assert_eq!(answered("ab<a"), "<");
        assert_eq!(answered("ab<aA"), "x");
        assert_eq!(answered("a<a?a"), "x", "in doubt is an answer");
        assert_eq!(answered("ab<a?a!aB"), ".x", "it was not done");
        assert_eq!(answered("a<a?a!a<a"), "<");
        assert_eq!(answered("a<a?a!a<aA"), "x");
    }
}
