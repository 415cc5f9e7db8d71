//! A recording: its turns, with the bodies left where they are until a turn is asked for.

use std::fs::File;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::json::{Json, Object};
use crate::transcript::document_reader::Reading;
use crate::transcript::error::{Fault, InputError};
use crate::transcript::formats::dispatch;
use crate::transcript::frames;
use crate::transcript::ids::{finish, within};
use crate::transcript::index::{Index, ReplyEntry};
use crate::transcript::source::{Kept, Source};
use crate::types::{Call, Dialect, Layout, Recorded, Turn};

/// Calls that stand no farther apart than this are read together, in bytes.
const GAP: u64 = 16 * 1024;

/// An input that was read to its end. Memory holds a few bytes for each call, whatever the size of the bodies.
pub struct Recording {
    kept: Kept,
    index: Index,
    dialect: Dialect,
    layout: Layout,
    stored: Option<Box<LoadStored>>,
    sha256: String,
}

/// Loads what a session log of toolq's keeps in a file: from the JSON that stands for a content to the content, or why it
/// can't be had.
pub type LoadStored = dyn Fn(&str) -> Result<Box<RawValue>, String> + Send + Sync;

/// The result of a call, and where it stands.
#[derive(Debug)]
pub struct Reply {
    /// Its JSON in the input: a block, message, item or record. In bytes.
    pub place: Range<u64>,
    /// That JSON.
    pub json: String,
    /// What it says.
    pub recorded: Recorded,
}

impl Recording {
    /// Reads `source` to its end. The dialect is recognised by form where `from` names none; no single document may have
    /// more than `max_document` bytes.
    ///
    /// # Errors
    /// It can't be read, is no JSON, or is no form of a model's answer: the first such place.
    pub fn read(
        mut source: Source,
        from: Option<Dialect>,
        max_document: u64,
    ) -> Result<Self, InputError> {
        let mut reading = Reading::new(from);
        frames::read(&mut source, max_document, &mut reading)?;
        match reading.missing() {
            Some(fault) => Err(source.locate(fault)),
            None => Ok(Self::of(source, reading)),
        }
    }

    /// The same for one line among others, which need not hold an answer.
    ///
    /// # Errors
    /// The same, but for what holds no answer of a model.
    pub(super) fn read_line(
        mut source: Source,
        from: Option<Dialect>,
        max_document: u64,
    ) -> Result<Self, InputError> {
        let mut reading = Reading::new(from);
        frames::read(&mut source, max_document, &mut reading)?;
        match reading.strange() {
            Some(fault) => Err(source.locate(fault)),
            None => Ok(Self::of(source, reading)),
        }
    }

    fn of(mut source: Source, reading: Reading) -> Self {
        let lines = reading.documents > 1 || reading.log.is_some();
        let index = reading.turns.finish();
        let known = reading.log.or(index.dialect()).or(reading.last);
        Self {
            dialect: known.unwrap_or(Dialect::Anthropic),
            layout: if lines {
                Layout::Lines
            } else {
                Layout::Document
            },
            index,
            sha256: source.sha256(),
            kept: source.keep(),
            stored: None,
        }
    }

    /// The same, where contents that the log keeps in files are loaded by `load` when they are asked for.
    #[must_use]
    pub fn loading(self, load: Box<LoadStored>) -> Self {
        let stored = Some(load);
        Self { stored, ..self }
    }

    /// Loads every such content of a call that waits for an answer, or of `all`, once: nothing is to run before it is
    /// known that the others can be had.
    ///
    /// # Errors
    /// The first that can't.
    pub fn check_stored(&self, all: bool) -> Result<(), InputError> {
        let turns = 0..self.stored.as_ref().map_or(0, |_| self.len());
        turns
            .into_iter()
            .try_for_each(|turn| self.turn(turn, all).map(drop))
    }

    /// The file that its bytes stand in, from the first on; none where a reader has taken some of them before.
    pub fn file(&self) -> Option<&File> {
        self.kept.all_of_it()
    }

    /// The dialect of its calls.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The SHA-256 of its bytes in hexadecimal; empty where its source was not [digested](Source::digested).
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How its turns stand together.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How many turns it has, those without calls included.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no model answered in it: a request that is still to be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many calls wait for an answer: those without a result in the recording, or `all`.
    pub fn open_calls(&self, all: bool) -> usize {
        (0..self.len()).map(|turn| self.open(turn, all)).sum()
    }

    /// How many turns have such a call.
    pub fn open_turns(&self, all: bool) -> usize {
        (0..self.len())
            .filter(|&turn| self.open(turn, all) > 0)
            .count()
    }

    fn open(&self, turn: usize, all: bool) -> usize {
        let is_open = |&call: &usize| all || !self.index.is_answered(call);
        self.index.calls_of(turn).filter(is_open).count()
    }

    /// A turn with its bodies. Calls that have a result in the recording are left out and counted, unless `all`.
    ///
    /// # Errors
    /// The bytes can't be read any more, or are others than before.
    ///
    /// # Panics
    /// There are not so many turns.
    pub fn turn(&self, number: usize, all: bool) -> Result<Turn, InputError> {
        let entry = self.index.turn(number);
        let range = self.index.calls_of(number);
        let left_out = |call: usize| !all && self.index.is_answered(call);
        let wanted: Vec<usize> = range.clone().filter(|&call| !left_out(call)).collect();
        let mut calls = Vec::with_capacity(wanted.len());
        for run in wanted.chunk_by(|&a, &b| self.near(a, b)) {
            self.load(number, range.start, run, &mut calls)?;
        }
        Ok(Turn {
            number,
            answered: range.len() - wanted.len(),
            form: entry.form,
            cut_off: entry.cut_off && wanted.last().is_some_and(|&last| last + 1 == range.end),
            calls,
            started: self.started(number),
        })
    }

    /// How many calls a turn has, those with a result included.
    pub fn calls(&self, turn: usize) -> usize {
        self.index.calls_of(turn).len()
    }

    /// Whether a call of a turn has a result, one that says that it was not run included.
    pub fn has_reply(&self, turn: usize, position: usize) -> bool {
        self.reply_entry(turn, position).is_some()
    }

    /// Whether that result says that the call was not run.
    pub fn is_skipped(&self, turn: usize, position: usize) -> bool {
        let reply = self.reply_entry(turn, position);
        reply.is_some_and(|reply| reply.skipped)
    }

    /// The result of a call of a turn; none where the recording has none.
    ///
    /// # Errors
    /// The bytes can't be read any more, or are others than before.
    pub fn reply(&self, turn: usize, position: usize) -> Result<Option<Reply>, InputError> {
        let Some(entry) = self.reply_entry(turn, position) else {
            return Ok(None);
        };
        let place = entry.offset..entry.offset + u64::from(entry.len);
        let json = self.kept.text(place.start, place.end)?;
        let json = self.whole(&json, entry.offset)?.unwrap_or(json);
        let Ok(Some(object)) = Object::read(&json) else {
            return Err(self.changed(entry.offset));
        };
        let recorded = dispatch::answered(self.dialect, &object);
        Ok(Some(Reply {
            place,
            json,
            recorded,
        }))
    }

    fn reply_entry(&self, turn: usize, position: usize) -> Option<ReplyEntry> {
        let mut calls = self.index.calls_of(turn);
        self.index.reply(calls.nth(position)?)
    }

    /// Positions of calls of a turn that the recording, a log, saw start and not end.
    fn started(&self, number: usize) -> Vec<usize> {
        let range = self.index.calls_of(number);
        let first = range.start;
        let started = range.filter(|&call| self.index.is_started(call));
        started.map(|call| call - first).collect()
    }

    /// Whether two calls stand so near that they are read together.
    fn near(&self, before: usize, after: usize) -> bool {
        let end = self.index.call(before).end();
        (end..=end + GAP).contains(&self.index.call(after).offset)
    }

    /// Reads the calls of a turn that stand near each other, `first` being the turn's first.
    fn load(
        &self,
        turn: usize,
        first: usize,
        run: &[usize],
        calls: &mut Vec<Call>,
    ) -> Result<(), InputError> {
        let (Some(&from), Some(&to)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let begin = self.index.call(from).offset;
        let text = self.kept.text(begin, self.index.call(to).end())?;
        let dialect = self.index.turn(turn).dialect;
        for &call in run {
            let entry = self.index.call(call);
            let object = within(&text, entry, begin).ok_or_else(|| self.changed(entry.offset))?;
            let whole = self.whole(object.json().get(), entry.offset)?;
            let loaded = whole.as_deref().map(Object::read);
            let object = match loaded {
                Some(Ok(Some(loaded))) => loaded,
                _ => object,
            };
            let asked = dispatch::asked(dialect, &object);
            calls.push(finish(turn, call - first, asked, object.json()));
        }
        Ok(())
    }

    /// A record at `offset` with the content that it only names; none where it has its content.
    fn whole(&self, record: &str, offset: u64) -> Result<Option<String>, InputError> {
        let Some(load) = self.stored.as_ref() else {
            return Ok(None);
        };
        let Ok(Some(object)) = Object::read(record) else {
            return Ok(None);
        };
        let is_stored = |content: &Json| content.object().is_some_and(|it| it.has("$file"));
        let Some(named) = object.get("content").filter(is_stored) else {
            return Ok(None);
        };
        let failed = |what| self.kept.locate(Fault::at(offset, what));
        let loaded = load(named.get()).map_err(failed)?;
        let begin = named.get().as_ptr().addr() - record.as_ptr().addr();
        let (before, rest) = record.split_at(begin);
        Ok(Some(
            [before, loaded.get(), &rest[named.get().len()..]].concat(),
        ))
    }

    fn changed(&self, offset: u64) -> InputError {
        let message = "the input changed while it was read";
        self.kept.locate(Fault::at(offset, message))
    }
}
