//! What the headers of a POST say: the form of its body, and the forms of a response that its client takes.

use std::borrow::Cow;

use hyper::HeaderMap;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use toolq_mcp::RpcError;
use toolq_mcp::http::{PostError, PostHeaders};

/// The forms of a response that a client takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptedForms {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// A request's headers, for the protocol.
pub(super) struct RequestHeaders<'r>(pub(super) &'r HeaderMap);

impl AcceptedForms {
    /// Reads `Accept`, which may be missing. Weights don't matter: clients have to take both forms.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, PostError> {
        let headers = RequestHeaders(headers);
        let Some(value) = headers.get(ACCEPT.as_str()) else {
            return Ok(Self {
                json: true,
                events: true,
            });
        };
        let types: Vec<String> = value
            .split(',')
            .filter_map(|entry| entry.split(';').next())
            .map(|kind| kind.trim().to_ascii_lowercase())
            .collect();
        let has = |names: [&str; 3]| types.iter().any(|kind| names.contains(&kind.as_str()));
        let accepted = Self {
            json: has(["application/json", "application/*", "*/*"]),
            events: has(["text/event-stream", "text/*", "*/*"]),
        };
        if accepted.json || accepted.events {
            return Ok(accepted);
        }
        let why =
            "answers are application/json or text/event-stream; the Accept header has neither";
        Err(PostError::new(406, RpcError::INVALID_REQUEST, why))
    }
}

impl PostHeaders for RequestHeaders<'_> {
    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut values = self.0.get_all(name).iter();
        let first = String::from_utf8_lossy(values.next()?.as_bytes());
        let rest = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        Some(rest.fold(first, |all, value| Cow::Owned(format!("{all}, {value}"))))
    }
}

/// Browsers send a few other types without asking first.
pub(super) fn require_json(headers: &HeaderMap) -> Result<(), PostError> {
    let kind = RequestHeaders(headers);
    let kind = kind.get(CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let why = "the Content-Type of a message is application/json";
    Err(PostError::new(415, RpcError::INVALID_REQUEST, why))
}
