//! Builds the index of a recording while it's read. Only the offsets of calls and results are kept, not their text.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU64;

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentOrigin};
use crate::transcript::index::{
    CallId, CallIndexEntry, LoggedCalls, RecordingIndex, ReplyEntry, TextEntry, TurnEntry,
};
use crate::transcript::reply_pairing::{CallName, Chains, ReplyPairing, UnknownKinds};
use crate::types::{AnswerForm, Dialect, ResponseEnding, is_generated_id};

/// Keys of the id of a message or response.
pub(crate) const MESSAGE_ID_KEYS: [&str; 2] = ["id", "responseId"];

/// Keys of the model that wrote it.
pub(crate) const MODEL_KEYS: [&str; 2] = ["model", "modelVersion"];

/// An index under construction. The reader of a dialect opens turns, adds calls to them, and adds results.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    turns: Vec<TurnEntry>,
    pub pairing: ReplyPairing,
    pub chains: Chains,
    /// A conversation of the document has begun.
    is_entered: bool,
    /// The calls of the conversations by the digest of their id, each with a digest of its JSON.
    calls_by_id: HashMap<NonZeroU64, u64>,
    /// The ids that different calls of a document's conversations have.
    shared_ids: BTreeSet<String>,
    /// Turns that the log names, because their calls aren't next to each other. By digest of the name.
    turns_by_name: HashMap<NonZeroU64, usize>,
    /// The turn that the model's next item belongs to, in dialects where nothing encloses a turn.
    running_turn: Option<usize>,
    /// A request was read, which may have no model response.
    has_request: bool,
    document_origin: DocumentOrigin,
    /// The calls of a session log, which may have several runs of one input.
    pub logged_calls: LoggedCalls,
}

impl IndexBuilder {
    /// Starts a document: the calls and results that follow are parts of it.
    pub fn begin_document(&mut self, origin: DocumentOrigin) {
        self.document_origin = origin;
        self.is_entered = false;
        self.chains.begin_document();
    }

    /// Makes the document a conversation of its own, as a whole request or response is, or begins with the next of its conversations.
    pub fn enter_document(&mut self) {
        self.chains.enter_document();
        // Some recordings give the calls of several conversations one id.
        if !std::mem::replace(&mut self.is_entered, true) {
            self.calls_by_id.clear();
        }
    }

    /// Begins a line of a log that names its lines: with its name, and that of the line before it in its chain. Returns
    /// `false` if the log had this line before.
    pub fn enter_line(&mut self, name: &str, parent: Option<&str>, is_side: bool) -> bool {
        let parent = parent.and_then(|parent| self.pairing.digest(parent));
        let name = self.pairing.digest(name);
        name.is_none_or(|name| self.chains.enter_line(name, parent, is_side))
    }

    /// Opens a turn and returns its number.
    pub fn open_turn(&mut self, dialect: Dialect, form: AnswerForm) -> usize {
        self.chains.model_speaks(&mut self.pairing.calls);
        self.turns.push(TurnEntry {
            dialect,
            form,
            ending: ResponseEnding::Complete,
            message_id: TextEntry::default(),
            model: TextEntry::default(),
            before: self.chains.story(),
        });
        self.turns.len() - 1
    }

    /// Sets the message or response that a turn comes from, which may have an id and a model.
    pub fn set_message(&mut self, turn: usize, message: &ParsedObject<'_>) {
        let either = |keys: [&str; 2]| keys.iter().find_map(|key| message.get(key));
        self.turns[turn].message_id = self.text_entry(either(MESSAGE_ID_KEYS));
        self.turns[turn].model = self.text_entry(either(MODEL_KEYS));
    }

    fn text_entry(&self, value: Option<JsonText<'_>>) -> TextEntry {
        let text = value.filter(|value| value.get().starts_with('"'));
        text.map_or_else(TextEntry::default, |text| TextEntry {
            offset: self.document_origin.offset_of(text),
            len: u32::try_from(text.get().len()).unwrap_or_default(),
        })
    }

    /// Returns the turn that the log calls `name`, opening it if the name is new.
    pub fn open_named_turn(&mut self, name: &str, dialect: Dialect, form: AnswerForm) -> usize {
        if let Some(turn) = self.find_named_turn(name) {
            return turn;
        }
        let turn = self.open_turn(dialect, form);
        if let Some(name) = self.pairing.digest(name) {
            self.turns_by_name.insert(name, turn);
        }
        turn
    }

    /// Returns the turn that the log calls `name`.
    fn find_named_turn(&self, name: &str) -> Option<usize> {
        self.turns_by_name.get(&self.pairing.digest(name)?).copied()
    }

    /// Returns the turn of the current run of the model's items, opening it at the first one.
    pub fn open_running_turn(&mut self, dialect: Dialect, form: AnswerForm) -> usize {
        let turn = self
            .running_turn
            .unwrap_or_else(|| self.open_turn(dialect, form));
        *self.running_turn.insert(turn)
    }

    /// Ends the current run of the model's items.
    pub fn close_running_turn(&mut self) {
        self.running_turn = None;
    }

    /// Sets how the response ended. A later part of the turn may change it, unless the response was refused.
    pub fn set_ending(&mut self, turn: usize, ending: ResponseEnding) {
        if self.turns[turn].ending != ResponseEnding::Refused {
            self.turns[turn].ending = ending;
        }
    }

    /// Adds the next call of `turn`. `call` is its JSON, a part of the document. Results name one of its `ids`, of which the first
    /// is its own; or else its tool, or nothing at all.
    pub fn add_call<'a>(
        &mut self,
        turn: usize,
        call: JsonText<'a>,
        (ids, tool): (&[&CallId], Option<&str>),
    ) -> Result<(), DocumentError<'a>> {
        let has_id = ids.first().is_some_and(|own| own.text().is_some());
        let named = ids.iter().filter_map(|id| id.text()).map(CallName::Id);
        let by_tool = tool.map(CallName::Tool);
        let bare = [
            tool.map(CallName::ToolWithoutId),
            Some(CallName::NextWithoutId),
        ];
        let bare = bare.into_iter().flatten().filter(|_| !has_id);
        let names: Vec<CallName> = named
            .chain(by_tool)
            .chain([CallName::Next])
            .chain(bare)
            .collect();
        self.add_named_call(turn, call, &names)
    }

    /// Like [`add_call`](Self::add_call), for a call that a result may refer to by any of `names`, and by nothing else.
    pub fn add_named_call<'a>(
        &mut self,
        turn: usize,
        call: JsonText<'a>,
        names: &[CallName],
    ) -> Result<(), DocumentError<'a>> {
        let too_large = |_| {
            DocumentError::new(
                call,
                "the input is too large: a call is limited to 4 GiB, and an input to 2^32 calls",
            )
        };
        let turn = u32::try_from(turn).map_err(too_large)?;
        self.note_ids(call, names);
        let len = u32::try_from(call.get().len()).map_err(too_large)?;
        let entry = CallIndexEntry::new(self.document_origin.offset_of(call), len, turn);
        let call = self.pairing.add_call(entry, names).map_err(too_large)?;
        self.chains.add_call(call);
        Ok(())
    }

    fn note_ids(&mut self, call: JsonText<'_>, names: &[CallName]) {
        let json = self.pairing.digest_json(call);
        for name in names {
            let CallName::Id(id) = name else { continue };
            let Some(digest) = self.pairing.digest(id) else {
                continue;
            };
            if *self.calls_by_id.entry(digest).or_insert(json) != json {
                self.shared_ids.insert((*id).to_owned());
            }
        }
    }

    /// Returns the number of calls so far.
    pub fn call_count(&self) -> usize {
        self.pairing.calls.len()
    }

    /// Adds the result of the call with this id, or, without an id, of the next one of this tool, or else of the next one.
    /// `json` is its JSON, a part of the document. An id that no call has may be that of a call without one.
    pub fn add_result(&mut self, (id, tool): (&CallId, Option<&str>), json: JsonText<'_>) {
        self.chains.others_speak();
        let names = match (id, id.text()) {
            (_, Some(text)) => [
                Some(CallName::Id(text)),
                tool.map(CallName::ToolWithoutId),
                is_generated_id(text).then_some(CallName::NextWithoutId),
            ],
            (CallId::Missing, None) => [
                Some(tool.map_or(CallName::Next, CallName::Tool)),
                None,
                None,
            ],
            (_, None) => [None; 3],
        };
        let names: Vec<CallName> = names.into_iter().flatten().collect();
        let reply = self.reply_entry(json, false);
        // A second result of a call belongs to no other.
        let is_placed = self.pairing.add_result(&names, reply) || self.is_known(id);
        if !is_placed {
            let offset = self.document_origin.offset_of(json);
            self.chains
                .add_misplaced_result(offset, &mut self.pairing.calls);
        }
    }

    fn is_known(&self, id: &CallId) -> bool {
        let digest = id.text().and_then(|id| self.pairing.digest(id));
        digest.is_some_and(|id| self.calls_by_id.contains_key(&id))
    }

    /// Records the id of a call of a kind that toolq doesn't run, which may have a result.
    pub fn note_foreign_call(&mut self, id: &CallId) {
        if let Some(digest) = id.text().and_then(|id| self.pairing.digest(id)) {
            self.calls_by_id.entry(digest).or_default();
        }
    }

    /// Records that the conversation goes on without the results that it hasn't got: a person said something, or the log says
    /// that it was interrupted.
    pub fn go_past_calls(&mut self) {
        self.chains.go_past_calls(&mut self.pairing.calls);
    }

    /// Records that a person said something in the `content` of a message, so that the conversation goes on.
    pub fn person_speaks(&mut self, content: Option<JsonText<'_>>) {
        self.go_past_calls();
        if let Some(content) = content {
            self.chains.add_speech(content);
        }
    }

    /// Returns the entry of a result; `skipped` if it says that the call didn't run.
    pub fn reply_entry(&self, json: JsonText<'_>, skipped: bool) -> ReplyEntry {
        // A result of 4 GiB or more still counts as one, but its text can't be read back.
        let len = u32::try_from(json.get().len()).unwrap_or_default();
        let offset = self.document_origin.offset_of(json);
        ReplyEntry {
            offset,
            len,
            skipped,
        }
    }

    /// Records that a request was read. A request without a model response isn't an error.
    pub fn mark_request(&mut self) {
        self.has_request = true;
    }

    /// Returns whether neither a model response nor a request was read.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty() && !self.has_request
    }

    /// Returns the finished index, and the unknown kinds that nothing answered.
    pub fn finish(self) -> (RecordingIndex, UnknownKinds) {
        let mut calls = self.pairing.finish();
        // A log of several concurrent conversations interleaves their turns.
        calls.sort_by_key(|call| call.turn);
        let index = RecordingIndex {
            turns: self.turns,
            calls,
            shared_ids: self.shared_ids.into(),
            misplaced_results: self.chains.misplaced_results,
        };
        (index, self.chains.finish())
    }
}
