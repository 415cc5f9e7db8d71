//! Pairs the results in a recording with their calls.
//!
//! A result belongs to the nearest call before it that has the same id and no result yet: recordings reuse ids in later
//! turns, and results may be in a different order than their calls.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;

use crate::transcript::index::ReplyEntry;

/// What a recording says about its calls.
#[derive(Default)]
pub(crate) struct CallReplies {
    /// The results, by call, up to the last call that has one.
    pub replies: Vec<Option<ReplyEntry>>,
    /// Calls that were started, and whose end isn't recorded, or only that their run ended.
    pub started: HashSet<usize>,
    /// Calls whose result says that they may or may not have run.
    pub in_doubt: HashSet<usize>,
}

impl CallReplies {
    /// Returns the same for calls in another order. `order` has the old position of each call.
    pub fn reordered(&self, order: &[usize]) -> Self {
        let moved = |calls: &HashSet<usize>| {
            let positions = order.iter().enumerate();
            let moved = positions.filter(|(_, call)| calls.contains(call));
            moved.map(|(position, _)| position).collect()
        };
        let reply = |call: &usize| self.replies.get(*call).copied().flatten();
        Self {
            replies: order.iter().map(reply).collect(),
            started: moved(&self.started),
            in_doubt: moved(&self.in_doubt),
        }
    }
}

/// Pairs results with calls as they're added. To stay small, it stores ids as digests under a random key, and drops
/// those of finished calls.
#[derive(Default)]
pub(crate) struct ReplyPairing {
    id_hasher: RandomState,
    /// Number of calls so far.
    call_count: u32,
    /// The last open call with each id.
    last_open_call: HashMap<NonZeroU64, u32>,
    /// For an open call, the previous open call with the same id.
    previous_open_call: HashMap<u32, u32>,
    /// Indexed by call. Ends at the last call that has a result.
    replies: Vec<Option<ReplyEntry>>,
    /// Calls that were started, and whose end isn't recorded, or only that their run ended. Only toolq's own session log records starts.
    started_calls: HashSet<usize>,
    /// Calls whose result says that they're in doubt, by id.
    in_doubt_calls: HashMap<NonZeroU64, u32>,
}

impl ReplyPairing {
    /// Returns the digest of `id`.
    pub fn digest_id(&self, id: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(self.id_hasher.hash_one(id))
    }

    /// Adds the next call. No result can refer to a call without an id.
    pub fn add_call(&mut self, id: Option<&str>) {
        let call = self.call_count;
        self.call_count += 1;
        let Some(id) = id.and_then(|id| self.digest_id(id)) else {
            return;
        };
        if let Some(previous) = self.last_open_call.insert(id, call) {
            self.previous_open_call.insert(call, previous);
        }
    }

    /// Records that the call `id` was started.
    pub fn mark_started(&mut self, id: &str) {
        let call = self
            .digest_id(id)
            .and_then(|id| self.last_open_call.get(&id));
        self.started_calls.extend(call.map(|call| *call as usize));
    }

    /// Adds a result that says that the run ended while the call `id` was running. A later run may start it again.
    pub fn mark_interrupted(&mut self, id: &str, reply: ReplyEntry) {
        let call = self.store_reply(id, reply).map(|(_, call)| call as usize);
        self.started_calls.extend(call);
    }

    /// Adds a result that says that the call `id` may or may not have run.
    pub fn mark_in_doubt(&mut self, id: &str, reply: ReplyEntry) {
        let digest = self.digest_id(id);
        let call = digest.and_then(|id| Some((id, *self.last_open_call.get(&id)?)));
        self.in_doubt_calls.extend(call);
        self.add_result(id, reply);
    }

    /// Resolves the doubt about the call `id`: with a `reply`, it's done and has this result; without one, it's open
    /// again.
    pub fn resolve_doubt(&mut self, id: &str, reply: Option<ReplyEntry>) {
        if let Some(digest) = self.digest_id(id)
            && let Some(call) = self.in_doubt_calls.remove(&digest)
        {
            self.replies[call as usize] = None;
            self.last_open_call.insert(digest, call);
        }
        if let Some(reply) = reply {
            return self.add_result(id, reply);
        }
        let call = self
            .digest_id(id)
            .and_then(|id| self.last_open_call.get(&id));
        if let Some(call) = call {
            self.started_calls.remove(&(*call as usize));
        }
    }

    /// Adds a result of the call `id`.
    pub fn add_result(&mut self, id: &str, reply: ReplyEntry) {
        let Some((id, call)) = self.store_reply(id, reply) else {
            return;
        };
        self.started_calls.remove(&(call as usize));
        if reply.skipped {
            return;
        }
        match self.previous_open_call.remove(&call) {
            Some(previous) => self.last_open_call.insert(id, previous),
            None => self.last_open_call.remove(&id),
        };
    }

    /// Stores a result of the last open call with this id, and returns that call with the digest of its id.
    fn store_reply(&mut self, id: &str, reply: ReplyEntry) -> Option<(NonZeroU64, u32)> {
        let id = self.digest_id(id)?;
        let call = *self.last_open_call.get(&id)?;
        let index = call as usize;
        if self.replies.len() <= index {
            self.replies.resize(index + 1, None);
        }
        self.replies[index] = Some(reply);
        Some((id, call))
    }

    /// Returns what is known about the calls.
    pub fn finish(self) -> CallReplies {
        let in_doubt = self.in_doubt_calls.into_values();
        CallReplies {
            replies: self.replies,
            started: self.started_calls,
            in_doubt: in_doubt.map(|call| call as usize).collect(),
        }
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

    /// Replays `steps` and returns a mark per call: `x` has a result, `?` one that says that it is in doubt, `<` was
    /// started, `.` is open.
    ///
    /// Steps: `a` is a call with that id, `A` its result, `_` a call without an id; `<a` starts the call, `~a`
    /// interrupts it, `?a` puts it in doubt, `!a` resolves that it wasn't done.
    fn reply_marks(steps: &str) -> String {
        let mut pairing = ReplyPairing::default();
        let mut steps = steps.chars();
        while let Some(step) = steps.next() {
            let mut id = || steps.next().unwrap().to_string();
            match step {
                '<' => pairing.mark_started(&id()),
                '~' => pairing.mark_interrupted(&id(), REPLY),
                '?' => pairing.mark_in_doubt(&id(), REPLY),
                '!' => pairing.resolve_doubt(&id(), None),
                '_' => pairing.add_call(None),
                'A'..='Z' => pairing.add_result(&step.to_lowercase().to_string(), REPLY),
                _ => pairing.add_call(Some(&step.to_string())),
            }
        }
        let CallReplies {
            replies,
            started,
            in_doubt,
        } = pairing.finish();
        let calls = replies
            .len()
            .max(started.iter().max().map_or(0, |last| last + 1));
        let mark = |call| match replies.get(call) {
            Some(Some(_)) if in_doubt.contains(&call) => '?',
            _ if started.contains(&call) => '<',
            Some(Some(_)) => 'x',
            _ => '.',
        };
        (0..calls).map(mark).collect()
    }

    #[test]
    fn a_result_belongs_to_the_nearest_call_before_it() {
        assert_eq!(reply_marks("ab"), "", "no result at all");
        assert_eq!(reply_marks("abBA"), "xx", "in a different order");
        assert_eq!(reply_marks("aAbcB"), "xx", "between the calls of a turn");
        assert_eq!(reply_marks("aAaA"), "xx", "a reused id");
        assert_eq!(reply_marks("aaA"), ".x", "the nearest");
        assert_eq!(
            reply_marks("aaAA"),
            "xx",
            "two calls with one id, two results"
        );
        assert_eq!(
            reply_marks("Aa"),
            "",
            "a result never comes before its call"
        );
        assert_eq!(reply_marks("a_AA"), "x", "a second result is ignored");
    }

    #[test]
    fn a_started_call_is_neither_open_nor_answered() {
        assert_eq!(reply_marks("ab<a"), "<");
        assert_eq!(reply_marks("ab<aA"), "x");
        assert_eq!(reply_marks("a<a?a"), "?");
        assert_eq!(reply_marks("ab<a?aB<b"), "?x");
        assert_eq!(reply_marks("ab<a?a!aB"), ".x", "resolved as not done");
        assert_eq!(reply_marks("a<a?a!a<a"), "<");
        assert_eq!(reply_marks("a<a?a!a<aA"), "x");
        assert_eq!(reply_marks("ab<a~aB"), "<x", "stopped along with its run");
        assert_eq!(reply_marks("a<a~a<aA"), "x", "and resumed");
        assert_eq!(reply_marks("a<a~a?a"), "?");
    }
}
