//! The body of a POST to a server: what it holds, and who has to answer it.

use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::framing::Outbox;
use crate::http::param_headers::{ParamHeaders, PostHeaders, check_call_headers, check_header};
use crate::http::{METHOD_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER};
use crate::message::{
    CommonParams, MODERN_METHODS, Message, RequestId, RequestMeta, RpcError, parse_messages,
    read_optional_params,
};
use crate::protocol::{ProtocolEra, ProtocolVersion};
use redact::Mask;

/// The most messages of a batch. Each may ask for a list of all tools.
const MAX_BATCH: usize = 100;

/// The messages that a client posts at once.
#[derive(Debug)]
pub struct PostedBody<'b> {
    /// The messages: one, except in a batch.
    pub messages: Vec<Message<'b>>,
    /// They are a batch of revision 2025-03-26.
    pub is_batch: bool,
}

/// Who has to answer what was posted.
#[derive(Debug, PartialEq, Eq)]
pub enum PostTarget {
    /// The client is unknown, because a message of the modern era is self-contained.
    Stateless {
        /// What the client calls itself.
        client_name: Option<String>,
    },
    /// A new session: the legacy client greets.
    NewSession,
    /// The session of the legacy era with this id.
    Session(String),
}

/// Why a POST is refused.
#[derive(Debug)]
pub struct PostError {
    /// The status of the HTTP response.
    pub status: u16,
    request: Option<RequestId>,
    error: RpcError,
}

impl PostError {
    /// Creates an error that belongs to no request.
    pub fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self {
            status,
            request: None,
            error: RpcError::new(code, message),
        }
    }

    fn of_request(status: u16, request: Option<&RequestId>, error: RpcError) -> Self {
        Self {
            status,
            request: request.cloned(),
            error,
        }
    }

    /// Returns the body of the response: the error as JSON-RPC, without secrets.
    pub fn to_json(&self, mask: &Mask) -> Vec<u8> {
        let mut outbox = Outbox::default();
        let error = self.error.clone().masked(mask);
        outbox.error(self.request.as_ref(), error);
        outbox.take()
    }
}

impl<'b> PostedBody<'b> {
    /// Reads a body.
    ///
    /// # Errors
    /// It isn't JSON or a message, or is a batch that is empty or too long.
    pub fn read(body: &'b [u8]) -> Result<Self, PostError> {
        let messages = parse_messages(body.trim_ascii()).map_err(|_| {
            if serde_json::from_slice::<IgnoredAny>(body).is_err() {
                PostError::new(400, RpcError::PARSE_ERROR, "the body isn't JSON")
            } else {
                let why = "the body isn't a JSON-RPC message";
                PostError::new(400, RpcError::INVALID_REQUEST, why)
            }
        })?;
        if messages.is_empty() {
            let why = "the batch is empty";
            return Err(PostError::new(400, RpcError::INVALID_REQUEST, why));
        }
        if messages.len() > MAX_BATCH {
            let why = "a batch has at most 100 messages";
            return Err(PostError::new(400, RpcError::INVALID_REQUEST, why));
        }
        Ok(Self {
            is_batch: body.trim_ascii_start().first() == Some(&b'['),
            messages,
        })
    }

    /// Returns how many of the messages are requests, which need an answer.
    pub fn requests(&self) -> usize {
        let is_request = |message: &&Message<'_>| matches!(message, Message::Request { .. });
        self.messages.iter().filter(is_request).count()
    }

    /// Returns whether a request is a call.
    pub fn has_calls(&self) -> bool {
        self.messages.iter().any(
            |message| matches!(message, Message::Request { method, .. } if method == "tools/call"),
        )
    }

    /// Returns whether a request asks how far it is.
    pub fn wants_progress(&self) -> bool {
        self.messages.iter().any(|message| {
            let meta = request_meta(message.params());
            meta.is_ok_and(|meta| meta.progress_token.is_some())
        })
    }

    /// Finds out who has to answer, and checks that the headers say what the body does. `tools` has the headers that the
    /// tools ask for, by their names.
    ///
    /// # Errors
    /// Why the messages are refused, with the status that the specification asks for.
    pub fn target(
        &self,
        headers: &impl PostHeaders,
        tools: &HashMap<String, ParamHeaders>,
    ) -> Result<PostTarget, PostError> {
        let version = headers.get(PROTOCOL_VERSION_HEADER);
        let is_legacy_version = |date: &str| {
            let version = ProtocolVersion::from_date(date);
            version.is_some_and(|version| version.era() == ProtocolEra::Legacy)
        };
        let is_modern_header = version
            .as_deref()
            .is_some_and(|date| !is_legacy_version(date));
        let is_modern = is_modern_header || self.messages.iter().any(has_version);
        if is_modern {
            return self.check_modern(headers, tools);
        }
        if let [Message::Request { method, .. }] = &self.messages[..]
            && method == "initialize"
        {
            return Ok(PostTarget::NewSession);
        }
        if let Some(id) = headers.get(SESSION_ID_HEADER) {
            return Ok(PostTarget::Session(id.into_owned()));
        }
        let why = "neither _meta with io.modelcontextprotocol/protocolVersion nor an Mcp-Session-Id header, which the \
                   answer to initialize has";
        let error = RpcError::new(RpcError::INVALID_PARAMS, why);
        Err(PostError::of_request(400, self.request_id(), error))
    }

    fn check_modern(
        &self,
        headers: &impl PostHeaders,
        tools: &HashMap<String, ParamHeaders>,
    ) -> Result<PostTarget, PostError> {
        let refuse = |status, error| PostError::of_request(status, self.request_id(), error);
        let (method, params) = match &self.messages[..] {
            [Message::Request { method, params, .. }] if !self.is_batch => (method, *params),
            // Nothing that clients tell has a meaning here: to cancel a request, they close its response.
            [Message::Notification { .. }] if !self.is_batch => {
                return Ok(PostTarget::Stateless { client_name: None });
            }
            _ => {
                let why = "since 2026-07-28, a body is one request or one notification";
                return Err(refuse(400, RpcError::new(RpcError::INVALID_REQUEST, why)));
            }
        };
        let meta = request_meta(params).map_err(|error| refuse(400, error))?;
        check_version(headers, &meta).map_err(|error| refuse(400, error))?;
        let method_header = check_header(headers, METHOD_HEADER, "the method", method);
        method_header.map_err(|error| refuse(400, error))?;
        if !MODERN_METHODS.contains(&method.as_ref()) {
            let why = format!("this server doesn't serve {method}");
            return Err(refuse(404, RpcError::new(RpcError::METHOD_NOT_FOUND, why)));
        }
        if method == "tools/call" {
            check_call_headers(headers, params, tools).map_err(|error| refuse(400, error))?;
        }
        Ok(PostTarget::Stateless {
            client_name: meta.client_name(),
        })
    }

    /// Returns the id of the only request.
    fn request_id(&self) -> Option<&RequestId> {
        match &self.messages[..] {
            [Message::Request { id, .. }] => Some(id),
            _ => None,
        }
    }
}

fn request_meta(params: Option<&RawValue>) -> Result<RequestMeta<'_>, RpcError> {
    let common: CommonParams<'_> = read_optional_params(params)?;
    Ok(common.meta.unwrap_or_default())
}

fn has_version(message: &Message<'_>) -> bool {
    let meta = request_meta(message.params());
    meta.is_ok_and(|meta| meta.protocol_version.is_some())
}

/// Checks that header and body name the same version, and that it is one that is served.
fn check_version(headers: &impl PostHeaders, meta: &RequestMeta<'_>) -> Result<(), RpcError> {
    match (&meta.protocol_version, headers.get(PROTOCOL_VERSION_HEADER)) {
        (Some(date), _) => {
            check_header(headers, PROTOCOL_VERSION_HEADER, "_meta", date)?;
            meta.version().map(|_| ())
        }
        (None, Some(date)) if ProtocolVersion::from_date(&date).is_none() => {
            Err(RpcError::unsupported_version(&date))
        }
        (None, _) => {
            let why = "_meta has no io.modelcontextprotocol/protocolVersion";
            Err(RpcError::new(RpcError::INVALID_PARAMS, why))
        }
    }
}
