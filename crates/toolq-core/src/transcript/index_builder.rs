//! Builds the index of a recording while it's read. Only the offsets of calls and results are kept, not their text.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crate::json::{JsonText, ParsedObject};
use crate::transcript::document::DocumentOrigin;
use crate::transcript::document_error::DocumentError;
use crate::transcript::index::{CallIndexEntry, RecordingIndex, ReplyEntry, TextEntry, TurnEntry};
use crate::transcript::reply_pairing::ReplyPairing;
use crate::types::{AnswerForm, Dialect, ResponseEnding};

/// An index under construction. The reader of a dialect opens turns, adds calls to them, and adds results.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    turns: Vec<TurnEntry>,
    calls: Vec<CallIndexEntry>,
    pairing: ReplyPairing,
    /// Turns that the log names, because their calls aren't next to each other. By digest of the name.
    turns_by_name: HashMap<NonZeroU64, usize>,
    /// The turn that the model's next item belongs to, in dialects where nothing encloses a turn.
    running_turn: Option<usize>,
    /// A request was read, which may have no model response.
    has_request: bool,
    document_origin: DocumentOrigin,
}

impl IndexBuilder {
    /// Starts a document: the calls and results that follow are parts of it.
    pub fn begin_document(&mut self, origin: DocumentOrigin) {
        self.document_origin = origin;
    }

    /// Opens a turn and returns its number.
    pub fn open_turn(&mut self, dialect: Dialect, form: AnswerForm) -> usize {
        self.turns.push(TurnEntry {
            dialect,
            form,
            ending: ResponseEnding::Complete,
            message_id: TextEntry::default(),
            model: TextEntry::default(),
        });
        self.turns.len() - 1
    }

    /// Sets the message or response that a turn comes from, which may have an `id` and a `model`.
    pub fn set_message(&mut self, turn: usize, message: &ParsedObject<'_>) {
        self.turns[turn].message_id = self.text_entry(message.get("id"));
        self.turns[turn].model = self.text_entry(message.get("model"));
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
        if let Some(name) = self.pairing.digest_id(name) {
            self.turns_by_name.insert(name, turn);
        }
        turn
    }

    /// Returns the turn that the log calls `name`.
    pub fn find_named_turn(&self, name: &str) -> Option<usize> {
        self.turns_by_name
            .get(&self.pairing.digest_id(name)?)
            .copied()
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

    /// Sets whether the response ended at a token limit inside a call. A later part of the turn may change it.
    pub fn set_cut_off(&mut self, turn: usize, cut_off: bool) {
        self.turns[turn].ending = match self.turns[turn].ending {
            ResponseEnding::Refused => ResponseEnding::Refused,
            _ if cut_off => ResponseEnding::CutOff,
            _ => ResponseEnding::Complete,
        };
    }

    /// Records that the response was refused, has failed, or was canceled. No later part of the turn changes that.
    pub fn mark_refused(&mut self, turn: usize) {
        self.turns[turn].ending = ResponseEnding::Refused;
    }

    /// Adds the next call of `turn`. `call` is its JSON, a part of the document; `id` is the id that results refer to.
    pub fn add_call<'a>(
        &mut self,
        turn: usize,
        call: JsonText<'a>,
        id: Option<&str>,
    ) -> Result<(), DocumentError<'a>> {
        let too_large = |_| {
            DocumentError::new(
                call,
                "the input is too large: calls are limited to 4 GiB, and turns to 2^32",
            )
        };
        self.calls.push(CallIndexEntry {
            offset: self.document_origin.offset_of(call),
            len: u32::try_from(call.get().len()).map_err(too_large)?,
            turn: u32::try_from(turn).map_err(too_large)?,
        });
        self.pairing.add_call(id);
        Ok(())
    }

    /// Returns the number of calls so far.
    pub fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Adds the result of the call `id`. `json` is its JSON, a part of the document.
    pub fn add_result(&mut self, id: &str, json: JsonText<'_>) {
        self.add_reply(id, json, false);
    }

    /// Records that the call `id` was started.
    pub fn mark_started(&mut self, id: &str) {
        self.pairing.mark_started(id);
    }

    /// Records that the run ended while the call `id` was running. `json` is the record that says so.
    pub fn mark_interrupted(&mut self, id: &str, json: JsonText<'_>) {
        let reply = self.reply_entry(json, false);
        self.pairing.mark_interrupted(id, reply);
    }

    /// Records that the call `id` is in doubt: it may or may not have run. `json` is the record that says so.
    pub fn mark_in_doubt(&mut self, id: &str, json: JsonText<'_>) {
        let reply = self.reply_entry(json, false);
        self.pairing.mark_in_doubt(id, reply);
    }

    /// Resolves the doubt about the call `id`: either it was `done` and `json` is its result, or it's open again.
    pub fn resolve_doubt(&mut self, id: &str, json: JsonText<'_>, done: bool) {
        let reply = done.then(|| self.reply_entry(json, false));
        self.pairing.resolve_doubt(id, reply);
    }

    /// Records that the call `id` didn't run. `json` is the record that says so.
    pub fn mark_skipped(&mut self, id: &str, json: JsonText<'_>) {
        self.add_reply(id, json, true);
    }

    fn add_reply(&mut self, id: &str, json: JsonText<'_>, skipped: bool) {
        let reply = self.reply_entry(json, skipped);
        self.pairing.add_result(id, reply);
    }

    fn reply_entry(&self, json: JsonText<'_>, skipped: bool) -> ReplyEntry {
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

    /// Returns the finished index.
    pub fn finish(self) -> RecordingIndex {
        RecordingIndex::new(self.turns, self.calls, self.pairing.finish())
    }
}
