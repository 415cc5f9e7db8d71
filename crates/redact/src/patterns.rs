//! All spellings of all secrets, as one automaton that reads a byte at a time.

use std::collections::HashMap;
use std::fmt;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, Anchored, BuildError, MatchError, MatchKind};

use crate::spellings::{SecretSpelling, SpellingEdges};

/// The spellings of all secrets don't fit into one automaton.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TooManySpellings;

impl From<BuildError> for TooManySpellings {
    fn from(_: BuildError) -> Self {
        Self
    }
}

impl From<MatchError> for TooManySpellings {
    fn from(_: MatchError) -> Self {
        Self
    }
}

/// The automaton over all patterns. A state knows which patterns end in it, and how much of a pattern was read.
#[derive(Clone)]
pub(crate) struct Patterns {
    automaton: NFA,
    searcher: AhoCorasick,
    pub(crate) start_state: StateID,
    /// One entry per pattern.
    edges: Vec<SpellingEdges>,
    /// How many bytes of a pattern have been read in each state.
    depths: HashMap<StateID, usize>,
    /// Which bytes start neither a pattern nor an escape.
    skippable_bytes: [bool; 256],
    /// Length of the longest pattern.
    pub(crate) max_pattern_bytes: usize,
}

impl Patterns {
    /// Builds the automaton from sorted spellings.
    ///
    /// # Errors
    /// There are too many for an automaton.
    pub(crate) fn new(spellings: &[SecretSpelling]) -> Result<Self, TooManySpellings> {
        let automaton = build_automaton(spellings)?;
        let start_state = automaton.start_state(Anchored::No)?;
        let longest = spellings.iter().map(|spelling| spelling.text.len()).max();
        let mut patterns = Self {
            start_state,
            skippable_bytes: [false; 256],
            depths: compute_depths(&automaton, spellings)?,
            edges: spellings.iter().map(|spelling| spelling.edges).collect(),
            max_pattern_bytes: longest.unwrap_or_default(),
            searcher: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(spellings.iter().map(|spelling| &spelling.text))?,
            automaton,
        };
        for byte in 0..=u8::MAX {
            patterns.skippable_bytes[usize::from(byte)] =
                patterns.starts_no_pattern(byte) && !b"\\%&".contains(&byte);
        }
        Ok(patterns)
    }

    /// Returns the state after reading `byte`.
    pub(crate) fn next_state(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// Returns whether no pattern starts with `byte`.
    pub(crate) fn starts_no_pattern(&self, byte: u8) -> bool {
        self.next_state(self.start_state, byte) == self.start_state
    }

    /// Returns whether a pattern ends in this state.
    pub(crate) fn is_match(&self, state: StateID) -> bool {
        self.automaton.is_match(state)
    }

    /// Returns how many leading bytes keep the automaton in its start state and start no escape.
    pub(crate) fn skippable_prefix_len(&self, bytes: &[u8]) -> usize {
        let idle = bytes
            .iter()
            .take_while(|byte| self.skippable_bytes[usize::from(**byte)]);
        idle.count()
    }

    /// Returns where the first pattern starts, or the length of `bytes`.
    pub(crate) fn find_first(&self, bytes: &[u8]) -> usize {
        let first = self.searcher.find(bytes);
        first.map_or(bytes.len(), |found| found.start())
    }

    /// Returns the patterns that end in this state, each with its length in bytes and its edges.
    pub(crate) fn matches_at(
        &self,
        state: StateID,
    ) -> impl Iterator<Item = (usize, SpellingEdges)> + '_ {
        let count = || self.automaton.match_len(state);
        let count = self.is_match(state).then(count).unwrap_or_default();
        (0..count).map(move |index| {
            let pattern = self.automaton.match_pattern(state, index);
            (self.automaton.pattern_len(pattern), self.edges[pattern])
        })
    }

    /// Returns how many of the bytes read last are the start of a pattern.
    pub(crate) fn partial_match_len(&self, state: StateID) -> usize {
        self.depths.get(&state).copied().unwrap_or_default()
    }
}

/// Never prints a secret.
impl fmt::Debug for Patterns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Patterns").finish_non_exhaustive()
    }
}

fn build_automaton(spellings: &[SecretSpelling]) -> Result<NFA, BuildError> {
    NFA::builder()
        .prefilter(false)
        .build(spellings.iter().map(|spelling| &spelling.text))
}

/// Computes the depth of every state. Neighbors in a sorted list share prefixes, so each prefix is walked only once.
fn compute_depths(
    automaton: &NFA,
    spellings: &[SecretSpelling],
) -> Result<HashMap<StateID, usize>, MatchError> {
    let mut depths = HashMap::new();
    let mut prefix_states = vec![automaton.start_state(Anchored::Yes)?];
    let mut previous: &[u8] = b"";
    for spelling in spellings {
        let text = spelling.text.as_slice();
        let shared = previous
            .iter()
            .zip(text)
            .take_while(|(a, b)| a == b)
            .count();
        prefix_states.truncate(shared + 1);
        let mut state = prefix_states[shared];
        for (depth, byte) in text.iter().enumerate().skip(shared) {
            state = automaton.next_state(Anchored::Yes, state, *byte);
            prefix_states.push(state);
            depths.insert(state, depth + 1);
        }
        previous = text;
    }
    Ok(depths)
}
