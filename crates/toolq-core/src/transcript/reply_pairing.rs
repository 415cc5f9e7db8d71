//! Pairs the results in a recording with their calls.
//!
//! A result belongs to the nearest turn before it that has a call with the same id and no result yet, and there to the first
//! such call: recordings reuse ids in later turns, and results may be in a different order than their calls. Where results or
//! calls have no ids, names or nothing but the order tell calls apart.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::num::{NonZeroU64, TryFromIntError};

use sha2::{Digest as _, Sha256};

use crate::json::JsonText;
use crate::transcript::index::{CallIndexEntry, ReplyEntry};
use crate::types::ContextDigest;

/// What a result says about the call that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallName<'a> {
    /// Its id.
    Id(&'a str),
    /// The name of its tool.
    Tool(&'a str),
    /// Nothing: it is the next one in order.
    Next,
    /// The name of its tool, and an id that the call itself doesn't have, which has none.
    ToolWithoutId(&'a str),
    /// Only such an id.
    NextWithoutId,
}

/// The calls with one name that have no result yet, in the last turn with such calls.
#[derive(Debug)]
struct OpenCalls {
    turn: u32,
    first: u32,
    last: u32,
}

/// Pairs results with calls as they're added. To stay small, it stores names as digests under a random key, and drops
/// those of finished calls.
#[derive(Default)]
pub(crate) struct ReplyPairing {
    hasher: RandomState,
    pub calls: Vec<CallIndexEntry>,
    open_calls: HashMap<NonZeroU64, OpenCalls>,
    /// For a call under a name: the next one with that name in the same turn.
    next_calls: HashMap<(NonZeroU64, u32), u32>,
    /// For the first call of a turn under a name: those of an earlier turn.
    earlier_calls: HashMap<(NonZeroU64, u32), OpenCalls>,
    /// Calls whose result says that they're in doubt, by id.
    in_doubt_calls: HashMap<NonZeroU64, u32>,
}

impl ReplyPairing {
    /// Returns the digest of a text that names something in the input.
    pub fn digest(&self, text: &str) -> Option<NonZeroU64> {
        NonZeroU64::new(self.hasher.hash_one(text))
    }

    /// Returns the digest of what stands in the input.
    pub fn digest_json(&self, json: JsonText<'_>) -> u64 {
        self.hasher.hash_one(json.get())
    }

    fn digest_name(&self, name: CallName) -> Option<NonZeroU64> {
        match name {
            CallName::Id(id) => self.digest(id),
            CallName::Tool(tool) => NonZeroU64::new(self.hasher.hash_one(("tool", tool))),
            CallName::Next => NonZeroU64::new(self.hasher.hash_one(("", ""))),
            CallName::ToolWithoutId(tool) => NonZeroU64::new(self.hasher.hash_one(("bare", tool))),
            CallName::NextWithoutId => NonZeroU64::new(self.hasher.hash_one(("bare", ""))),
        }
    }

    /// Adds the next call, and returns its number. Results may refer to it by any of `names`.
    ///
    /// # Errors
    /// There are 2^32 calls already.
    pub fn add_call(
        &mut self,
        entry: CallIndexEntry,
        names: &[CallName],
    ) -> Result<u32, TryFromIntError> {
        let (turn, call) = (entry.turn, u32::try_from(self.calls.len())?);
        self.calls.push(entry);
        for name in names {
            let Some(name) = self.digest_name(*name) else {
                continue;
            };
            // What has a result under another name is forgotten here, so that memory doesn't grow with it.
            self.find_call(name);
            let alone = OpenCalls {
                turn,
                first: call,
                last: call,
            };
            match self.open_calls.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(alone);
                }
                Entry::Occupied(mut known) if known.get().turn == turn => {
                    self.next_calls.insert((name, known.get().last), call);
                    known.get_mut().last = call;
                }
                Entry::Occupied(mut known) => {
                    let earlier = known.insert(alone);
                    self.earlier_calls.insert((name, call), earlier);
                }
            }
        }
        Ok(call)
    }

    /// Returns the call that a result with this name belongs to. Calls that have a result under another name are passed over.
    fn find_call(&mut self, name: NonZeroU64) -> Option<u32> {
        loop {
            let call = self.open_calls.get(&name)?.first;
            let entry = &self.calls[call as usize];
            if entry.is_started || entry.reply.is_none_or(|reply| reply.skipped) {
                return Some(call);
            }
            self.close_first(name);
        }
    }

    /// Removes the first of the open calls with this name.
    fn close_first(&mut self, name: NonZeroU64) {
        let Entry::Occupied(mut known) = self.open_calls.entry(name) else {
            return;
        };
        let first = known.get().first;
        let earlier = self.earlier_calls.remove(&(name, first));
        match (self.next_calls.remove(&(name, first)), earlier) {
            (Some(next), earlier) => {
                known.get_mut().first = next;
                let earlier = earlier.map(|earlier| ((name, next), earlier));
                self.earlier_calls.extend(earlier);
            }
            (None, Some(earlier)) => {
                known.insert(earlier);
            }
            (None, None) => {
                known.remove();
            }
        }
    }

    /// Returns the call that a result with this id belongs to.
    fn find_by_id(&mut self, id: &str) -> Option<&mut CallIndexEntry> {
        let call = self.digest(id).and_then(|id| self.find_call(id))?;
        self.calls.get_mut(call as usize)
    }

    /// Records that the call `id` was started.
    pub fn mark_started(&mut self, id: &str) {
        if let Some(call) = self.find_by_id(id) {
            call.is_started = true;
        }
    }

    /// Adds a result that says that the run ended while the call `id` was running. A later run may start it again.
    pub fn mark_interrupted(&mut self, id: &str, reply: ReplyEntry) {
        if let Some(call) = self.find_by_id(id) {
            call.reply = Some(reply);
            call.is_started = true;
        }
    }

    /// Adds a result that says that the call `id` may or may not have run.
    pub fn mark_in_doubt(&mut self, id: &str, reply: ReplyEntry) {
        if let Some(digest) = self.digest(id)
            && let Some(call) = self.find_call(digest)
        {
            self.in_doubt_calls.insert(digest, call);
            self.add_result(&[CallName::Id(id)], reply);
        }
    }

    /// Resolves the doubt about the call `id`: with a `reply`, it's done and has this result; without one, it's open
    /// again.
    pub fn resolve_doubt(&mut self, id: &str, reply: Option<ReplyEntry>) {
        let Some(digest) = self.digest(id) else {
            return;
        };
        if let Some(call) = self.in_doubt_calls.remove(&digest) {
            self.calls[call as usize].reply = None;
            let alone = OpenCalls {
                turn: u32::MAX,
                first: call,
                last: call,
            };
            self.open_calls.insert(digest, alone);
        }
        if let Some(reply) = reply {
            self.add_result(&[CallName::Id(id)], reply);
        } else if let Some(call) = self.find_by_id(id) {
            call.is_started = false;
        }
    }

    /// Adds a result of the call with the first of `names` that there is. Returns whether there is one.
    pub fn add_result(&mut self, names: &[CallName], reply: ReplyEntry) -> bool {
        let digests: Vec<NonZeroU64> = names
            .iter()
            .filter_map(|name| self.digest_name(*name))
            .collect();
        for name in digests {
            let Some(call) = self.find_call(name) else {
                continue;
            };
            let call = &mut self.calls[call as usize];
            call.reply = Some(reply);
            call.is_started = false;
            if !reply.skipped {
                self.close_first(name);
            }
            return true;
        }
        false
    }

    /// Returns the calls, with all that is known about them.
    pub fn finish(mut self) -> Vec<CallIndexEntry> {
        for call in self.in_doubt_calls.into_values() {
            self.calls[call as usize].is_in_doubt = true;
        }
        self.calls
    }
}

// Decides which calls of a conversation were abandoned: it went on without their results.
//
// A conversation is a chain of messages. A call waits until a person says something, or until the model goes on behind a
// message of a user or a tool. Consecutive messages of the model are one request for results.

/// The largest number of unknown kinds that are remembered.
const MAX_UNKNOWN_KINDS: usize = 16;

/// Kinds of blocks that toolq doesn't know, each with whether it looks like a call.
pub(crate) type UnknownKinds = BTreeMap<String, bool>;

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
    /// Number of results that name no call.
    pub misplaced_results: usize,
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
    pub fn model_speaks(&mut self, calls: &mut [CallIndexEntry]) {
        if self.current().others_spoke {
            self.go_past_calls(calls);
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
    pub fn go_past_calls(&mut self, calls: &mut [CallIndexEntry]) {
        self.others_speak();
        for call in std::mem::take(&mut self.current().calls) {
            calls[call as usize].is_passed = true;
        }
    }

    /// A result names no call. It may belong to any that waits for one.
    pub fn add_misplaced_result(&mut self, offset: u64, calls: &mut [CallIndexEntry]) {
        self.misplaced_results += 1;
        for call in &self.current().calls {
            let call = &mut calls[*call as usize];
            if call.reply.is_none() {
                call.unsure = call.unsure.or(NonZeroU64::new(offset));
            }
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

    /// Returns the unknown kinds in the last messages.
    pub fn finish(mut self) -> UnknownKinds {
        self.begin_document();
        for chain in self.side.into_values().chain([self.input]) {
            add_kinds(&mut self.unknown_kinds, chain.unknown_kinds);
        }
        self.unknown_kinds
    }
}

pub(crate) fn add_kinds(kinds: &mut UnknownKinds, more: impl IntoIterator<Item = (String, bool)>) {
    for (kind, is_call) in more {
        if kinds.len() < MAX_UNKNOWN_KINDS || kinds.contains_key(&kind) {
            *kinds.entry(kind).or_default() |= is_call;
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

    fn entry(turn: u32) -> CallIndexEntry {
        CallIndexEntry::new(0, 0, turn)
    }

    /// Replays `steps` and returns a mark per call: `x` has a result, `?` one that says that it is in doubt, `<` was
    /// started, `.` is open. Open calls at the end are left out.
    ///
    /// Steps: `a` is a call with that id, `A` its result, `_` a call without an id, and `|` begins a turn; `<a` starts the
    /// call, `~a` interrupts it, `?a` puts it in doubt, `!a` resolves that it wasn't done.
    fn reply_marks(steps: &str) -> String {
        let mut pairing = ReplyPairing::default();
        let mut turn = 0;
        let mut steps = steps.chars();
        while let Some(step) = steps.next() {
            let mut id = || steps.next().unwrap().to_string();
            match step {
                '<' => pairing.mark_started(&id()),
                '~' => pairing.mark_interrupted(&id(), REPLY),
                '?' => pairing.mark_in_doubt(&id(), REPLY),
                '!' => pairing.resolve_doubt(&id(), None),
                '|' => turn += 1,
                '_' => drop(pairing.add_call(entry(turn), &[])),
                'A'..='Z' => {
                    pairing.add_result(&[CallName::Id(&step.to_lowercase().to_string())], REPLY);
                }
                _ => drop(pairing.add_call(entry(turn), &[CallName::Id(&step.to_string())])),
            }
        }
        let calls = pairing.finish().into_iter();
        let marks: String = calls
            .map(|call| match call.reply {
                Some(_) if call.is_in_doubt => '?',
                _ if call.is_started => '<',
                Some(_) => 'x',
                None => '.',
            })
            .collect();
        marks.trim_end_matches('.').to_owned()
    }

    #[test]
    fn a_result_belongs_to_the_nearest_turn_and_there_to_the_first_call() {
        assert_eq!(reply_marks("ab"), "", "no result at all");
        assert_eq!(reply_marks("abBA"), "xx", "in a different order");
        assert_eq!(reply_marks("aAbcB"), "xx", "between the calls of a turn");
        assert_eq!(reply_marks("aA|aA"), "xx", "a reused id");
        assert_eq!(reply_marks("a|aA"), ".x", "the nearest turn");
        assert_eq!(reply_marks("a|aAA"), "xx", "and the one before");
        assert_eq!(reply_marks("aaA"), "x", "the first of a turn");
        assert_eq!(reply_marks("a|aabAA|aA"), ".xx.x", "and the next");
        assert_eq!(
            reply_marks("Aa"),
            "",
            "a result never comes before its call"
        );
        assert_eq!(reply_marks("a_AA"), "x", "a second result is ignored");
    }

    /// Without ids, the names of tools tell calls apart, and within one name their order.
    #[test]
    fn calls_without_ids_have_results_in_order() {
        let mut pairing = ReplyPairing::default();
        for (id, tool) in [(None, "f"), (Some("i"), "g"), (None, "f"), (None, "h")] {
            let id = id.map(CallName::Id);
            let names = [CallName::Tool(tool), CallName::Next];
            pairing
                .add_call(entry(0), &[id.as_slice(), &names].concat())
                .unwrap();
        }
        let reply = |offset| ReplyEntry { offset, ..REPLY };
        pairing.add_result(&[CallName::Id("i")], reply(1));
        pairing.add_result(&[CallName::Id("unknown"), CallName::Tool("f")], reply(2));
        pairing.add_result(&[CallName::Next], reply(3));
        assert!(!pairing.add_result(&[CallName::Tool("g")], reply(4)));
        let offsets = pairing.finish().into_iter();
        let offsets = offsets.map(|call| call.reply.map(|reply| reply.offset));
        assert_eq!(
            offsets.collect::<Vec<_>>(),
            [Some(2), Some(1), Some(3), None]
        );
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
