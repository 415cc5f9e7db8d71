//! Messages of JSON-RPC 2.0.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::{Implementation, ProtocolEra, ProtocolVersion};
use redact::Mask;

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
    method: Option<Cow<'t, str>>,
    params: Option<&'t RawValue>,
    result: Option<&'t RawValue>,
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

// The parameters that all requests of MCP may have.

/// The requests of the modern era that a server serves.
pub(crate) const MODERN_METHODS: [&str; 3] = ["server/discover", "tools/list", "tools/call"];

/// What all requests may have.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CommonParams<'t> {
    #[serde(rename = "_meta", borrow)]
    pub(crate) meta: Option<RequestMeta<'t>>,
    /// Where a list goes on.
    #[serde(borrow)]
    pub(crate) cursor: Option<&'t RawValue>,
}

/// `_meta` of a request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'t> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    client_capabilities: Option<&'t RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow)]
    client_info: Option<&'t RawValue>,
    #[serde(rename = "progressToken", borrow)]
    pub(crate) progress_token: Option<&'t RawValue>,
}

impl RequestMeta<'_> {
    /// Returns the version of a modern request; `None` for a legacy one.
    ///
    /// # Errors
    /// What the request lacks, or a version that isn't supported.
    pub(crate) fn version(&self) -> Result<Option<ProtocolVersion>, RpcError> {
        let Some(date) = &self.protocol_version else {
            return Ok(None);
        };
        let version = ProtocolVersion::from_date(date)
            .filter(|version| version.era() == ProtocolEra::Modern)
            .ok_or_else(|| RpcError::unsupported_version(date))?;
        if self.client_capabilities.is_none() {
            let message = "_meta has no io.modelcontextprotocol/clientCapabilities";
            return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
        }
        Ok(Some(version))
    }

    /// Returns what the client says that it can do.
    pub(crate) fn client_capabilities(&self) -> Option<Value> {
        serde_json::from_str(self.client_capabilities?.get()).ok()
    }

    /// Returns the name of the client, if it has one.
    pub(crate) fn client_name(&self) -> Option<String> {
        let info = serde_json::from_str(self.client_info?.get());
        info.ok().map(|client: Implementation| client.name)
    }
}

/// Reads parameters that must be there.
pub(crate) fn read_params<'t, P: Deserialize<'t>>(
    params: Option<&'t RawValue>,
) -> Result<P, RpcError> {
    let json = params.map_or("{}", RawValue::get);
    serde_json::from_str(json).map_err(|error| {
        let message = format!("the parameters can't be read: {error}");
        RpcError::new(RpcError::INVALID_PARAMS, message)
    })
}

/// Reads parameters that may be left out.
pub(crate) fn read_optional_params<'t, P: Deserialize<'t> + Default>(
    params: Option<&'t RawValue>,
) -> Result<P, RpcError> {
    match params {
        Some(_) => read_params(params),
        None => Ok(P::default()),
    }
}

// Errors of JSON-RPC, with the codes that MCP adds.

/// How much of the data of an error is shown.
const MAX_DATA_CHARS: usize = 1_000;

/// The answer to a request that couldn't be served.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RpcError {
    /// What kind of error it is: one of the constants below, or one of the server's own.
    pub code: i64,
    /// A short description.
    #[serde(default)]
    pub message: String,
    /// What else the sender says about the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// The message isn't JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message isn't a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The request's parameters can't be used, or name something unknown.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver doesn't know the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// An HTTP header says something else than the request's body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client didn't declare.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
    /// The server doesn't speak the version of the request. `data.supported` lists those that it does speak.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Reads an error. One in another form is kept as text, with the code 0: it ends its request all the same.
    fn from_raw(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct ErrorMessage {
            message: String,
        }
        serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            let message = serde_json::from_str(raw.get()).map(|error: ErrorMessage| error.message);
            let message = message.or_else(|_| serde_json::from_str(raw.get()));
            Self::new(0, message.unwrap_or_else(|_| raw.get().to_owned()))
        })
    }

    /// Says which versions a request can name, to a client that named another one: the same as `server/discover` does, as the
    /// conformance suite asks.
    pub(crate) fn unsupported_version(requested: &str) -> Self {
        let supported = [ProtocolVersion::LATEST.as_str()];
        let data = serde_json::json!({"supported": supported, "requested": requested});
        Self {
            data: serde_json::value::to_raw_value(&data).ok(),
            ..Self::new(
                Self::UNSUPPORTED_PROTOCOL_VERSION,
                format!("unsupported protocol version {requested}"),
            )
        }
    }

    /// Returns the error without secrets.
    #[must_use]
    pub(crate) fn masked(self, mask: &Mask) -> Self {
        let masked_data = |data: Box<RawValue>| {
            let masked = mask.apply_to_json(data.get()).into_owned();
            RawValue::from_string(masked).ok()
        };
        Self {
            code: self.code,
            message: mask.apply(&self.message).into_owned(),
            data: self.data.and_then(masked_data),
        }
    }

    /// Returns whether only a server of the modern era answers so.
    pub(crate) fn is_modern(&self) -> bool {
        matches!(
            self.code,
            Self::HEADER_MISMATCH
                | Self::MISSING_REQUIRED_CLIENT_CAPABILITY
                | Self::UNSUPPORTED_PROTOCOL_VERSION
        )
    }

    /// Returns the versions in `data.supported`.
    pub(crate) fn supported_versions(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct SupportedVersions {
            supported: Vec<String>,
        }
        let data = self.data.as_deref().map(RawValue::get).unwrap_or_default();
        serde_json::from_str(data)
            .map_or_else(|_| Vec::new(), |data: SupportedVersions| data.supported)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.message {
            "" => "no message",
            message => message,
        })?;
        // Some servers give no code, or one that isn't a number.
        if self.code != 0 {
            write!(f, " (error {})", self.code)?;
        }
        match self.data.as_deref().map(RawValue::get) {
            None | Some("null") => Ok(()),
            Some(data) => {
                let text = serde_json::from_str::<String>(data);
                let text = text.as_deref().unwrap_or(data);
                let shown: String = text.chars().take(MAX_DATA_CHARS).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                write!(f, ": {shown}{more}")
            }
        }
    }
}

/// How much of an overlong line is kept. Enough to find the id of the request that it answers.
pub(crate) const KEPT_BYTES: usize = 4 << 10;
