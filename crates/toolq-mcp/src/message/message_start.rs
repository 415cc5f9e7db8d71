//! What the beginning of a line says about its message, if the line is too long to be read, or isn't a message.

use serde_json::value::RawValue;

use super::{MessageMembers, RequestId};
use crate::framing::KEPT_BYTES;

/// A message of which only the beginning is known.
#[derive(Debug)]
pub(crate) enum MessageStart {
    /// The message must be answered.
    Request(RequestId),
    /// The message answers a request.
    Response(RequestId),
}

impl MessageStart {
    /// Reads the beginning of a line. Returns `None` if no id is in it, or if the line doesn't begin like a message.
    pub(crate) fn read(start: &[u8]) -> Option<Self> {
        let id = read_id(find_member(start, b"\"id\"")?)?;
        let mut members_of_requests = [b"\"method\"", b"\"params\""].into_iter();
        let is_request = members_of_requests.any(|key| find_member(start, key).is_some());
        Some(if is_request {
            Self::Request(id)
        } else {
            Self::Response(id)
        })
    }

    /// Returns the number of the request that the message answers, if that is one that we may have sent.
    pub(crate) fn answered_request(&self) -> Option<u64> {
        match self {
            Self::Response(id) => id.as_number(),
            Self::Request(_) => None,
        }
    }
}

/// Finds out which request a line answers that isn't a message, and what is wrong with it. Returns `None` for a line that
/// doesn't even begin like an answer.
pub(crate) fn find_broken_answer(line: &[u8]) -> Option<(u64, String)> {
    let start = &line[..line.len().min(KEPT_BYTES)];
    find_member(start, b"\"jsonrpc\"")?;
    let request = MessageStart::read(start)?.answered_request()?;
    let error = serde_json::from_slice::<MessageMembers<'_>>(line).err();
    let reason = error.map(|error| error.to_string());
    Some((
        request,
        reason.unwrap_or_else(|| "it has neither a result nor an error".to_owned()),
    ))
}

/// Finds a member of an object of which only the beginning is known. Returns its value, and all that follows.
fn find_member<'b>(start: &'b [u8], key: &[u8]) -> Option<&'b [u8]> {
    let mut depth = 0_u32;
    let mut position = 0;
    while position < start.len() {
        match start[position] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(start, position)?;
                let rest = start[end..].trim_ascii_start();
                if depth == 1 && &start[position..end] == key && rest.first() == Some(&b':') {
                    return Some(rest[1..].trim_ascii_start());
                }
                position = end;
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    None
}

/// Returns the position after the string that begins at `start`.
fn string_end(json: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    loop {
        match json.get(position)? {
            b'"' => return Some(position + 1),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

/// Reads the id that `json` begins with, if its end is there, too.
fn read_id(json: &[u8]) -> Option<RequestId> {
    let end = if json.first() == Some(&b'"') {
        string_end(json, 0)?
    } else {
        let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'.');
        json.iter().position(|byte| !is_of_number(byte))?
    };
    let id = str::from_utf8(&json[..end]).ok()?;
    RequestId::from_raw(&RawValue::from_string(id.to_owned()).ok()?)
}
