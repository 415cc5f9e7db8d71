//! Streams of chat completions: chunks that refer to a call by its `index`.
//!
//! Servers differ: calls arrive whole or in pieces; some servers repeat ids, names or whole calls, some use index 0 for every
//! call, and some send another chunk after the last one, or a new id with every chunk. Nothing marks the end of a call but the
//! start of the next one, or the finish reason.

use std::borrow::Cow;

use crate::json::{JsonKind, JsonText, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentResult};
use crate::transcript::formats::StreamFormat;
use crate::transcript::formats::conversation::{
    alternatives_error, find_unknown_members, read_objects,
};
use crate::transcript::formats::openai_chat::{
    OpenAiChat, ending, has_refusal, reject_legacy_call,
};
use crate::transcript::index::CallId;
use crate::transcript::raw_call::{self, find_input, non_empty_text};
use crate::transcript::stream::{Arrival, Block, Messages, UNCLEAR_INPUT, call_kind};
use crate::types::{AnswerForm, Dialect, ResponseEnding};

/// Members of a delta that aren't copied to the message: what is put together elsewhere.
const DELTA_KEYS: [&str; 3] = ["role", "tool_calls", "function_call"];

impl StreamFormat for OpenAiChat {
    fn is_event(&self, event: &ParsedObject) -> bool {
        event.has_value("choices")
    }

    /// A chunk has pieces of several choices only if the request asked for them. Calls may stand in one of them.
    fn read_event<'a>(
        &self,
        chunk: &ParsedObject<'a>,
        messages: &mut Messages,
    ) -> DocumentResult<'a> {
        let choices = chunk.get_unique("choices")?.and_then(JsonText::objects);
        for choice in choices.into_iter().flatten().flatten() {
            read_choice(chunk, &choice, messages)?;
        }
        Ok(())
    }
}

fn read_choice<'a>(
    chunk: &ParsedObject<'a>,
    choice: &ParsedObject<'a>,
    messages: &mut Messages,
) -> DocumentResult<'a> {
    let delta = choice.get_unique("delta")?.and_then(JsonText::object);
    // Some servers send the whole message, in place of a delta or beside it.
    let message = choice.get_unique("message")?.and_then(JsonText::object);
    let parts: Vec<ParsedObject> = delta.into_iter().chain(message).collect();
    if !belongs_to_message(chunk, &parts, messages)? {
        return Ok(());
    }
    let index = choice
        .get("index")
        .and_then(|index| index.get().parse().ok())
        .unwrap_or(0);
    for part in &parts {
        reject_legacy_call(part)?;
        if has_refusal(part) {
            messages.refine_ending(ResponseEnding::Refused);
        }
        for kind in find_unknown_members(part, &DELTA_KEYS) {
            messages.add_unknown_kind(&kind, true);
        }
    }
    if let Some(part) = calling_part(&parts) {
        read_calls(choice, part, index, messages)?;
    }
    if let (Some(part), 0, Some(record)) = (parts.first(), index, messages.record()) {
        record.add_members(part, &DELTA_KEYS);
    }
    match choice.get_unique_text("finish_reason")?.as_deref() {
        // Some servers send an empty reason until there is one.
        None | Some("") => {}
        Some("error") => return Err(raw_call::stream_error(choice)),
        Some(reason) => {
            // Another choice may still bring the calls.
            let is_other = messages.has_calls() && messages.choice != Some(index);
            if !is_other {
                messages.stop(ending(reason));
                messages.stopped_choice = Some(index);
            }
            // The input of a call that has none so far may come later, and another choice may have calls.
            if messages.has_calls() && !is_other && !messages.has_uncertain_calls() {
                messages.close();
            }
        }
    }
    Ok(())
}

/// Returns the first part of a message that has calls, or what should be some.
fn calling_part<'p, 'a>(parts: &'p [ParsedObject<'a>]) -> Option<&'p ParsedObject<'a>> {
    let is_empty = |calls: JsonText| calls.elements().is_some_and(|calls| calls.is_empty());
    let mut parts = parts.iter();
    parts.find(|part| {
        let calls = part.get("tool_calls").filter(|calls| !calls.is_null());
        calls.is_some_and(|calls| !is_empty(calls))
    })
}

fn read_calls<'a>(
    choice: &ParsedObject<'a>,
    part: &ParsedObject<'a>,
    index: u64,
    messages: &mut Messages,
) -> DocumentResult<'a> {
    let Some(calls) = part.get_unique("tool_calls")? else {
        return Ok(());
    };
    let pieces = calls
        .objects()
        .ok_or_else(|| DocumentError::not_an_array("tool_calls", calls))?;
    read_objects(pieces, "a tool call", |piece| {
        match messages.choice {
            Some(known) if known != index => return Err(alternatives_error(choice.json())),
            Some(_) => {}
            None => {
                if messages.has_stopped() && messages.stopped_choice == Some(index) {
                    messages.mark_late();
                }
                messages.choice = Some(index);
            }
        }
        read_call_piece(piece, messages)
    })
}

/// Returns whether a chunk belongs to the open message. Opens a message if none is open. After the end of a message,
/// some servers send another chunk of it, without calls.
///
/// A different id alone doesn't begin another message, because some servers change it with every chunk. It must come
/// with a role.
fn belongs_to_message<'a>(
    chunk: &ParsedObject<'a>,
    parts: &[ParsedObject<'a>],
    messages: &mut Messages,
) -> Result<bool, DocumentError<'a>> {
    let id = non_empty_text(chunk, "id");
    let first = parts.first();
    let has_role = first.is_some_and(|part| non_empty_text(part, "role").is_some());
    let has_calls = calling_part(parts).is_some();
    if let Some(open) = messages.open_id() {
        let is_same = id.is_none() || open.is_empty() || id.as_deref() == Some(open);
        if !has_role || is_same {
            return Ok(true);
        }
        if !messages.has_stopped() {
            let text = "another message begins before the end of this one";
            return Err(DocumentError::new(chunk.json(), text));
        }
        messages.close();
    }
    let (dialect, form) = (Dialect::OpenAiChat, AnswerForm::OpenAiChat);
    let name = id.as_deref().unwrap_or_default();
    if messages.last_closed_id.as_deref() == Some(name) {
        if has_calls {
            messages.open_late(dialect, form, Some(chunk));
        }
        return Ok(has_calls);
    }
    if messages.last_closed_id.is_some() && !has_role && !has_calls {
        return Ok(false);
    }
    messages.open(dialect, form, Some(chunk));
    Ok(true)
}

/// An entry of `tool_calls`.
struct CallPiece<'p, 'a> {
    entry: &'p ParsedObject<'a>,
    is_custom: bool,
    index: Option<u64>,
    id: CallId<'a>,
    name: Option<Cow<'a, str>>,
    input: Option<JsonText<'a>>,
    /// It isn't certain what its piece of an input is.
    has_unclear_input: bool,
}

impl<'p, 'a> CallPiece<'p, 'a> {
    fn new(entry: &'p ParsedObject<'a>) -> Result<Self, DocumentError<'a>> {
        let custom = entry.get_object("custom");
        let is_custom = custom.is_some();
        let function = custom.or_else(|| entry.get_object("function"));
        for object in [Some(entry), function.as_ref()].into_iter().flatten() {
            if let Some(key) = object.duplicate_key() {
                let key = key.escape_debug();
                let message = format!("the key `{key}` appears twice in one object");
                return Err(DocumentError::new(object.json(), message));
            }
        }
        let key = if is_custom { "input" } else { "arguments" };
        let input = match &function {
            Some(function) => find_input(&[function, entry], key),
            None => find_input(&[entry], key),
        };
        Ok(Self {
            entry,
            is_custom,
            index: entry
                .get("index")
                .and_then(|index| index.get().parse().ok()),
            id: CallId::read(entry, "id"),
            name: function
                .as_ref()
                .and_then(|function| non_empty_text(function, "name")),
            has_unclear_input: input.is_err(),
            input: input
                .ok()
                .flatten()
                .filter(|input| !input.is_null() && input.get() != "\"\""),
        })
    }

    /// Returns the input if it could be that of a whole call.
    fn whole_input(&self) -> Option<Cow<'a, str>> {
        let text = match self.input? {
            input if input.kind() == JsonKind::String => input.to_text()?,
            input => input.get().into(),
        };
        let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        (is_whole && text.trim_start().starts_with('{')).then_some(text)
    }
}

/// What a piece means for the call that its place refers to.
enum Piece {
    /// It belongs to this call.
    Of(usize),
    /// It repeats this call.
    Again,
    /// It begins another call.
    New,
    /// There is no such call, and it doesn't begin one.
    Stray,
}

fn read_call_piece<'a>(entry: &ParsedObject<'a>, messages: &mut Messages) -> DocumentResult<'a> {
    let piece = CallPiece::new(entry)?;
    let number = match place_piece(&piece, messages) {
        Piece::Again => return Ok(()),
        Piece::Stray => {
            messages.break_uncertain("a piece of a call belongs to no call");
            return Ok(());
        }
        Piece::Of(number) => number,
        Piece::New => {
            refuse_late_name(&piece, messages);
            end_last_call(messages);
            let block = Block {
                may_be_piece: piece.id.is_missing() && piece.name.is_none(),
                ..Block::new(call_kind(piece.is_custom), piece.index)
            };
            let block = block.called(piece.id.clone(), piece.name.clone());
            messages.begin(block, piece.entry)
        }
    };
    name_late(number, &piece, messages);
    let has_id = |number| {
        messages
            .block(number)
            .is_some_and(|block| !block.id.is_missing())
    };
    if !has_id(number) {
        messages.set_call_id(number, piece.id.clone());
    }
    if let Some(id) = piece.id.text() {
        messages.add_call_id(number, id);
    }
    messages.set_name(number, piece.name.clone());
    if piece.has_unclear_input {
        messages.break_at(number, UNCLEAR_INPUT);
    }
    match piece.input {
        Some(input) if input.kind() == JsonKind::String => {
            messages.add_piece(Some(number), input);
        }
        // Some servers send an object, which is whole.
        Some(input) => messages.add_json_piece(number, input),
        None => {}
    }
    Ok(())
}

/// What is said where an input comes before its call, and may be that of another one.
const ANONYMOUS: &str = "its input began before anything said whose it is";

/// Takes a piece that names a call whose input is there already. A whole input may come first, unless it may be that of a call that
/// has none yet.
fn name_late(number: usize, piece: &CallPiece, messages: &mut Messages) {
    let is_named = !piece.id.is_missing() || piece.name.is_some();
    let Some(call) = messages.block_mut(number).filter(|call| {
        let is_anonymous = call.id.is_missing() && call.name.is_none();
        is_named && is_anonymous && call.input.arrival() != Arrival::Nothing
    }) else {
        return;
    };
    call.was_named_late = true;
    if call.input.arrival() != Arrival::Whole || call.group != number {
        messages.break_at(number, ANONYMOUS);
    }
}

/// Where another call begins under the index of one that was named late, an index says little, and the input may be the new one's.
fn refuse_late_name(piece: &CallPiece, messages: &mut Messages) {
    let at = piece.index.and_then(|index| messages.find_index(index));
    if let Some(at) = at
        && messages.block(at).is_some_and(|call| call.was_named_late)
    {
        messages.break_at(at, ANONYMOUS);
    }
}

/// Finds out which call a piece belongs to.
fn place_piece(piece: &CallPiece, messages: &Messages) -> Piece {
    let by_index = piece.index.and_then(|index| messages.find_index(index));
    let by_id = piece.id.text().and_then(|id| messages.find_call_id(id));
    // Further ids of a call say less than an index: they may be those of any call.
    let is_own = |call: &usize| {
        let known = messages.block(*call);
        known.is_some_and(|known| known.id.text() == piece.id.text())
    };
    let by_id = by_id.filter(|call| by_index.is_none_or(|at| at == *call) || is_own(call));
    let at = by_index.and_then(|at| messages.block(at));
    let has_known_id =
        at.is_some_and(|at| at.id.text().is_some() && at.id.text() == piece.id.text());
    let is_named = piece.name.is_some();
    match (by_index, by_id) {
        (Some(at), _) if has_known_id => continue_call(at, piece, messages),
        // The id belongs to another call than the index: nothing says which is right.
        (Some(at), Some(other)) if at != other => Piece::Stray,
        // A new id with a name at a known index begins a call. Without a name, the call goes on under another id.
        (Some(_), None) if is_named && !piece.id.is_missing() && at.is_some_and(is_begun) => {
            Piece::New
        }
        (Some(at), _) => continue_call(at, piece, messages),
        (None, Some(_)) if is_named && piece.index.is_some() => Piece::New,
        (None, Some(other)) => continue_call(other, piece, messages),
        (None, None) => place_new_piece(piece, messages),
    }
}

/// Returns whether another id and another name can't belong to a call: it has some of its own, or all of its input.
fn is_begun(call: &Block) -> bool {
    let is_whole = call.input.arrival() == Arrival::Whole;
    match (call.id.is_missing(), &call.name) {
        (false, Some(_)) => true,
        (true, None) => false,
        (_, _) => is_whole,
    }
}

/// Finds out what a piece means whose index and id are both new, or missing.
fn place_new_piece(piece: &CallPiece, messages: &Messages) -> Piece {
    let is_named = piece.name.is_some();
    if piece.index.is_some() || !piece.id.is_missing() {
        // A call may get its name later.
        return if is_named || piece.index.is_some() {
            Piece::New
        } else {
            Piece::Stray
        };
    }
    match messages.last_block() {
        None => Piece::New,
        Some(last) if is_named => continue_call(last, piece, messages),
        Some(_) => messages.only_open_block().map_or(Piece::Stray, Piece::Of),
    }
}

/// Finds out whether a piece goes on with a call whose place it has, repeats it, or begins another one: some servers send
/// whole calls, all in the same place and without ids.
fn continue_call(number: usize, piece: &CallPiece, messages: &Messages) -> Piece {
    let Some(known) = messages.block(number) else {
        return Piece::New;
    };
    let (Arrival::Whole, Some(input)) = (known.input.arrival(), piece.whole_input()) else {
        return Piece::Of(number);
    };
    let has_same_name = piece.name.is_none() || piece.name.as_deref() == known.name.as_deref();
    let has_same_id = piece.id.is_missing() || piece.id.text() == known.id.text();
    if has_same_name && has_same_id && known.input.is_already(&input) {
        return Piece::Again;
    }
    // After an empty input, another one could be the real one.
    let is_placeholder = has_same_name && known.input.is_already("{}");
    if piece.name.is_some() && piece.id.is_missing() && known.id.is_missing() && !is_placeholder {
        return Piece::New;
    }
    Piece::Of(number)
}

/// Ends the last call because another one begins, unless the end of its input is yet to come: some servers alternate between
/// calls.
fn end_last_call(messages: &mut Messages) {
    if let Some(last) = messages.last_block() {
        let known = messages.block(last);
        let is_whole = known
            .is_some_and(|known| known.name.is_some() && known.input.arrival() == Arrival::Whole);
        if is_whole {
            messages.end_block(last);
        }
    }
}
