//! The index of a recording: its turns, and the offsets of their calls and results, with the ids that these have.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::json::{JsonKind, JsonText, ParsedObject};
use crate::transcript::reply_pairing::{CallReplies, ReplyEntry};
use crate::types::{AnswerForm, ContextDigest, Dialect, ResponseEnding};

/// What the index stores about a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnEntry {
    pub dialect: Dialect,
    pub form: AnswerForm,
    pub ending: ResponseEnding,
    /// The `id` of its message.
    pub message_id: TextEntry,
    /// The `model` of its message.
    pub model: TextEntry,
    /// What stands before it, if it is part of a conversation.
    pub before: Option<ContextDigest>,
}

/// The place of a JSON string in the input. Empty if the input doesn't have it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextEntry {
    /// Offset of the string in the input.
    pub offset: u64,
    /// Length of the string, in bytes.
    pub len: u32,
}

/// What the index stores about a call. Only 16 bytes, since a recording may have millions of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallIndexEntry {
    /// Offset of its JSON in the input.
    pub offset: u64,
    /// Length of its JSON, in bytes.
    pub len: u32,
    /// Number of its turn.
    pub turn: u32,
}

impl CallIndexEntry {
    /// Returns the offset of the end of its JSON in the input.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// The turns in order, and the calls sorted by turn.
pub(crate) struct RecordingIndex {
    turns: Vec<TurnEntry>,
    calls: Vec<CallIndexEntry>,
    replies: CallReplies,
    /// The ids that different calls of a conversation have.
    pub shared_ids: Arc<BTreeSet<String>>,
    /// Number of results that name no call.
    pub misplaced_results: usize,
}

impl RecordingIndex {
    /// Creates an index. `replies` identifies calls by their position in `calls`.
    pub fn new(
        turns: Vec<TurnEntry>,
        mut calls: Vec<CallIndexEntry>,
        mut replies: CallReplies,
        shared_ids: BTreeSet<String>,
    ) -> Self {
        // A log of several concurrent conversations interleaves their turns.
        if !calls.is_sorted_by_key(|call| call.turn) {
            let mut order: Vec<usize> = (0..calls.len()).collect();
            order.sort_by_key(|&call| calls[call].turn);
            replies = replies.reordered(&order);
            calls = order.iter().map(|&call| calls[call]).collect();
        }
        Self {
            turns,
            calls,
            replies,
            shared_ids: shared_ids.into(),
            misplaced_results: 0,
        }
    }

    /// Returns the number of turns.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    pub fn turn(&self, number: usize) -> TurnEntry {
        self.turns[number]
    }

    pub fn call(&self, call: usize) -> CallIndexEntry {
        self.calls[call]
    }

    /// Returns which calls belong to a turn.
    pub fn calls_of_turn(&self, number: usize) -> Range<usize> {
        let before = |number| {
            self.calls
                .partition_point(|call| (call.turn as usize) < number)
        };
        before(number)..before(number + 1)
    }

    /// Returns whether a call has a result, other than one that says that it didn't run, was interrupted, or is in doubt.
    pub fn is_answered(&self, call: usize) -> bool {
        let has_own_result = !self.is_in_doubt(call) && !self.is_started(call);
        has_own_result && self.reply(call).is_some_and(|reply| !reply.skipped)
    }

    /// Returns whether the conversation went on without the result of a call.
    pub fn is_abandoned(&self, call: usize) -> bool {
        self.replies.passed.contains(&call) && self.reply(call).is_none()
    }

    /// Returns the number of such calls.
    pub fn abandoned_count(&self) -> usize {
        let passed = self.replies.passed.iter();
        passed.filter(|&&call| self.is_abandoned(call)).count()
    }

    /// Returns the offset of a result that may be that of an open call, but names none.
    pub fn misplaced_result(&self, call: usize) -> Option<u64> {
        let offset = self.replies.unsure.get(&call);
        offset
            .copied()
            .filter(|_| self.is_open(call) && self.reply(call).is_none())
    }

    /// Returns whether a call still needs a result.
    pub fn is_open(&self, call: usize) -> bool {
        !self.is_answered(call) && !self.is_abandoned(call)
    }

    /// Returns the calls that still need a result.
    pub fn open_calls(&self) -> impl Iterator<Item = usize> {
        (0..self.calls.len()).filter(|&call| self.is_open(call))
    }

    /// Returns whether a call was started, and its end isn't recorded, or only that its run ended.
    pub fn is_started(&self, call: usize) -> bool {
        self.replies.started.contains(&call)
    }

    /// Returns whether a call has a result that says that it may or may not have run.
    pub fn is_in_doubt(&self, call: usize) -> bool {
        self.replies.in_doubt.contains(&call)
    }

    pub fn reply(&self, call: usize) -> Option<ReplyEntry> {
        self.replies.replies.get(call).copied().flatten()
    }

    /// Returns the dialect of the first call, or of the first turn if there are no calls.
    pub fn dialect(&self) -> Option<Dialect> {
        let first_turn = self.calls.first().map_or(0, |call| call.turn as usize);
        self.turns.get(first_turn).map(|turn| turn.dialect)
    }
}

/// Keys under which the results of the dialects name their calls. A conversation may have been put together from several.
pub(crate) const RESULT_KEYS: [&str; 5] = [
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "toolUseId",
    "toolCallId",
];

/// An id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum CallId<'a> {
    /// There is none, or what some servers write in its place: nothing, a blank, or the word `null`.
    #[default]
    Missing,
    Text(Cow<'a, str>),
    /// The digits of a number. It names the same call as a text of these digits.
    Number(Cow<'a, str>),
    /// Something that can't name a call.
    Unreadable(JsonKind),
}

impl<'a> CallId<'a> {
    /// Reads the id at `key`.
    pub fn read(object: &ParsedObject<'a>, key: &str) -> Self {
        object.get(key).map_or(Self::Missing, Self::from_json)
    }

    /// Reads the id that a result names: the first of those that it has.
    pub fn of_result(result: &ParsedObject<'a>) -> Self {
        let mut ids = RESULT_KEYS.iter().map(|key| Self::read(result, key));
        ids.find(|id| !id.is_missing()).unwrap_or_default()
    }

    pub fn from_json(value: JsonText<'a>) -> Self {
        match (value.kind(), value.to_text()) {
            (JsonKind::Null, _) => Self::Missing,
            (JsonKind::Number, _) => Self::Number(value.get().into()),
            (_, Some(text)) => Self::from_text(text),
            (kind, None) => Self::Unreadable(kind),
        }
    }

    pub fn from_text(text: Cow<'a, str>) -> Self {
        match text.trim() {
            "" | "null" => Self::Missing,
            _ => Self::Text(text),
        }
    }

    /// Returns what names the call.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    pub fn is_missing(&self) -> bool {
        *self == Self::Missing
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    pub fn into_owned(self) -> CallId<'static> {
        match self {
            Self::Missing => CallId::Missing,
            Self::Text(text) => CallId::Text(text.into_owned().into()),
            Self::Number(digits) => CallId::Number(digits.into_owned().into()),
            Self::Unreadable(kind) => CallId::Unreadable(kind),
        }
    }
}

/// The calls of a log by what makes them the same call in a later run. Such a call is one, whose records are those of all runs.
#[derive(Debug, Default)]
pub(crate) struct LoggedCalls {
    /// The records of the turns that the inputs had.
    pub(super) turns: HashSet<String>,
    /// The records of calls, by what the memory knows them by, and which of several such calls of one run it is.
    by_key: HashMap<(String, usize), String>,
    /// How many calls the current run had, by the same.
    counts: HashMap<String, usize>,
    /// For a call that an earlier run had, its record there.
    earlier: HashMap<String, String>,
}

impl LoggedCalls {
    pub(super) fn begin_run(&mut self) {
        self.counts.clear();
    }

    /// Returns whether an earlier run had this call.
    pub(super) fn repeats(&mut self, id: &str, call: &ParsedObject) -> bool {
        let metadata = call.get_object("metadata");
        let Some(key) = metadata.and_then(|metadata| {
            let key = metadata.get_text("key")?;
            let [message, before] = ["message", "before"].map(|name| metadata.get_text(name));
            let [message, before] = [message, before].map(Option::unwrap_or_default);
            Some(format!("{key} {message} {before}"))
        }) else {
            return false;
        };
        let count = self.counts.entry(key.clone()).or_default();
        *count += 1;
        match self.by_key.entry((key, *count)) {
            Entry::Occupied(first) => {
                self.earlier.insert(id.to_owned(), first.get().clone());
                true
            }
            Entry::Vacant(vacant) => {
                vacant.insert(id.to_owned());
                false
            }
        }
    }

    /// Returns the first record of a call.
    pub(super) fn first_record<'i>(&'i self, id: &'i str) -> &'i str {
        self.earlier.get(id).map_or(id, String::as_str)
    }
}
