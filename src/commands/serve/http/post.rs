//! A POST: its body is read within limits, its messages reach their client, and the answers become the response.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response, StatusCode};
use tokio::time::timeout;
use toolq_mcp::http::{PostError, PostHeaders, PostTarget, PostedBody, SESSION_ID_HEADER};
use toolq_mcp::server::ServerSession;
use toolq_mcp::{ProtocolVersion, RpcError};

use crate::commands::serve::http::CLIENT_TIMEOUT;
use crate::commands::serve::http::endpoint::{OpenEndpoint, json_response, unknown_session};
use crate::commands::serve::http::reply::{
    ClientLifeline, HttpReplyBody, PostMessages, empty_body, open_reply,
};
use crate::commands::serve::random_id::new_random_id;
use crate::commands::serve::served_client::{ClientIdentity, ServedClient};

/// The largest body.
const MAX_BODY_BYTES: usize = 4 << 20;

/// What messages have led to once their client has them.
struct PostDelivery {
    /// The messages of the response.
    messages: PostMessages,
    /// The id of the session that they have begun.
    session_id: Option<String>,
    /// Whether the response is a stream of events.
    is_stream: bool,
}

impl OpenEndpoint {
    /// Answers a POST.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) async fn answer_post(
        &self,
        request: &Parts,
        body: Incoming,
        peer: IpAddr,
    ) -> Result<Response<HttpReplyBody>, PostError> {
        require_json(&request.headers)?;
        let accepted = AcceptedForms::of(&request.headers)?;
        let body = self.read_body(body).await?;
        let posted = PostedBody::read(&body)?;
        let headers = RequestHeaders(&request.headers);
        let catalog = self.settings.catalog.current();
        let target = posted.target(&headers, catalog.known_param_headers())?;
        let (requests, is_batch) = (posted.requests(), posted.is_batch);
        let delivery = self.deliver(posted, target, peer, accepted)?;
        let mut response = if requests == 0 {
            accepted_response()
        } else if delivery.is_stream {
            event_response(delivery.messages)
        } else {
            whole_response(delivery.messages, is_batch).await
        };
        if let Some(id) = delivery
            .session_id
            .and_then(|id| HeaderValue::from_str(&id).ok())
        {
            response.headers_mut().insert(SESSION_ID_HEADER, id);
        }
        Ok(response)
    }

    /// Hands messages to their client.
    ///
    /// # Errors
    /// There is no such session, or no room for a new one.
    fn deliver(
        &self,
        posted: PostedBody<'_>,
        target: PostTarget,
        peer: IpAddr,
        accepted: AcceptedForms,
    ) -> Result<PostDelivery, PostError> {
        let protocol = || {
            let catalog = self.settings.catalog.clone();
            ServerSession::new(catalog).with_mask(Arc::clone(&self.settings.mask))
        };
        let (client, lifeline, new_session) = match target {
            PostTarget::Stateless { client_name } => {
                let ip = peer.to_canonical();
                let identity = ClientIdentity::Address { ip, client_name };
                let client = Arc::new(ServedClient::new(identity, protocol()));
                let lifeline = ClientLifeline {
                    client: Arc::clone(&client),
                    calls: Arc::clone(&self.calls),
                };
                (client, Some(lifeline), None)
            }
            PostTarget::Session(id) => {
                let client = self.sessions.find(&id, Instant::now(), &self.calls);
                let client = client.ok_or_else(unknown_session)?;
                require_batch_version(&posted, client.legacy_version())?;
                (client, None, None)
            }
            PostTarget::NewSession => {
                let id = new_random_id().ok_or_else(no_room)?;
                let identity = ClientIdentity::Session(id.clone());
                let client = Arc::new(ServedClient::new(identity, protocol()));
                (client, None, Some(id))
            }
        };
        let may_ask = posted.has_calls() && client.takes_questions();
        let has_more_than_answers = posted.wants_progress() || may_ask;
        let is_stream = accepted.events && (has_more_than_answers || !accepted.json);
        let (reply, messages) = open_reply(is_stream, lifeline);
        client.receive(&self.calls, &reply, |protocol| {
            protocol.receive_messages(posted.messages)
        });
        // Parameters that can't be read begin no session.
        let new_session = new_session.filter(|_| client.legacy_version().is_some());
        if let Some(id) = &new_session
            && !self
                .sessions
                .insert(id.clone(), client, Instant::now(), &self.calls)
        {
            return Err(no_room());
        }
        Ok(PostDelivery {
            messages,
            session_id: new_session,
            is_stream,
        })
    }

    /// Reads the body, within its size, its time, and the memory for all bodies.
    async fn read_body(&self, body: Incoming) -> Result<Bytes, PostError> {
        let too_large = || {
            let why = format!("the body is larger than {MAX_BODY_BYTES} bytes");
            PostError::new(413, RpcError::INVALID_REQUEST, why)
        };
        let announced = body.size_hint().exact().unwrap_or(MAX_BODY_BYTES as u64);
        if announced > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let read = async {
            let memory = u32::try_from(announced.div_ceil(1024)).unwrap_or(u32::MAX);
            // Nothing closes the semaphore.
            let _permit = self.body_memory.acquire_many(memory).await;
            Limited::new(body, MAX_BODY_BYTES).collect().await
        };
        match timeout(CLIENT_TIMEOUT, read).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(PostError::new(
                400,
                RpcError::INVALID_REQUEST,
                "the body can't be read",
            )),
            Err(_) => {
                let seconds = CLIENT_TIMEOUT.as_secs();
                let why = format!("the body didn't arrive within {seconds} s");
                Err(PostError::new(408, RpcError::INVALID_REQUEST, why))
            }
        }
    }
}

/// Only revision 2025-03-26 has batches.
fn require_batch_version(
    posted: &PostedBody<'_>,
    version: Option<ProtocolVersion>,
) -> Result<(), PostError> {
    if !posted.is_batch || version == Some(ProtocolVersion::V2025_03_26) {
        return Ok(());
    }
    let why = "only revision 2025-03-26 has batches, and this session agreed on another one";
    Err(PostError::new(400, RpcError::INVALID_REQUEST, why))
}

fn no_room() -> PostError {
    let why = "there are too many sessions; try again later";
    PostError::new(503, RpcError::INVALID_REQUEST, why)
}

// What the headers of a POST say: the form of its body, and the forms of a response that its client takes.

/// The forms of a response that a client takes.
#[derive(Debug, Clone, Copy)]
struct AcceptedForms {
    json: bool,
    events: bool,
}

/// A request's headers, for the protocol.
struct RequestHeaders<'r>(pub(super) &'r HeaderMap);

impl AcceptedForms {
    /// Reads `Accept`, which may be missing. Weights don't matter: clients have to take both forms.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, PostError> {
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
fn require_json(headers: &HeaderMap) -> Result<(), PostError> {
    let kind = RequestHeaders(headers);
    let kind = kind.get(CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let why = "the Content-Type of a message is application/json";
    Err(PostError::new(415, RpcError::INVALID_REQUEST, why))
}

// The response to a POST: nothing, all answers at once, or a stream of events.

fn accepted_response() -> Response<HttpReplyBody> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn event_response(messages: PostMessages) -> Response<HttpReplyBody> {
    let mut response = Response::new(messages.into_events());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies pass on each event at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Waits for all messages. There are no messages for a call that its client has canceled.
async fn whole_response(messages: PostMessages, is_batch: bool) -> Response<HttpReplyBody> {
    let lines = messages.collect().await;
    if lines.is_empty() {
        return accepted_response();
    }
    let json = if is_batch { batch_json(&lines) } else { lines };
    json_response(StatusCode::OK, json)
}

/// Puts the messages, each in a line, into an array.
fn batch_json(lines: &[u8]) -> Vec<u8> {
    let mut json = vec![b'['];
    for line in lines.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(line);
        }
    }
    json.push(b']');
    json
}
