//! Recordings: inputs that were read to their end. The bodies of calls and results stay in the file until requested.

use std::fs::File;
use std::sync::{Arc, mpsc};
use std::thread;

use crate::transcript::body_reader::{BodyReader, RecordedReply, StoredContentLoader};
use crate::transcript::document_frames;
use crate::transcript::document_reader::DocumentReader;
use crate::transcript::index::{CallIndexEntry, RecordingIndex, ReplyEntry};
use crate::transcript::input_source::{InputError, InputSource, OffsetError};
use crate::transcript::reply_pairing::UnknownKinds;
use crate::types::{Dialect, InputLayout, ResponseEnding, Turn, TurnOrigin};

/// Number of turns that the reading thread hands over at once: waking the other one takes longer than reading a short turn.
const CHUNK_TURNS: usize = 8;

/// Returns the error for a document that asks for something that toolq doesn't know, and for nothing else.
fn unknown_kinds_error(kinds: &UnknownKinds) -> OffsetError {
    let names: Vec<String> = kinds
        .keys()
        .map(|kind| format!("`{}`", kind.escape_debug()))
        .collect();
    let message = format!(
        "the model asks for what toolq doesn't run: {}",
        names.join(", ")
    );
    OffsetError::at(0, message).hint("calls are read in the formats that `--from` names")
}

/// An input that was read to its end. Memory use is a few bytes per call, whatever the size of the bodies.
pub struct Recording {
    bodies: BodyReader,
    index: RecordingIndex,
    dialect: Dialect,
    layout: InputLayout,
    sha256: String,
    /// Unknown kinds of blocks that the model's last messages have, some of which may be calls.
    unknown_kinds: Vec<String>,
    /// What is missing at its end, if something is.
    damage: Option<InputError>,
    /// Where the first result is that may be that of an open call, but names none.
    misplaced_result: Option<InputError>,
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
        if let Some(error) = reader.take_error() {
            return Err(source.locate(error));
        }
        Self::from_reader(source, reader)
    }

    /// Like [`read`](Self::read), for one line of a larger input, which may have no model response.
    /// `earlier_log_dialect` is that of the session log that the lines before it showed.
    ///
    /// # Errors
    /// As for [`read`](Self::read), except that a line without a model response isn't an error.
    pub(super) fn read_line(
        mut source: InputSource,
        (given_dialect, earlier_log_dialect): (Option<Dialect>, Option<Dialect>),
        max_document: u64,
    ) -> Result<Self, InputError> {
        let mut reader = DocumentReader::for_line(given_dialect, earlier_log_dialect);
        document_frames::read_documents(&mut source, max_document, &mut reader)?;
        if let Some(error) = reader.unrecognized.take() {
            return Err(source.locate(error));
        }
        Self::from_reader(source, reader)
    }

    /// Creates the recording of what was read.
    ///
    /// # Errors
    /// It is a single document that asks for something, but only in ways that toolq doesn't know.
    fn from_reader(mut source: InputSource, reader: DocumentReader) -> Result<Self, InputError> {
        let has_several = reader.document_count > 1 || reader.log_dialect.is_some();
        let (index, unknown_kinds) = reader.index_builder.finish();
        let asks_unknown = !has_several && unknown_kinds.values().any(|is_call| *is_call);
        if asks_unknown && !index.calls.iter().any(CallIndexEntry::is_open) {
            return Err(source.locate(unknown_kinds_error(&unknown_kinds)));
        }
        let detected = reader
            .log_dialect
            .or(index.dialect())
            .or(reader.last_dialect);
        let misplaced = index
            .calls
            .iter()
            .find_map(CallIndexEntry::misplaced_result);
        let message = "this result fits no call, so calls that it may belong to don't run";
        let misplaced = misplaced.map(|offset| source.locate(OffsetError::at(offset, message)));
        Ok(Self {
            misplaced_result: misplaced,
            unknown_kinds: unknown_kinds.into_keys().collect(),
            damage: reader.nul_end.map(|end| source.locate(end)),
            dialect: detected.unwrap_or(Dialect::Anthropic),
            layout: if has_several {
                InputLayout::Lines
            } else {
                InputLayout::Document
            },
            index,
            sha256: source.take_sha256(),
            bodies: BodyReader::new(source.into_spooled()),
        })
    }

    /// Sets the loader of content that the log keeps in separate files. It's called when the content is requested.
    #[must_use]
    pub fn with_content_loader(mut self, loader: Box<StoredContentLoader>) -> Self {
        self.bodies.content_loader = Some(loader);
        self
    }

    /// Checks that the stored content of every open call can be loaded, or of every call with `include_answered`. To be
    /// used before anything runs, so that missing content doesn't fail a run halfway.
    ///
    /// # Errors
    /// The first content that can't be loaded.
    pub fn check_stored_content(&self, include_answered: bool) -> Result<(), InputError> {
        if self.bodies.content_loader.is_none() {
            return Ok(());
        }
        (0..self.len()).try_for_each(|turn| self.turn(turn, include_answered).map(drop))
    }

    /// Returns the file if the recording is all of it, and `None` if the file was read partway before.
    pub fn file(&self) -> Option<&File> {
        self.bodies.file()
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
        self.index.turns.len()
    }

    /// Returns unknown kinds of blocks that the model's last messages have, some of which may be calls.
    pub fn unknown_kinds(&self) -> &[String] {
        &self.unknown_kinds
    }

    /// Returns what is missing at its end, if something is. What stands before it was read.
    pub fn damage(&self) -> Option<&InputError> {
        self.damage.as_ref()
    }

    /// Sets the line of a larger input that it is.
    #[must_use]
    pub(super) fn on_line(mut self, line: usize) -> Self {
        let place = self.misplaced_result.as_mut();
        if let Some(position) = place.and_then(|error| error.position.as_mut()) {
            position.line = line;
        }
        self
    }

    /// Returns where the first result is that may be that of an open call, but names none, if there is one.
    pub fn misplaced_result(&self) -> Option<&InputError> {
        self.misplaced_result.as_ref()
    }

    /// Returns the number of results that name no call.
    pub fn misplaced_results(&self) -> usize {
        self.index.misplaced_results
    }

    /// Returns the number of calls without a result without which the conversation went on.
    pub fn abandoned_calls(&self) -> usize {
        self.index
            .calls
            .iter()
            .filter(|call| call.is_abandoned())
            .count()
    }

    /// Returns whether a call is one of them.
    pub fn is_abandoned(&self, turn: usize, position: usize) -> bool {
        let call = self.index.calls_of_turn(turn).get(position);
        call.is_some_and(CallIndexEntry::is_abandoned)
    }

    /// Returns whether it has no model response: a request that hasn't been sent yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of open calls, or of all calls with `include_answered`.
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
        let calls = self.index.calls_of_turn(turn).iter();
        calls
            .filter(|call| include_answered || call.is_open())
            .count()
    }

    /// Reads a turn with the inputs of its calls. Calls that have a result in the recording, or were abandoned, are left out,
    /// unless `include_answered`.
    ///
    /// # Errors
    /// The bytes can't be read anymore, or have changed.
    ///
    /// # Panics
    /// If `number` isn't less than [`len`](Self::len).
    pub fn turn(&self, number: usize, include_answered: bool) -> Result<Turn, InputError> {
        let entry = self.index.turns[number];
        let calls = self.index.calls_of_turn(number);
        let positions = |is_chosen: &dyn Fn(&CallIndexEntry) -> bool| {
            let calls = calls.iter().enumerate();
            let chosen = calls.filter(|(_, call)| is_chosen(call));
            chosen.map(|(position, _)| position).collect::<Vec<usize>>()
        };
        let wanted = positions(&|call| include_answered || call.is_open());
        let abandoned = positions(&|call| !include_answered && call.is_abandoned());
        let read = |wanted: &[usize]| {
            self.bodies
                .read_calls(calls, (number, entry.dialect), wanted)
        };
        Ok(Turn {
            number,
            answered_count: calls.len() - wanted.len() - abandoned.len(),
            abandoned: read(&abandoned)?,
            answer_form: entry.form,
            broken_from: None,
            ending: match entry.ending {
                ResponseEnding::CutOff
                    if wanted.last().is_none_or(|&last| last + 1 != calls.len()) =>
                {
                    ResponseEnding::Complete
                }
                ending => ending,
            },
            origin: if wanted.is_empty() {
                TurnOrigin::default()
            } else {
                TurnOrigin {
                    shared_ids: Arc::clone(&self.index.shared_ids),
                    ..self.bodies.read_origin(entry)?
                }
            },
            calls: read(&wanted)?,
            started_positions: positions(&|call| call.is_started),
            in_doubt_positions: positions(&|call| call.is_in_doubt),
            unsure_positions: positions(&|call| {
                !include_answered && call.misplaced_result().is_some()
            }),
        })
    }

    /// Calls `visit` with each [turn](Self::turn), in order. If there are many, another thread reads the next ones meanwhile.
    ///
    /// # Errors
    /// A turn can't be read, or the first error of `visit`.
    pub fn for_each_turn<E: From<InputError>>(
        &self,
        include_answered: bool,
        mut visit: impl FnMut(Turn) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut chunks = (0..self.len()).step_by(CHUNK_TURNS).map(|first| {
            let numbers = first..self.len().min(first + CHUNK_TURNS);
            let turns = numbers.map(|number| self.turn(number, include_answered));
            turns.collect::<Vec<_>>()
        });
        // A thread costs a small input more than it saves.
        if chunks.len() < 2 {
            return chunks.flatten().try_for_each(|turn| visit(turn?));
        }
        let (sender, ahead) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            // Sending fails once nobody wants more.
            scope.spawn(move || chunks.try_for_each(|turns| sender.send(turns).ok()));
            ahead
                .into_iter()
                .flatten()
                .try_for_each(|turn| visit(turn?))
        })
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
        let entry = self.reply_entry(turn, position);
        entry
            .map(|entry| self.bodies.read_reply(self.dialect, entry))
            .transpose()
    }

    fn reply_entry(&self, turn: usize, position: usize) -> Option<ReplyEntry> {
        self.index.calls_of_turn(turn).get(position)?.reply
    }
}
