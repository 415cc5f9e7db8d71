//! Every spelling of a secret that is looked for, in the raw and in the decoded text, and all of them as one automaton.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, Anchored, BuildError, MatchError, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::decoder::{Decoder, decode_with_stages};

/// Values shorter than this many bytes are never masked: that would hide innocent text.
pub(crate) const MIN_SECRET_BYTES: usize = 6;

/// One spelling of a secret.
pub(crate) struct SecretSpelling {
    pub(crate) text: Vec<u8>,
    pub(crate) edges: SpellingEdges,
}

/// For base64: whether the digit before or after a match also carries bits of the secret, mixed with bits of its
/// neighbors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpellingEdges {
    pub(crate) is_base64: bool,
    pub(crate) shares_digit_before: bool,
    pub(crate) shares_digit_after: bool,
    /// How many bytes of the text a match must cover. Short texts that many bytes decode to aren't innocent.
    pub(crate) min_text_bytes: usize,
}

/// The longest prefix of a secret that a truncated text may end with, in characters.
const MAX_TRUNCATED_CHARS: usize = 400;

/// Returns every spelling of a value that decoding doesn't reduce to another one.
pub(crate) fn all_spellings(value: &[u8]) -> Vec<SecretSpelling> {
    if let Ok(text) = std::str::from_utf8(value) {
        return text_spellings(text);
    }
    // Escapes of other bytes are decoded to the bytes themselves.
    let plain = SecretSpelling {
        text: value.to_vec(),
        edges: SpellingEdges::default(),
    };
    base64_spellings(value).into_iter().chain([plain]).collect()
}

fn text_spellings(value: &str) -> Vec<SecretSpelling> {
    let mut texts = literal_spellings(value).to_vec();
    texts.extend(quoted_spellings(value));
    // For most values, nearly all of these are the same.
    texts.sort_unstable();
    texts.dedup();
    let decoded = texts
        .iter()
        .flat_map(|text| decoded_spellings(text))
        .collect::<Vec<_>>();
    texts.extend(
        literal_spellings(value)
            .iter()
            .flat_map(|name| truncated_spellings(name)),
    );
    let texts = texts.into_iter().map(String::into_bytes);
    let plain = texts.chain(decoded).map(|text| SecretSpelling {
        edges: SpellingEdges {
            // An escape is always longer than the character it encodes, so an escaped secret isn't shorter than the
            // secret.
            min_text_bytes: if text.len() < MIN_SECRET_BYTES {
                value.len()
            } else {
                0
            },
            ..SpellingEdges::default()
        },
        text,
    });
    plain.chain(base64_spellings(value.as_bytes())).collect()
}

/// Returns what the decoder makes of a spelling: with all of its stages if the spelling appears verbatim, with fewer if
/// it was escaped once or twice, percent-encoded, or written as HTML. A backslash before it, which isn't part of the
/// secret, may form an escape with its first letter, so that case is included. So is the text without its backslashes,
/// which some programs drop.
fn decoded_spellings(text: &str) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for first_stage in 0..3 {
        for last_stages in [
            &[Decoder::HTML_STAGE, Decoder::PERCENT_STAGE][..],
            &[Decoder::HTML_STAGE],
            &[Decoder::PERCENT_STAGE],
            &[],
        ] {
            let stages = (first_stage..Decoder::HTML_STAGE).chain(last_stages.iter().copied());
            let after_backslash = decode_with_stages(&format!("\\{text}"), stages.clone());
            let own_part = after_backslash.strip_prefix(b"\\");
            texts.push(own_part.map_or(after_backslash.clone(), <[u8]>::to_vec));
            texts.push(decode_with_stages(text, stages));
        }
    }
    let unescaped = texts.iter().map(|text| without_backslashes(text));
    let unescaped: Vec<Vec<u8>> = unescaped
        .filter(|text| text.len() >= MIN_SECRET_BYTES)
        .collect();
    texts.extend(unescaped);
    texts.retain(|text| !text.is_empty());
    texts
}

fn without_backslashes(text: &[u8]) -> Vec<u8> {
    let kept = text.iter().copied().filter(|byte| *byte != b'\\');
    kept.collect()
}

/// Returns the value as it is written between quotes: in JSON (which may be escaped again), a shell, YAML and CSV. Also
/// as in a form, with `+` for spaces.
fn quoted_spellings(value: &str) -> Vec<String> {
    let mut quoted: Vec<String> = [
        ("'", r"'\''"),
        ("'", "'\"'\"'"),
        ("'", "''"),
        ("\"", "\"\""),
        (" ", "+"),
    ]
    .into_iter()
    .map(|(sign, spelled)| value.replace(sign, spelled))
    .collect();
    if let Ok(json) = serde_json::to_string(value) {
        quoted.push(json[1..json.len() - 1].to_owned());
    }
    quoted
}

/// Returns the value as a message may quote it: verbatim, with control characters escaped, and in a JSON pointer.
fn literal_spellings(value: &str) -> [String; 4] {
    let pointer = value.replace('~', "~0").replace('/', "~1");
    let escape_controls = |text: &str| -> String {
        let spelled = text.chars().map(|c| match c {
            _ if c.is_control() => c.escape_unicode().to_string(),
            _ => c.to_string(),
        });
        spelled.collect()
    };
    [
        escape_controls(value),
        escape_controls(&pointer),
        pointer,
        value.to_owned(),
    ]
}

/// Returns every prefix of the value that a truncated text may end with, since half a secret is a leak, too.
fn truncated_spellings(value: &str) -> impl Iterator<Item = String> {
    let ends = value
        .char_indices()
        .map(|(end, _)| end)
        .take(MAX_TRUNCATED_CHARS);
    let ends = ends.filter(|end| *end >= MIN_SECRET_BYTES);
    ends.map(|end| format!("{}…", &value[..end]))
}

/// Returns the base64 digits that depend on the value alone, for each of the three offsets at which it may be encoded.
fn base64_spellings(value: &[u8]) -> Vec<SecretSpelling> {
    let mut spellings = Vec::new();
    for offset in 0..3 {
        let shifted = [&b"\0\0\0"[..offset], value].concat();
        let (first, bits) = ((offset * 8).div_ceil(6), shifted.len() * 8);
        let edges = SpellingEdges {
            is_base64: true,
            shares_digit_before: offset > 0,
            shares_digit_after: !bits.is_multiple_of(6),
            min_text_bytes: 0,
        };
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = alphabet.encode(&shifted);
            let text = encoded.as_bytes()[first..bits / 6].to_vec();
            spellings.push(SecretSpelling { text, edges });
        }
    }
    spellings
}

/// The base64 digits that a URL may percent-encode.
const PERCENT_ENCODED_DIGITS: [&[u8]; 6] = [b"%2B", b"%2b", b"%2F", b"%2f", b"%2D", b"%5F"];

/// Returns the length in bytes of the base64 digit at the end of `bytes`, or 0 if there is none.
pub(crate) fn last_digit_len(bytes: &[u8]) -> usize {
    digit_len(bytes.last(), |encoded| bytes.ends_with(encoded))
}

/// Returns the length in bytes of the base64 digit at the start of `bytes`, or 0 if there is none.
pub(crate) fn first_digit_len(bytes: &[u8]) -> usize {
    digit_len(bytes.first(), |encoded| bytes.starts_with(encoded))
}

fn digit_len(plain: Option<&u8>, is_there: impl Fn(&[u8]) -> bool) -> usize {
    if PERCENT_ENCODED_DIGITS.iter().any(|digit| is_there(digit)) {
        3
    } else {
        usize::from(plain.copied().is_some_and(is_base64_digit))
    }
}

/// Returns whether this is a base64 digit, of the standard or the URL-safe alphabet.
pub(crate) fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

/// Returns the length in bytes of the base64 padding at the start of `bytes`: at most two signs.
pub(crate) fn padding_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    for _ in 0..2 {
        let sign = [&b"="[..], b"%3D", b"%3d"].into_iter();
        let sign = sign.filter(|sign| bytes[len..].starts_with(sign));
        len += sign.map(<[u8]>::len).sum::<usize>();
    }
    len
}

// All spellings of all secrets, as one automaton that reads a byte at a time.

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
