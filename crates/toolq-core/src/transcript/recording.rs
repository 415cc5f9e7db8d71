//! Recordings: inputs that were read to their end. The bodies of calls and results stay in the file until requested.

use std::borrow::Cow;
use std::fs::File;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::json::{JsonText, ParsedObject};
use crate::transcript::build_call::{call_with_id, extract_call};
use crate::transcript::document_frames;
use crate::transcript::document_reader::DocumentReader;
use crate::transcript::formats::dispatch;
use crate::transcript::index::{RecordingIndex, ReplyEntry, TextEntry, TurnEntry};
use crate::transcript::input_error::{InputError, OffsetError};
use crate::transcript::input_source::{InputSource, SpooledInput};
use crate::types::{Call, Dialect, InputLayout, RecordedResult, ResponseEnding, Turn, TurnOrigin};

/// Calls are read together if the gap between them is at most this many bytes.
const MAX_READ_GAP_BYTES: u64 = 16 * 1024;

/// An input that was read to its end. Memory use is a few bytes per call, whatever the size of the bodies.
pub struct Recording {
    spooled: SpooledInput,
    index: RecordingIndex,
    dialect: Dialect,
    layout: InputLayout,
    content_loader: Option<Box<StoredContentLoader>>,
    sha256: String,
}

/// Loads content that toolq's session log keeps in a separate file: takes the JSON that refers to the file, and returns
/// the content or why it isn't available.
pub type StoredContentLoader = dyn Fn(&str) -> Result<Box<RawValue>, String> + Send + Sync;

/// The result of a call, and its place in the input.
#[derive(Debug)]
pub struct RecordedReply {
    /// Byte range of its JSON in the input: a block, message, item, or record.
    pub byte_range: Range<u64>,
    /// That JSON, with stored content loaded.
    pub json: String,
    /// The parsed result.
    pub result: RecordedResult,
}

impl Recording {
    /// Reads `source` to its end. Without `given_dialect`, the dialect is detected. A single document may have at most
    /// `max_document` bytes.
    ///
    /// # Errors
    /// The source can't be read, isn't valid JSON, or isn't a model response in any form. The error is about the first
    /// such place.
    pub fn read(
        mut source: InputSource,
        given_dialect: Option<Dialect>,
        max_document: u64,
    ) -> Result<Self, InputError> {
        let mut reader = DocumentReader::new(given_dialect);
        document_frames::read_documents(&mut source, max_document, &mut reader)?;
        match reader.take_error() {
            Some(error) => Err(source.locate(error)),
            None => Ok(Self::from_reader(source, reader)),
        }
    }

    /// Like [`read`](Self::read), for one line of a larger input, which may have no model response.
    ///
    /// # Errors
    /// As for [`read`](Self::read), except that a line without a model response isn't an error.
    pub(super) fn read_line(
        mut source: InputSource,
        given_dialect: Option<Dialect>,
        max_document: u64,
    ) -> Result<Self, InputError> {
        let mut reader = DocumentReader::new(given_dialect);
        document_frames::read_documents(&mut source, max_document, &mut reader)?;
        match reader.take_unrecognized() {
            Some(error) => Err(source.locate(error)),
            None => Ok(Self::from_reader(source, reader)),
        }
    }

    fn from_reader(mut source: InputSource, reader: DocumentReader) -> Self {
        let has_several = reader.document_count > 1 || reader.log_dialect.is_some();
        let index = reader.index_builder.finish();
        let detected = reader
            .log_dialect
            .or(index.dialect())
            .or(reader.last_dialect);
        Self {
            dialect: detected.unwrap_or(Dialect::Anthropic),
            layout: if has_several {
                InputLayout::Lines
            } else {
                InputLayout::Document
            },
            index,
            sha256: source.take_sha256(),
            spooled: source.into_spooled(),
            content_loader: None,
        }
    }

    /// Sets the loader of content that the log keeps in separate files. It's called when the content is requested.
    #[must_use]
    pub fn with_content_loader(self, loader: Box<StoredContentLoader>) -> Self {
        let content_loader = Some(loader);
        Self {
            content_loader,
            ..self
        }
    }

    /// Checks that the stored content of every open call can be loaded, or of every call with `include_answered`. To be
    /// used before anything runs, so that missing content doesn't fail a run halfway.
    ///
    /// # Errors
    /// The first content that can't be loaded.
    pub fn check_stored_content(&self, include_answered: bool) -> Result<(), InputError> {
        let turns = 0..self.content_loader.as_ref().map_or(0, |_| self.len());
        turns
            .into_iter()
            .try_for_each(|turn| self.turn(turn, include_answered).map(drop))
    }

    /// Returns the file if the recording is all of it, and `None` if the file was read partway before.
    pub fn file(&self) -> Option<&File> {
        self.spooled.whole_file()
    }

    /// Returns the dialect of its calls.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the SHA-256 of its bytes in hexadecimal. Empty unless its source was created with
    /// [`with_digest`](InputSource::with_digest).
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns whether it is one document or a sequence of them.
    pub fn layout(&self) -> InputLayout {
        self.layout
    }

    /// Returns the number of turns, including those without calls.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether it has no model response: a request that hasn't been sent yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of calls without a result in the recording, or of all calls with `include_answered`.
    pub fn open_calls(&self, include_answered: bool) -> usize {
        (0..self.len())
            .map(|turn| self.open_calls_of_turn(turn, include_answered))
            .sum()
    }

    /// Returns the number of turns that have such a call.
    pub fn open_turns(&self, include_answered: bool) -> usize {
        (0..self.len())
            .filter(|&turn| self.open_calls_of_turn(turn, include_answered) > 0)
            .count()
    }

    fn open_calls_of_turn(&self, turn: usize, include_answered: bool) -> usize {
        let is_open = |&call: &usize| include_answered || !self.index.is_answered(call);
        self.index.calls_of_turn(turn).filter(is_open).count()
    }

    /// Reads a turn with the inputs of its calls. Calls that have a result in the recording are counted but left out,
    /// unless `include_answered`.
    ///
    /// # Errors
    /// The bytes can't be read anymore, or have changed.
    ///
    /// # Panics
    /// If `number` isn't less than [`len`](Self::len).
    pub fn turn(&self, number: usize, include_answered: bool) -> Result<Turn, InputError> {
        let entry = self.index.turn(number);
        let range = self.index.calls_of_turn(number);
        let is_left_out = |call: usize| !include_answered && self.index.is_answered(call);
        let wanted: Vec<usize> = range.clone().filter(|&call| !is_left_out(call)).collect();
        let mut calls = Vec::with_capacity(wanted.len());
        for run in wanted.chunk_by(|&a, &b| self.are_near(a, b)) {
            self.load_calls(number, range.start, run, &mut calls)?;
        }
        Ok(Turn {
            number,
            answered_count: range.len() - wanted.len(),
            answer_form: entry.form,
            ending: match entry.ending {
                ResponseEnding::CutOff
                    if wanted.last().is_none_or(|&last| last + 1 != range.end) =>
                {
                    ResponseEnding::Complete
                }
                ending => ending,
            },
            origin: if wanted.is_empty() {
                TurnOrigin::default()
            } else {
                self.turn_origin(entry)?
            },
            calls,
            started_positions: self.positions(number, RecordingIndex::is_started),
            in_doubt_positions: self.positions(number, RecordingIndex::is_in_doubt),
        })
    }

    fn turn_origin(&self, turn: TurnEntry) -> Result<TurnOrigin, InputError> {
        Ok(TurnOrigin {
            input: None,
            message_id: self.read_string(turn.message_id)?,
            model: self.read_string(turn.model)?,
        })
    }

    fn read_string(&self, text: TextEntry) -> Result<Option<String>, InputError> {
        if text.len == 0 {
            return Ok(None);
        }
        let end = text.offset + u64::from(text.len);
        let json = self.spooled.read_text(text.offset, end)?;
        Ok(JsonText::new(&json).to_text().map(Cow::into_owned))
    }

    /// Returns the number of calls in a turn, including those with a result.
    pub fn call_count(&self, turn: usize) -> usize {
        self.index.calls_of_turn(turn).len()
    }

    /// Returns whether a call has a result, even one that says that it didn't run.
    pub fn has_reply(&self, turn: usize, position: usize) -> bool {
        self.reply_entry(turn, position).is_some()
    }

    /// Returns whether a call has a result that says that it didn't run.
    pub fn is_skipped(&self, turn: usize, position: usize) -> bool {
        let reply = self.reply_entry(turn, position);
        reply.is_some_and(|reply| reply.skipped)
    }

    /// Reads the result of a call, if the recording has one.
    ///
    /// # Errors
    /// The bytes can't be read anymore, or have changed.
    pub fn reply(&self, turn: usize, position: usize) -> Result<Option<RecordedReply>, InputError> {
        let Some(entry) = self.reply_entry(turn, position) else {
            return Ok(None);
        };
        let byte_range = entry.offset..entry.offset + u64::from(entry.len);
        let json = self.spooled.read_text(byte_range.start, byte_range.end)?;
        let json = self
            .load_stored_content(&json, entry.offset)?
            .unwrap_or(json);
        let Ok(Some(object)) = ParsedObject::parse(&json) else {
            return Err(self.changed_error(entry.offset));
        };
        let result = dispatch::parse_result(self.dialect, &object);
        Ok(Some(RecordedReply {
            byte_range,
            json,
            result,
        }))
    }

    fn reply_entry(&self, turn: usize, position: usize) -> Option<ReplyEntry> {
        let mut calls = self.index.calls_of_turn(turn);
        self.index.reply(calls.nth(position)?)
    }

    /// Returns the positions of the calls of a turn for which `predicate` holds.
    fn positions(
        &self,
        number: usize,
        predicate: impl Fn(&RecordingIndex, usize) -> bool,
    ) -> Vec<usize> {
        let range = self.index.calls_of_turn(number);
        let first = range.start;
        let calls = range.filter(|&call| predicate(&self.index, call));
        calls.map(|call| call - first).collect()
    }

    /// Returns whether two calls are close enough to be read together.
    fn are_near(&self, before: usize, after: usize) -> bool {
        let end = self.index.call(before).end();
        (end..=end + MAX_READ_GAP_BYTES).contains(&self.index.call(after).offset)
    }

    /// Reads the calls of `run`, which are close to each other, in one go. `first` is the first call of their turn.
    fn load_calls(
        &self,
        turn: usize,
        first: usize,
        run: &[usize],
        calls: &mut Vec<Call>,
    ) -> Result<(), InputError> {
        let (Some(&first_call), Some(&last_call)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let begin = self.index.call(first_call).offset;
        let text = self
            .spooled
            .read_text(begin, self.index.call(last_call).end())?;
        let dialect = self.index.turn(turn).dialect;
        for &call in run {
            let entry = self.index.call(call);
            let object = extract_call(&text, entry, begin)
                .ok_or_else(|| self.changed_error(entry.offset))?;
            let completed = self.load_stored_content(object.json().get(), entry.offset)?;
            let loaded = completed.as_deref().map(ParsedObject::parse);
            let object = match loaded {
                Some(Ok(Some(loaded))) => loaded,
                _ => object,
            };
            let raw = dispatch::parse_call(dialect, &object);
            calls.push(call_with_id(turn, call - first, raw));
        }
        Ok(())
    }

    /// Returns the record at `offset` with its stored content in place, or `None` if the record refers to none.
    fn load_stored_content(&self, record: &str, offset: u64) -> Result<Option<String>, InputError> {
        let Some(load_content) = self.content_loader.as_ref() else {
            return Ok(None);
        };
        let Ok(Some(object)) = ParsedObject::parse(record) else {
            return Ok(None);
        };
        let is_stored = |content: &JsonText| {
            content
                .object()
                .is_some_and(|object| object.has_value("$file"))
        };
        let Some(reference) = object.get("content").filter(is_stored) else {
            return Ok(None);
        };
        let failed = |message| self.spooled.locate(OffsetError::at(offset, message));
        let loaded = load_content(reference.get()).map_err(failed)?;
        let begin = reference.get().as_ptr().addr() - record.as_ptr().addr();
        let (before, rest) = record.split_at(begin);
        Ok(Some(
            [before, loaded.get(), &rest[reference.get().len()..]].concat(),
        ))
    }

    fn changed_error(&self, offset: u64) -> InputError {
        let message = "the input changed while being read";
        self.spooled.locate(OffsetError::at(offset, message))
    }
}
