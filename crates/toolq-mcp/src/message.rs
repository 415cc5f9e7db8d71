//! Messages of JSON-RPC 2.0.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::framing::KEPT_BYTES;
use crate::rpc_error::RpcError;

/// The id of a request: a string or an integer, kept as JSON so that it's echoed as it came.
#[derive(Debug, Clone)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// Returns the id as JSON.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// Returns the id as raw JSON.
    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Returns the id if it is one that we may have given. Some servers make a text or a float of it.
    pub(crate) fn as_number(&self) -> Option<u64> {
        let json = self.as_json();
        let text = json
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let digits = text.unwrap_or(json);
        digits.strip_suffix(".0").unwrap_or(digits).parse().ok()
    }

    /// Reads an id. `null` isn't one, nor is a number with a fraction other than `.0`.
    fn from_raw(raw: &RawValue) -> Option<Self> {
        let json = raw.get();
        let digits = json.strip_prefix('-').unwrap_or(json);
        let digits = digits.strip_suffix(".0").unwrap_or(digits);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_integer || json.starts_with('"')).then(|| Self(raw.to_owned()))
    }
}

/// One message.
#[derive(Debug)]
pub enum Message<'t> {
    /// A call of a method that must be answered.
    Request {
        /// What the answer must carry.
        id: RequestId,
        /// The name of the method.
        method: Cow<'t, str>,
        /// The method's parameters.
        params: Option<&'t RawValue>,
    },
    /// A call of a method without an answer.
    Notification {
        /// The name of the method.
        method: Cow<'t, str>,
        /// The method's parameters.
        params: Option<&'t RawValue>,
    },
    /// The answer to a request.
    Response {
        /// The id of the request. `None` if the other side couldn't read it.
        id: Option<RequestId>,
        /// The result, or why there is no result.
        result: Result<&'t RawValue, RpcError>,
    },
}

/// A line that isn't a message, such as a banner that a server prints at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON-RPC message")]
pub struct NotMessage;

/// The members of all kinds of messages.
#[derive(Deserialize)]
struct MessageMembers<'t> {
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'t, str>>,
    #[serde(borrow)]
    params: Option<&'t RawValue>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
    #[serde(borrow)]
    error: Option<&'t RawValue>,
}

/// Reads a line: one message, or a batch of them as in revision 2025-03-26.
///
/// # Errors
/// The line isn't JSON, or a part of it isn't a message.
pub fn parse_messages(line: &[u8]) -> Result<Vec<Message<'_>>, NotMessage> {
    parse_message_text(str::from_utf8(line).map_err(|_| NotMessage)?)
}

/// As [`parse_messages`], for a line that is known to be text.
pub(crate) fn parse_message_text(line: &str) -> Result<Vec<Message<'_>>, NotMessage> {
    // Some runtimes begin their output with a byte order mark.
    let line = line.trim_start_matches('\u{feff}');
    if line.starts_with('[') {
        let batch: Vec<MessageMembers<'_>> = serde_json::from_str(line).map_err(|_| NotMessage)?;
        return batch.into_iter().map(Message::from_members).collect();
    }
    let members = serde_json::from_str(line).map_err(|_| NotMessage)?;
    Ok(vec![Message::from_members(members)?])
}

impl<'t> Message<'t> {
    /// Returns the parameters. A response has no parameters.
    pub(crate) fn params(&self) -> Option<&'t RawValue> {
        match self {
            Self::Request { params, .. } | Self::Notification { params, .. } => *params,
            Self::Response { .. } => None,
        }
    }

    fn from_members(members: MessageMembers<'t>) -> Result<Self, NotMessage> {
        let MessageMembers {
            id,
            method,
            params,
            result,
            error,
        } = members;
        let id = match id {
            Some(raw) => Some(RequestId::from_raw(raw).ok_or(NotMessage)?),
            None => None,
        };
        match (method, id, result, error) {
            (Some(method), Some(id), ..) => Ok(Self::Request { id, method, params }),
            (Some(method), None, ..) => Ok(Self::Notification { method, params }),
            (None, id, _, Some(error)) => Ok(Self::Response {
                id,
                result: Err(RpcError::from_raw(error)),
            }),
            (None, Some(id), Some(result), None) => Ok(Self::Response {
                id: Some(id),
                result: Ok(result),
            }),
            (None, ..) => Err(NotMessage),
        }
    }
}

// What the beginning of a line says about its message, if the line is too long to be read, or isn't a message.

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
