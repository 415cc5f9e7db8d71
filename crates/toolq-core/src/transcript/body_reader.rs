//! Reads the bodies of calls and results, which a recording keeps only in its file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::{JsonText, ParsedObject};
use crate::transcript::formats::{dialect_of_result, format_of};
use crate::transcript::index::{CallIndexEntry, ReplyEntry, TextEntry, TurnEntry};
use crate::transcript::input_source::{InputError, OffsetError, SpooledInput};
use crate::transcript::raw_call::extract_call;
use crate::types::{Call, Dialect, RecordedResult, TurnOrigin};

/// Calls are read together if the gap between them is at most this many bytes.
const MAX_READ_GAP_BYTES: u64 = 16 * 1024;
/// How much is read at once, in bytes, unless a single call is larger.
const MAX_READ_BYTES: u64 = 1024 * 1024;

/// Loads content that toolq's session log keeps in a separate file: takes the JSON that refers to the file, and returns
/// the content or why it isn't available.
pub type StoredContentLoader = dyn Fn(&str) -> Result<Box<RawValue>, String> + Send + Sync;

/// The result of a call, and its place in the input.
#[derive(Debug)]
pub struct RecordedReply {
    /// The dialect that its form shows.
    pub dialect: Dialect,
    /// Byte range of its JSON in the input: a block, message, item, or record.
    pub byte_range: Range<u64>,
    /// That JSON, with stored content loaded.
    pub json: String,
    /// The parsed result.
    pub result: RecordedResult,
}

/// Reads what an index refers to. Each method fails if the bytes can't be read anymore, or have changed.
pub(crate) struct BodyReader {
    pub(super) spooled: SpooledInput,
    pub(super) content_loader: Option<Box<StoredContentLoader>>,
}

impl BodyReader {
    pub(crate) fn new(spooled: SpooledInput) -> Self {
        Self {
            spooled,
            content_loader: None,
        }
    }

    /// Returns the file if the recording is all of it, and `None` if the file was read partway before.
    pub(crate) fn file(&self) -> Option<&File> {
        self.spooled.whole_file()
    }

    /// Reads where a turn comes from.
    pub(crate) fn read_origin(&self, turn: TurnEntry) -> Result<TurnOrigin, InputError> {
        Ok(TurnOrigin {
            input: None,
            message_id: self.read_string(turn.message_id)?,
            model: self.read_string(turn.model)?,
            before: turn.before,
            ..TurnOrigin::default()
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

    /// Reads the result of a call.
    pub(crate) fn read_reply(
        &self,
        dialect: Dialect,
        entry: ReplyEntry,
    ) -> Result<RecordedReply, InputError> {
        let byte_range = entry.offset..entry.offset + u64::from(entry.len);
        let json = self.spooled.read_text(byte_range.start, byte_range.end)?;
        let json = self
            .load_stored_content(&json, entry.offset)?
            .unwrap_or(json);
        let Ok(Some(object)) = ParsedObject::parse(&json) else {
            return Err(self.changed_error(entry.offset));
        };
        let dialect = dialect_of_result(dialect, &object);
        let result = format_of(dialect).parse_result(&object);
        Ok(RecordedReply {
            dialect,
            byte_range,
            json,
            result,
        })
    }

    /// Reads the `wanted` calls of a turn, which are sorted. Those that are close to each other are read in one go, as far as
    /// that isn't too much.
    pub(crate) fn read_calls(
        &self,
        of_turn: &[CallIndexEntry],
        turn: (usize, Dialect),
        wanted: &[usize],
    ) -> Result<Vec<Call>, InputError> {
        let are_near = |&before: &usize, &after: &usize| {
            let end = of_turn[before].end();
            (end..=end + MAX_READ_GAP_BYTES).contains(&of_turn[after].offset)
        };
        let mut calls = Vec::with_capacity(wanted.len());
        let mut names = HashSet::new();
        for near in wanted.chunk_by(are_near) {
            let read_of =
                |&call: &usize| (of_turn[call].end() - of_turn[near[0]].offset) / MAX_READ_BYTES;
            for run in near.chunk_by(|before, after| read_of(before) == read_of(after)) {
                let read_before = calls.len();
                self.read_run(of_turn, turn, run, &mut calls)?;
                share_names(&mut calls[read_before..], &mut names);
            }
        }
        Ok(calls)
    }

    fn read_run(
        &self,
        of_turn: &[CallIndexEntry],
        (turn, dialect): (usize, Dialect),
        run: &[usize],
        calls: &mut Vec<Call>,
    ) -> Result<(), InputError> {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let begin = of_turn[first].offset;
        let text = self.spooled.read_text(begin, of_turn[last].end())?;
        for &position in run {
            let entry = of_turn[position];
            let object = extract_call(&text, entry, begin)
                .ok_or_else(|| self.changed_error(entry.offset))?;
            let completed = self.load_stored_content(object.json().get(), entry.offset)?;
            let loaded = completed.as_deref().map(ParsedObject::parse);
            let object = match loaded {
                Some(Ok(Some(loaded))) => loaded,
                _ => object,
            };
            let raw = format_of(dialect).parse_call(&object);
            calls.push(raw.into_call(turn, position));
        }
        Ok(())
    }

    /// Returns the record at `offset` with its stored content in place, or `None` if the record doesn't refer to stored
    /// content.
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

/// Lets calls with the same name share it: a turn may have a million calls, but of few tools.
fn share_names(calls: &mut [Call], names: &mut HashSet<Arc<str>>) {
    for call in calls {
        match names.get(&call.name) {
            Some(name) => call.name = Arc::clone(name),
            None => {
                names.insert(Arc::clone(&call.name));
            }
        }
    }
}
