//! The index of a recording while it is read: where each call stands, in which turn, and which results there are. It
//! holds no body.

use std::collections::HashMap;
use std::num::NonZeroU64;

use crate::json::Json;
use crate::transcript::document::Origin;
use crate::transcript::document_error::Complaint;
use crate::transcript::index::{CallEntry, Index, ReplyEntry, TurnEntry};
use crate::transcript::pairing::Pairing;
use crate::types::{Dialect, Form};

/// The turns so far. A dialect opens turns, adds calls to them, and tells of results.
#[derive(Default)]
pub(crate) struct Turns {
    opened: Vec<TurnEntry>,
    calls: Vec<CallEntry>,
    pairing: Pairing,
    /// Turns that the log gives a name, because their calls stand apart.
    named: HashMap<NonZeroU64, usize>,
    /// The turn to which the next item of the model belongs, where nothing encloses a turn.
    running: Option<usize>,
    /// A request was read: a form that need not hold an answer.
    requested: bool,
    document: Origin,
}

impl Turns {
    /// What follows is read from this document.
    pub fn begin(&mut self, document: Origin) {
        self.document = document;
    }

    /// A new turn; its number.
    pub fn open(&mut self, dialect: Dialect, form: Form) -> usize {
        self.opened.push(TurnEntry {
            dialect,
            form,
            cut_off: false,
        });
        self.opened.len() - 1
    }

    /// The turn that the log calls `name`; opened where the name is new.
    pub fn open_named(&mut self, name: &str, dialect: Dialect, form: Form) -> usize {
        if let Some(turn) = self.named(name) {
            return turn;
        }
        let turn = self.open(dialect, form);
        if let Some(name) = self.pairing.digest(name) {
            self.named.insert(name, turn);
        }
        turn
    }

    /// The turn that the log called `name`.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.named.get(&self.pairing.digest(name)?).copied()
    }

    /// The turn of the model's items that stand one after another; opened by the first.
    pub fn open_running(&mut self, dialect: Dialect, form: Form) -> usize {
        let turn = self.running.unwrap_or_else(|| self.open(dialect, form));
        *self.running.insert(turn)
    }

    /// What follows belongs to no running turn.
    pub fn close_running(&mut self) {
        self.running = None;
    }

    /// Whether the answer ended at a token limit in a call, as far as it is known by now.
    pub fn cut_off(&mut self, turn: usize, cut_off: bool) {
        self.opened[turn].cut_off = cut_off;
    }

    /// The next call of `turn`: `call` is its JSON, a part of the document; `id` is what results name.
    pub fn call<'a>(
        &mut self,
        turn: usize,
        call: Json<'a>,
        id: Option<&str>,
    ) -> Result<(), Complaint<'a>> {
        let too_much = |_| Complaint::new(call, "this is more than can be counted");
        self.calls.push(CallEntry {
            offset: self.document.offset_of(call),
            len: u32::try_from(call.get().len()).map_err(too_much)?,
            turn: u32::try_from(turn).map_err(too_much)?,
        });
        self.pairing.call(id);
        Ok(())
    }

    /// A result that answers `id`; `json` is a part of the document.
    pub fn result(&mut self, id: &str, json: Json<'_>) {
        self.reply(id, json, false);
    }

    /// The word that the call of `id` was started.
    pub fn started(&mut self, id: &str) {
        self.pairing.started(id);
    }

    /// The word that nobody knows whether the call of `id` did its work.
    pub fn in_doubt(&mut self, id: &str, json: Json<'_>) {
        let reply = self.reply_at(json, false);
        self.pairing.in_doubt(id, reply);
    }

    /// The word that the call of `id` was `done`, and this is its result; or that it was not, and is open.
    pub fn resolved(&mut self, id: &str, json: Json<'_>, done: bool) {
        let reply = done.then(|| self.reply_at(json, false));
        self.pairing.resolved(id, reply);
    }

    /// The word that the call of `id` was not run.
    pub fn skipped(&mut self, id: &str, json: Json<'_>) {
        self.reply(id, json, true);
    }

    fn reply(&mut self, id: &str, json: Json<'_>, skipped: bool) {
        let reply = self.reply_at(json, skipped);
        self.pairing.result(id, reply);
    }

    fn reply_at(&self, json: Json<'_>, skipped: bool) -> ReplyEntry {
        // What is too long for a place is answered all the same, and can't be read again.
        let len = u32::try_from(json.get().len()).unwrap_or_default();
        let offset = self.document.offset_of(json);
        ReplyEntry {
            offset,
            len,
            skipped,
        }
    }

    /// A request was read: that nothing is asked in it is no error.
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// Whether neither an answer of a model nor a request was read.
    pub fn is_empty(&self) -> bool {
        self.opened.is_empty() && !self.requested
    }

    /// The index of all that was read.
    pub fn finish(self) -> Index {
        let (replies, started) = self.pairing.finish();
        Index::new(self.opened, self.calls, replies, started)
    }
}
