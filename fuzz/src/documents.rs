//! Documents of every dialect: each call is found once and in order, and what is read twice is the same.

use std::io::Cursor;

use serde_json::Value;
use toolq_core::transcript::{FollowedLine, InputError, InputSource, LineFollower, Recording};
use toolq_core::types::Dialect;

use crate::choices::cut_at_random;

/// Maximum size of a document, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 16 << 10;
/// Maximum number of lines that are also followed one by one, since each needs a temporary file.
const MAX_FOLLOWED_LINES: usize = 4;

/// Reads a document. If the first byte is 1 to 6, it gives the dialect of the rest.
pub fn documents(data: &[u8]) {
    let given = data.first().and_then(|first| {
        let number = usize::from(*first).checked_sub(1)?;
        Dialect::ALL.get(number).copied()
    });
    let text = &data[usize::from(given.is_some())..];
    match read_recording(text, given) {
        Ok(recording) => check_recording(&recording, text, given),
        Err(error) => check_position(&error, text),
    }
    if text.split(|byte| *byte == b'\n').count() <= MAX_FOLLOWED_LINES {
        let whole = follow([text], given);
        assert_eq!(follow(cut_at_random(text), given), whole, "lines in pieces");
    }
}

pub(crate) fn read_recording(
    text: &[u8],
    given_dialect: Option<Dialect>,
) -> Result<Recording, InputError> {
    let source = InputSource::from_pipe("input", Cursor::new(text.to_vec()))?;
    Recording::read(source, given_dialect, MAX_DOCUMENT_BYTES)
}

/// An error is at a place that exists.
fn check_position(error: &InputError, text: &[u8]) {
    let position = error.position.unwrap();
    let line = text
        .split(|byte| *byte == b'\n')
        .nth(position.line.wrapping_sub(1));
    let line = line.unwrap_or_else(|| panic!("no such line: {error}"));
    let is_inside = (1..=line.len() + 1).contains(&position.column);
    assert!(is_inside, "no such column: {error}");
}

fn check_recording(recording: &Recording, text: &[u8], given: Option<Dialect>) {
    let mut open_calls = 0;
    for number in 0..recording.len() {
        open_calls += check_turn(recording, text, number);
    }
    assert_eq!(recording.open_calls(false), open_calls);
    let all_calls: usize = (0..recording.len())
        .map(|number| recording.call_count(number))
        .sum();
    assert_eq!(recording.open_calls(true), all_calls);
    if let Some(expected) = given.is_none().then(|| calls_of_message(text)).flatten() {
        let turns = (0..recording.len()).map(|number| recording.turn(number, true).unwrap());
        let calls = turns.flat_map(|turn| turn.calls);
        let found: Vec<(String, String)> =
            calls.map(|call| (call.id, call.name.to_string())).collect();
        assert_eq!(found, expected);
    }
}

/// Checks a turn, and returns how many of its calls have no result.
fn check_turn(recording: &Recording, text: &[u8], number: usize) -> usize {
    let all = recording.turn(number, true).unwrap();
    assert_eq!((all.number, all.answered_count), (number, 0));
    assert_eq!(all.calls.len(), recording.call_count(number));
    for (position, call) in all.calls.iter().enumerate() {
        assert_eq!((call.turn, call.position), (number, position));
    }
    let open = recording.turn(number, false).unwrap();
    assert_eq!(open.calls.len() + open.answered_count, all.calls.len());
    assert!(
        open.calls.is_sorted_by_key(|call| call.position),
        "calls out of order"
    );
    for call in &open.calls {
        assert_eq!(
            format!("{call:?}"),
            format!("{:?}", all.calls[call.position])
        );
    }
    for position in 0..all.calls.len() {
        let reply = recording.reply(number, position).unwrap();
        assert_eq!(reply.is_some(), recording.has_reply(number, position));
        let is_open = open.calls.iter().any(|call| call.position == position);
        assert!(is_open || reply.is_some(), "an answered call has no result");
        if let Some(reply) = reply {
            let range = &reply.byte_range;
            let bytes = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert_eq!(&text[bytes], reply.json.as_bytes());
        }
    }
    open.calls.len()
}

/// Returns the ids and names of the calls of a response, read from a tree. `None` if the text is anything but a plain
/// response of Anthropic's or `OpenAI`'s, or a call in it lacks one of them.
fn calls_of_message(text: &[u8]) -> Option<Vec<(String, String)>> {
    let document: Value = serde_json::from_slice(text).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let id = |value: &Value| text(value).filter(|id| !matches!(id.trim(), "" | "null"));
    if document["type"] == "message"
        && document["role"] == "assistant"
        && document.get("messages").is_none()
    {
        let blocks = document["content"].as_array()?.iter();
        let calls = blocks.filter(|block| block["type"] == "tool_use");
        return calls
            .map(|call| Some((id(&call["id"])?, text(&call["name"])?)))
            .collect();
    }
    let choices = document["choices"].as_array().filter(|_| {
        document
            .as_object()
            .is_some_and(|document| document.len() == 1)
    })?;
    let [choice] = choices.as_slice() else {
        return None;
    };
    let message = choice["message"].as_object()?;
    if message.get("role")? != "assistant" || message.contains_key("function_call") {
        return None;
    }
    let calls = message.get("tool_calls")?.as_array()?.iter();
    let calls = calls.map(|call| {
        let is_function = call["type"] == "function";
        Some((
            id(&call["id"]).filter(|_| is_function)?,
            text(&call["function"]["name"])?,
        ))
    });
    calls.collect()
}

/// Follows an input line by line, as it arrives in `pieces`.
fn follow<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, given: Option<Dialect>) -> Vec<String> {
    let mut follower = LineFollower::new("lines", given, MAX_DOCUMENT_BYTES);
    let mut lines = Vec::new();
    for piece in pieces {
        follower.push(piece);
        lines.extend(follower.by_ref().map(summarize_line));
    }
    follower.end_line();
    lines.extend(follower.map(summarize_line));
    lines
}

fn summarize_line(line: FollowedLine) -> String {
    match line {
        FollowedLine::ApiError(error) | FollowedLine::Invalid(error) => error.to_string(),
        FollowedLine::Recording(recording) => {
            let turns = (0..recording.len()).map(|number| recording.turn(number, true).unwrap());
            format!("{:?}", turns.collect::<Vec<_>>())
        }
    }
}
