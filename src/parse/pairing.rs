//! Which calls have a result in the recording: a result belongs to the nearest call before it that has its id and none
//! yet. Recordings use ids again in later turns, and results stand in another order than their calls.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;

/// The ids of a recording's calls and results, as digests under a random key: eight bytes a call, however long they are.
#[derive(Default)]
pub(super) struct Pairing {
    digest: RandomState,
    /// One for each call; none for a call without an id, which no result can name.
    calls: Vec<Option<NonZeroU64>>,
    replies: Vec<Reply>,
}

/// What a recording knows of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It waits for its result.
    Open,
    /// It was started, and nothing says how it ended. Only toolq's own log knows this.
    Started,
    /// It has its result.
    Answered,
}

/// Something that names a call.
struct Reply {
    id: NonZeroU64,
    /// How many calls stand before it.
    after: u32,
    says: Says,
}

/// What is said of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// It is about to start.
    Started,
    /// It may have run, and was answered so.
    InDoubt,
    /// It did not run after all.
    NotDone,
    /// This is its result.
    Result,
}

impl Pairing {
    /// What stands for `id`.
    pub fn digest(&self, id: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(self.digest.hash_one(id))
    }

    /// The next call.
    pub fn call(&mut self, id: Option<&str>) {
        let id = id.and_then(|id| self.digest(id));
        self.calls.push(id);
    }

    /// Something that is said of the call `id`.
    pub fn reply(&mut self, id: &str, says: Says) {
        // No input has more calls than this counts.
        let after = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let reply = self.digest(id).map(|id| Reply { id, after, says });
        self.replies.extend(reply);
    }

    /// What is known of each call; empty where nothing is said of any.
    pub fn marks(self) -> Vec<Mark> {
        if self.replies.is_empty() {
            return Vec::new();
        }
        let named: HashSet<NonZeroU64> = self.replies.iter().map(|reply| reply.id).collect();
        let mut open: HashMap<NonZeroU64, Vec<usize>> = HashMap::new();
        let mut marks = vec![Mark::Open; self.calls.len()];
        let mut calls = self.calls.iter().enumerate();
        for reply in &self.replies {
            let seen = calls.len() - (self.calls.len() - reply.after as usize);
            for (call, id) in calls.by_ref().take(seen) {
                if let Some(id) = id.filter(|id| named.contains(id)) {
                    open.entry(id).or_default().push(call);
                }
            }
            let Some(open) = open.get_mut(&reply.id) else {
                continue;
            };
            let call = match reply.says {
                Says::Result => open.pop(),
                _ => open.last().copied(),
            };
            if let Some(call) = call {
                marks[call] = reply.says.mark();
            }
        }
        marks
    }
}

impl Says {
    fn mark(self) -> Mark {
        match self {
            Self::Started => Mark::Started,
            Self::NotDone => Mark::Open,
            Self::InDoubt | Self::Result => Mark::Answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` is a call of that id, `A` its result, `_` a call without an id; `<a` says that it started, `?a` that it is in
    /// doubt, `!a` that it was not done.
    fn answered(story: &str) -> String {
        let mut pairing = Pairing::default();
        let mut says = Says::Result;
        for step in story.chars() {
            match step {
                '<' => says = Says::Started,
                '?' => says = Says::InDoubt,
                '!' => says = Says::NotDone,
                _ if says != Says::Result => {
                    pairing.reply(&step.to_string(), says);
                    says = Says::Result;
                }
                '_' => pairing.call(None),
                'A'..='Z' => pairing.reply(&step.to_lowercase().to_string(), Says::Result),
                _ => pairing.call(Some(&step.to_string())),
            }
        }
        let marks = pairing.marks();
        marks
            .iter()
            .map(|mark| match mark {
                Mark::Open => '.',
                Mark::Started => '<',
                Mark::Answered => 'x',
            })
            .collect()
    }

    #[test]
    fn a_result_belongs_to_the_nearest_call_before_it() {
        assert_eq!(answered("ab"), "", "no result at all");
        assert_eq!(answered("abBA"), "xx", "another order");
        assert_eq!(answered("aAbcB"), "xx.", "between the calls of a turn");
        assert_eq!(answered("aAaA"), "xx", "an id used again");
        assert_eq!(answered("aaA"), ".x", "the nearest");
        assert_eq!(answered("aaAA"), "xx", "two calls of one id, two results");
        assert_eq!(answered("Aa"), ".", "a result never comes before its call");
        assert_eq!(answered("a_AA"), "x.", "a second result answers nothing");
    }

    #[test]
    fn what_started_is_neither_open_nor_answered() {
        assert_eq!(answered("ab<a"), "<.");
        assert_eq!(answered("ab<aA"), "x.");
        assert_eq!(answered("a<a?a"), "x", "in doubt is an answer");
        assert_eq!(answered("a<a?a!a"), ".", "it was not done");
        assert_eq!(answered("a<a?a!a<aA"), "x");
    }
}
