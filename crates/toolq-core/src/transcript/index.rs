//! The index of a recording: its turns, and the offsets of their calls and results, with the ids that these have.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::json::{JsonKind, JsonText, ParsedObject};
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

/// What the index stores about a call. Only 48 bytes, since a recording may have millions of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallIndexEntry {
    /// Offset of its JSON in the input.
    pub offset: u64,
    /// Length of its JSON, in bytes.
    pub len: u32,
    /// Number of its turn.
    pub turn: u32,
    /// Its result, even one that says that it didn't run.
    pub reply: Option<ReplyEntry>,
    /// It was started, and its end isn't recorded, or only that its run ended.
    pub is_started: bool,
    /// Its result says that it may or may not have run.
    pub is_in_doubt: bool,
    /// The conversation went past it.
    pub is_passed: bool,
    /// Offset of a result that may be its own, but names no call.
    pub unsure: Option<NonZeroU64>,
}

impl CallIndexEntry {
    /// A call without a result.
    pub fn new(offset: u64, len: u32, turn: u32) -> Self {
        Self {
            offset,
            len,
            turn,
            reply: None,
            is_started: false,
            is_in_doubt: false,
            is_passed: false,
            unsure: None,
        }
    }

    /// Returns the offset of the end of its JSON in the input.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// Whether it has a result, other than one that says that it didn't run, was interrupted, or is in doubt.
    fn is_answered(&self) -> bool {
        let has_own_result = !self.is_in_doubt && !self.is_started;
        has_own_result && self.reply.is_some_and(|reply| !reply.skipped)
    }

    /// Whether the conversation went on without its result.
    pub fn is_abandoned(&self) -> bool {
        self.is_passed && self.reply.is_none()
    }

    /// Whether it still needs a result.
    pub fn is_open(&self) -> bool {
        !self.is_answered() && !self.is_abandoned()
    }

    /// Returns the offset of a result that may be its own, but names no call, if it is open.
    pub fn misplaced_result(&self) -> Option<u64> {
        let is_waiting = self.is_open() && self.reply.is_none();
        self.unsure.filter(|_| is_waiting).map(NonZeroU64::get)
    }
}

/// What the index stores about a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyEntry {
    /// Offset of its JSON in the input.
    pub offset: u64,
    /// Length of its JSON, in bytes.
    pub len: u32,
    /// It says that the call didn't run, so the call is still open.
    pub skipped: bool,
}

/// The turns in order, and the calls sorted by turn.
pub(crate) struct RecordingIndex {
    pub turns: Vec<TurnEntry>,
    pub calls: Vec<CallIndexEntry>,
    /// The ids that different calls of a conversation have.
    pub shared_ids: Arc<BTreeSet<String>>,
    /// Number of results that name no call.
    pub misplaced_results: usize,
}

impl RecordingIndex {
    /// Returns the calls of a turn.
    pub fn calls_of_turn(&self, number: usize) -> &[CallIndexEntry] {
        let before = |number| {
            self.calls
                .partition_point(|call| (call.turn as usize) < number)
        };
        &self.calls[before(number)..before(number + 1)]
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
