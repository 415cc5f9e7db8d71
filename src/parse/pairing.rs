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
    results: Vec<Reply>,
}

/// A result.
struct Reply {
    id: NonZeroU64,
    /// How many calls stand before it.
    after: usize,
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

    /// A result that answers `id`.
    pub fn result(&mut self, id: &str) {
        let after = self.calls.len();
        self.results
            .extend(self.digest(id).map(|id| Reply { id, after }));
    }

    /// For each call whether it has a result; empty where none has.
    pub fn answered(self) -> Vec<bool> {
        if self.results.is_empty() {
            return Vec::new();
        }
        let named: HashSet<NonZeroU64> = self.results.iter().map(|reply| reply.id).collect();
        let mut open: HashMap<NonZeroU64, Vec<usize>> = HashMap::new();
        let mut answered = vec![false; self.calls.len()];
        let mut calls = self.calls.iter().enumerate();
        for reply in &self.results {
            let seen = calls.len() - (self.calls.len() - reply.after);
            for (call, id) in calls.by_ref().take(seen) {
                if let Some(id) = id.filter(|id| named.contains(id)) {
                    open.entry(id).or_default().push(call);
                }
            }
            if let Some(call) = open.get_mut(&reply.id).and_then(Vec::pop) {
                answered[call] = true;
            }
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` is a call of that id, `A` its result, `_` a call without an id.
    fn answered(story: &str) -> String {
        let mut pairing = Pairing::default();
        for step in story.chars() {
            match step {
                '_' => pairing.call(None),
                'A'..='Z' => pairing.result(&step.to_lowercase().to_string()),
                _ => pairing.call(Some(&step.to_string())),
            }
        }
        let marks = pairing.answered();
        marks
            .iter()
            .map(|&mark| if mark { 'x' } else { '.' })
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
}
