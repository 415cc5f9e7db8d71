//! Decides which calls of a conversation were abandoned: it went on without their results.
//!
//! A conversation is a chain of messages. A call waits until a person says something, or until the model goes on behind a
//! message of a user or a tool. Consecutive messages of the model are one request for results.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU64;

use sha2::{Digest as _, Sha256};

use crate::json::JsonText;
use crate::transcript::reply_pairing::ReplyPairing;
use crate::types::ContextDigest;

/// The largest number of unknown kinds that are remembered.
const MAX_UNKNOWN_KINDS: usize = 16;

/// Kinds of blocks that toolq doesn't know, each with whether it looks like a call.
pub(crate) type UnknownKinds = BTreeMap<String, bool>;

/// What a conversation says about calls without results.
#[derive(Debug, Default)]
pub(crate) struct OpenCallFacts {
    /// Calls that the conversation went past.
    pub passed: HashSet<usize>,
    /// Calls that a result may belong to that names none, with its offset.
    pub unsure: HashMap<usize, u64>,
    /// Number of results that name no call.
    pub misplaced_results: usize,
}

/// One conversation, as far as it can still change.
#[derive(Debug, Default)]
struct Chain {
    /// Calls that the conversation hasn't gone past, whether or not they have results.
    calls: Vec<u32>,
    /// Unknown kinds of blocks in the model's last messages.
    unknown_kinds: UnknownKinds,
    /// A message of a user or a tool stands behind the model's last one.
    others_spoke: bool,
    /// What people said, with a mark for each call, once somebody has said something. It is the same in every dialect.
    story: Option<Sha256>,
}

/// The chain that a message belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChainKey {
    /// That of all messages of the input that don't say anything else.
    #[default]
    Input,
    /// That of a document that stands for itself.
    Document,
    /// A side chain of a log, by the digest of its first line.
    Side(NonZeroU64),
}

/// All chains of an input.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    current: ChainKey,
    input: Chain,
    document: Chain,
    side: HashMap<NonZeroU64, Chain>,
    /// The chain of each line of a log that names its lines, by digest of the name.
    lines: HashMap<NonZeroU64, ChainKey>,
    /// Calls that the conversation went past without a result. One may have come later.
    passed: HashSet<usize>,
    /// Calls that a result may belong to that names none, with its offset. Their own results may come later.
    unsure: HashMap<usize, u64>,
    /// Number of results that name no call.
    misplaced_results: usize,
    /// What documents that stand for themselves left behind.
    unknown_kinds: UnknownKinds,
}

impl Chains {
    /// Begins a document, whose messages belong to the conversation of the input unless something else is said.
    pub fn begin_document(&mut self) {
        let left = std::mem::take(&mut self.document);
        add_kinds(&mut self.unknown_kinds, left.unknown_kinds);
        self.current = ChainKey::Input;
    }

    /// Makes the document a conversation of its own.
    pub fn enter_document(&mut self) {
        self.current = ChainKey::Document;
    }

    /// Begins the line `name` of a log, behind the line `parent`. Returns `false` if the log had this line before.
    pub fn enter_line(
        &mut self,
        name: NonZeroU64,
        parent: Option<NonZeroU64>,
        is_side: bool,
    ) -> bool {
        let known = parent.and_then(|parent| self.lines.get(&parent));
        let chain = match known {
            _ if !is_side => ChainKey::Input,
            Some(chain @ ChainKey::Side(_)) => *chain,
            _ => ChainKey::Side(name),
        };
        self.current = chain;
        self.lines.insert(name, chain).is_none()
    }

    fn current(&mut self) -> &mut Chain {
        match self.current {
            ChainKey::Input => &mut self.input,
            ChainKey::Document => &mut self.document,
            ChainKey::Side(name) => self.side.entry(name).or_default(),
        }
    }

    /// The model begins another message.
    pub fn model_speaks(&mut self, pairing: &ReplyPairing) {
        if self.current().others_spoke {
            self.go_past_calls(pairing);
            self.current().others_spoke = false;
        }
    }

    /// A user or a tool says something, at least a result.
    pub fn others_speak(&mut self) {
        let chain = self.current();
        chain.others_spoke = true;
        chain.unknown_kinds.clear();
    }

    /// The conversation goes on without the results that it hasn't got: a person said something, or it was interrupted.
    pub fn go_past_calls(&mut self, pairing: &ReplyPairing) {
        self.others_speak();
        let calls = std::mem::take(&mut self.current().calls);
        let calls = calls.into_iter().map(|call| call as usize);
        self.passed
            .extend(calls.filter(|&call| !pairing.has_reply(call)));
    }

    /// A result names no call. It may belong to any that waits for one.
    pub fn add_misplaced_result(&mut self, offset: u64, pairing: &ReplyPairing) {
        self.misplaced_results += 1;
        let calls = self.current().calls.clone().into_iter();
        let waiting = calls
            .map(|call| call as usize)
            .filter(|&call| !pairing.has_reply(call));
        for call in waiting {
            self.unsure.entry(call).or_insert(offset);
        }
    }

    /// The model calls a tool.
    pub fn add_call(&mut self, call: u32) {
        let chain = self.current();
        chain.calls.push(call);
        if let Some(story) = &mut chain.story {
            story.update([0]);
        }
    }

    /// A person says something in the content of a message: a text, or an array with parts that have texts.
    pub fn add_speech(&mut self, content: JsonText<'_>) {
        let story = self.current().story.get_or_insert_default();
        let mut add = |text: JsonText<'_>| {
            let text = text.to_text().unwrap_or_default();
            let text = text.trim();
            story.update([1]);
            story.update(text.len().to_le_bytes());
            story.update(text);
        };
        match content.objects() {
            Some(parts) => {
                let parts = parts.flatten();
                parts.filter_map(|part| part.get("text")).for_each(add);
            }
            None => add(content),
        }
    }

    /// Returns a digest of what was said so far in the current conversation, and of how often a tool was called. `None` if nobody
    /// said anything.
    pub fn story(&mut self) -> Option<ContextDigest> {
        let story = self.current().story.clone()?;
        Some(ContextDigest::of(&[&story.finalize()]))
    }

    /// The model's message has a block of an unknown kind.
    pub fn add_unknown_kind(&mut self, kind: &str, is_call: bool) {
        let kinds = &mut self.current().unknown_kinds;
        add_kinds(kinds, [(kind.to_owned(), is_call)]);
    }

    /// A block of an unknown kind was answered.
    pub fn answer_unknown_kind(&mut self, kind: &str) {
        self.current().unknown_kinds.remove(kind);
    }

    /// Returns what is known of the calls besides their results, and the unknown kinds in the last messages.
    pub fn finish(mut self) -> (OpenCallFacts, UnknownKinds) {
        self.begin_document();
        let chains = self.side.into_values().chain([self.input]);
        for chain in chains {
            add_kinds(&mut self.unknown_kinds, chain.unknown_kinds);
        }
        let facts = OpenCallFacts {
            passed: self.passed,
            unsure: self.unsure,
            misplaced_results: self.misplaced_results,
        };
        (facts, self.unknown_kinds)
    }
}

pub(crate) fn add_kinds(kinds: &mut UnknownKinds, more: impl IntoIterator<Item = (String, bool)>) {
    for (kind, is_call) in more {
        if kinds.len() < MAX_UNKNOWN_KINDS || kinds.contains_key(&kind) {
            *kinds.entry(kind).or_default() |= is_call;
        }
    }
}
