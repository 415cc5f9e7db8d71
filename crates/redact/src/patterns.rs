//! All spellings of all secrets as one automaton that takes a byte at a time.

use std::collections::HashMap;
use std::fmt;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, Anchored, BuildError, MatchError, MatchKind};

use crate::spellings::{Ends, Form};

/// What is looked for. A state says which needles end here, and how much of one may have begun.
#[derive(Clone)]
pub(crate) struct Needles {
    automaton: NFA,
    search: AhoCorasick,
    pub(crate) start: StateID,
    /// Of each needle.
    ends: Vec<Ends>,
    /// How many bytes of a needle were read when the automaton is in a state.
    depths: HashMap<StateID, usize>,
    /// Which bytes say what they are, and begin no needle.
    idle: [bool; 256],
    /// In bytes.
    pub(crate) longest: usize,
}

impl Needles {
    /// The needles of `forms`, which are sorted; none where there is no form.
    pub(crate) fn new(forms: &[Form]) -> Option<Self> {
        if forms.is_empty() {
            return None;
        }
        let automaton = automaton(forms).ok()?;
        let start = automaton.start_state(Anchored::No).ok()?;
        let mut needles = Self {
            start,
            idle: [false; 256],
            depths: depths(&automaton, forms).ok()?,
            ends: forms.iter().map(|form| form.ends).collect(),
            longest: forms.iter().map(|form| form.text.len()).max()?,
            search: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(forms.iter().map(|form| &form.text))
                .ok()?,
            automaton,
        };
        for byte in 0..=u8::MAX {
            needles.idle[usize::from(byte)] = needles.is_idle(byte) && !b"\\%&".contains(&byte);
        }
        Some(needles)
    }

    /// The state behind `byte`.
    pub(crate) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// Whether no needle begins with `byte`.
    pub(crate) fn is_idle(&self, byte: u8) -> bool {
        self.next(self.start, byte) == self.start
    }

    /// Whether a needle ends here.
    pub(crate) fn is_match(&self, state: StateID) -> bool {
        self.automaton.is_match(state)
    }

    /// How many of the first bytes leave the automaton at its start and begin no escape.
    pub(crate) fn idle(&self, bytes: &[u8]) -> usize {
        let idle = bytes
            .iter()
            .take_while(|byte| self.idle[usize::from(**byte)]);
        idle.count()
    }

    /// Where the first needle begins, or their end.
    pub(crate) fn first(&self, bytes: &[u8]) -> usize {
        let first = self.search.find(bytes);
        first.map_or(bytes.len(), |found| found.start())
    }

    /// The needles that end here: how long each is, in bytes, and what its ends are.
    pub(crate) fn matches(&self, state: StateID) -> impl Iterator<Item = (usize, Ends)> + '_ {
        let count = || self.automaton.match_len(state);
        let count = self.is_match(state).then(count).unwrap_or_default();
        (0..count).map(move |index| {
            let needle = self.automaton.match_pattern(state, index);
            (self.automaton.pattern_len(needle), self.ends[needle])
        })
    }

    /// How many of the last bytes are the begin of a needle.
    pub(crate) fn begun(&self, state: StateID) -> usize {
        self.depths.get(&state).copied().unwrap_or_default()
    }
}

/// Never shows what is looked for.
impl fmt::Debug for Needles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Needles").finish_non_exhaustive()
    }
}

fn automaton(forms: &[Form]) -> Result<NFA, BuildError> {
    NFA::builder()
        .prefilter(false)
        .build(forms.iter().map(|form| &form.text))
}

/// Neighbours begin alike, so that each begin is walked once.
fn depths(automaton: &NFA, forms: &[Form]) -> Result<HashMap<StateID, usize>, MatchError> {
    let mut depths = HashMap::new();
    let mut walked = vec![automaton.start_state(Anchored::Yes)?];
    let mut before: &[u8] = b"";
    for form in forms {
        let text = form.text.as_slice();
        let shared = before.iter().zip(text).take_while(|(a, b)| a == b).count();
        walked.truncate(shared + 1);
        let mut state = walked[shared];
        for (depth, byte) in text.iter().enumerate().skip(shared) {
            state = automaton.next_state(Anchored::Yes, state, *byte);
            walked.push(state);
            depths.insert(state, depth + 1);
        }
        before = text;
    }
    Ok(depths)
}
