//! A POST: its body is read within limits, its messages reach their client, and the answers become the response.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response, StatusCode};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::commands::serve::http::sessions::{Sessions, unknown_session};
use crate::commands::serve::open_calls::OpenCalls;
use crate::commands::serve::served_client::{
    ClientIdentity, ReplyChannel, ServedClient, new_random_id,
};
use toolq_mcp::http::{PostError, PostHeaders, PostTarget, PostedBody, SESSION_ID_HEADER};
use toolq_mcp::server::{ServerSession, ToolCatalog};
use toolq_mcp::{ProtocolVersion, RpcError};

/// The largest body.
const MAX_BODY_BYTES: usize = 4 << 20;

/// How much memory the bodies that are being read may take, in KiB.
const BODY_MEMORY_KIB: usize = 64 << 10;

/// Answers POSTs.
pub(super) struct PostHandler {
    catalog: Arc<ToolCatalog>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) sessions: Sessions,
    body_memory: Semaphore,
}

impl PostHandler {
    pub(super) fn new(catalog: Arc<ToolCatalog>, calls: Arc<OpenCalls>) -> Self {
        Self {
            catalog,
            calls,
            sessions: Sessions::default(),
            body_memory: Semaphore::new(BODY_MEMORY_KIB),
        }
    }

    /// Answers a POST.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) async fn answer(
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
        let param_headers = self.catalog.known_param_headers();
        let target = posted.target(&headers, param_headers)?;
        let (requests, is_batch) = (posted.requests(), posted.is_batch);
        let (messages, session_id, is_stream) = self.deliver(posted, target, peer, accepted)?;
        let mut response = if requests == 0 {
            accepted_response()
        } else if is_stream {
            event_response(messages)
        } else {
            whole_response(messages, is_batch).await
        };
        if let Some(id) = session_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            response.headers_mut().insert(SESSION_ID_HEADER, id);
        }
        Ok(response)
    }

    /// Hands messages to their client. Returns the messages of the response, the id of the session that they have begun, and
    /// whether the response is a stream of events.
    ///
    /// # Errors
    /// There is no such session, or no room for a new one.
    fn deliver(
        &self,
        posted: PostedBody<'_>,
        target: PostTarget,
        peer: IpAddr,
        accepted: AcceptedForms,
    ) -> Result<(PostMessages, Option<String>, bool), PostError> {
        let protocol = || {
            let catalog = Arc::clone(&self.catalog);
            ServerSession::new(catalog).with_mask(Arc::clone(&self.calls.mask))
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
        self.calls.take_messages(&client, &reply, |protocol| {
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
        Ok((messages, new_session, is_stream))
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
struct RequestHeaders<'r>(&'r HeaderMap);

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
    let mut response = Response::new(Either::Right(messages));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies pass on each event at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Waits for all messages. There are no messages for a call that its client has canceled.
async fn whole_response(messages: PostMessages, is_batch: bool) -> Response<HttpReplyBody> {
    let lines = messages.into_lines().await;
    if lines.is_empty() {
        return accepted_response();
    }
    let json = if is_batch { batch_json(&lines) } else { lines };
    json_response(StatusCode::OK, json)
}

pub(super) fn json_response(status: StatusCode, json: Vec<u8>) -> Response<HttpReplyBody> {
    let mut response = Response::new(full_body(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
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

// The response to a POST, while its messages are still being written.

/// While more messages than this wait for the client to read them, progress is left out.
const MAX_PENDING_MESSAGES: usize = 64;

/// The body of a response: known as a whole, or a stream of events.
pub(super) type HttpReplyBody = Either<Full<Bytes>, PostMessages>;

/// Where the messages of one POST go. The response ends when nothing can be sent there any more.
struct PostReply {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    pending: Arc<AtomicUsize>,
    is_stream: bool,
}

/// The messages of one POST, for its response. As a body, it sends each as a server-sent event, as soon as it is there.
pub(crate) struct PostMessages {
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    pending: Arc<AtomicUsize>,
    /// Ends the calls of the POST if the response is dropped before they are answered.
    _lifeline: Option<ClientLifeline>,
}

/// A client that exists only as long as the response to its request.
struct ClientLifeline {
    client: Arc<ServedClient>,
    calls: Arc<OpenCalls>,
}

/// Returns where to send the messages of a POST, and where to read them. A response that isn't a stream has answers alone. If
/// there is a `lifeline`, its client leaves when the messages are read no more.
fn open_reply(
    is_stream: bool,
    lifeline: Option<ClientLifeline>,
) -> (Arc<dyn ReplyChannel>, PostMessages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pending = Arc::new(AtomicUsize::new(0));
    let messages = PostMessages {
        lines: receiver,
        pending: Arc::clone(&pending),
        _lifeline: lifeline,
    };
    let reply = PostReply {
        lines: sender,
        pending,
        is_stream,
    };
    (Arc::new(reply), messages)
}

/// Returns a body that is known as a whole.
fn full_body(bytes: impl Into<Bytes>) -> HttpReplyBody {
    Either::Left(Full::new(bytes.into()))
}

pub(super) fn empty_body() -> HttpReplyBody {
    full_body(Bytes::new())
}

impl ReplyChannel for PostReply {
    fn send(&self, lines: Vec<u8>) -> bool {
        self.pending.fetch_add(1, SeqCst);
        self.lines.send(lines).is_ok()
    }

    fn takes_questions(&self) -> bool {
        self.is_stream
    }

    fn is_open(&self) -> bool {
        !self.lines.is_closed()
    }

    fn is_full(&self) -> bool {
        !self.is_stream || self.pending.load(SeqCst) > MAX_PENDING_MESSAGES
    }
}

impl PostMessages {
    /// Waits for all messages, and returns each in a line.
    async fn into_lines(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(lines) = self.lines.recv().await {
            self.pending.fetch_sub(1, SeqCst);
            all.extend(lines);
        }
        all
    }
}

impl Drop for ClientLifeline {
    fn drop(&mut self) {
        self.calls.end_client(&self.client);
    }
}

impl Body for PostMessages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(lines) = ready!(self.lines.poll_recv(context)) else {
            return Poll::Ready(None);
        };
        self.pending.fetch_sub(1, SeqCst);
        let mut events = Vec::with_capacity(lines.len() + 32);
        for line in lines.split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                events.extend_from_slice(b"event: message\ndata: ");
                events.extend_from_slice(line);
                events.extend_from_slice(b"\n\n");
            }
        }
        Poll::Ready(Some(Ok(Frame::data(events.into()))))
    }
}

/// How long a client may keep the server waiting: for the headers of its next request, for a body, and for room to send.
pub(crate) const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
