//! One HTTP request with a message, and its response: a document, or a stream of events.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderValue, LOCATION};
use reqwest::{Client, Request, Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::sleep;
use url::Url;

use crate::http::{
    SendGuard, classify_cause, content_encoding, media_type, parse_retry_after, root_cause,
};
use crate::mcp::incoming::{CallReply, Incoming};
use crate::output::make_room;
use toolq_core::text::{escape, format_bytes, truncate};
use toolq_core::transcript::{SseDecoder, SseError, SseEvent};
use toolq_core::types::{TransportCause, TransportError, TransportPhase};
use toolq_mcp::http::SESSION_ID_HEADER;
use toolq_mcp::{Message, RpcError, parse_messages};

/// How long a message may be. A longer one fails the call that it answers.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// How much of the body of an error is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How much of it is shown.
const MAX_ERROR_CHARS: usize = 300;

/// A request and its response.
pub(crate) struct HttpExchange {
    pub(crate) client: Client,
    /// What errors call the server.
    pub(crate) origin: String,
    /// The id of the message, unless it is a notification.
    pub(crate) request: Option<u64>,
    pub(crate) method: String,
    /// The request names a session.
    pub(crate) has_session: bool,
    /// What asks for the rest of a stream that has broken off, if the server may have such streams.
    pub(crate) resumption: Option<Request>,
    pub(crate) guard: Option<SendGuard>,
    pub(crate) parts: mpsc::Sender<Incoming>,
}

impl HttpExchange {
    /// Sends the request, and passes on the messages in its response.
    pub(crate) async fn run(self, request: Request) {
        let ended = self.exchange(request).await;
        if self.method == "notifications/initialized" {
            // A server that refuses the notification also refuses the next request.
            self.pass_on(Incoming::HandshakeEnded).await;
        }
        let Some(request) = self.request else {
            return;
        };
        let failure = ended
            .err()
            .unwrap_or_else(|| self.no_answer("the response ended before the answer".to_owned()));
        let method = self.method.clone();
        self.pass_on(Incoming::Ended {
            request,
            method,
            failure,
        })
        .await;
    }

    /// # Errors
    /// Why the response has no answer.
    async fn exchange(&self, request: Request) -> Result<(), CallReply> {
        let sent = self.client.execute(request).await;
        let response = sent.map_err(|error| self.send_failure(&error))?;
        let status = response.status();
        let Some(request) = self.request else {
            return Ok(());
        };
        if !status.is_success() {
            return self.read_refusal(request, response).await;
        }
        if self.method == "initialize"
            && let Some(id) = response.headers().get(SESSION_ID_HEADER)
        {
            self.pass_on(Incoming::SessionBegan(id.clone())).await;
        }
        if let Some(encoding) = content_encoding(response.headers()) {
            let detail =
                format!("the response is encoded ({encoding}), but no encoding was requested");
            return Err(self.no_answer(detail));
        }
        match media_type(response.headers()).as_deref() {
            Some("text/event-stream") => self.read_events(request, response).await,
            Some("application/json") | None => self.read_document(request, response).await,
            Some(other) => {
                let other = truncate(&escape(other), MAX_ERROR_CHARS);
                let detail =
                    format!("the server answered with {other} instead of JSON or an event stream");
                Err(self.no_answer(detail))
            }
        }
    }

    async fn read_document(&self, request: u64, mut response: Response) -> Result<(), CallReply> {
        let status = response.status();
        let body = self.read_body(&mut response, MAX_MESSAGE_BYTES).await?;
        if body.len() > MAX_MESSAGE_BYTES {
            self.pass_on(too_long(request)).await;
        } else if body.is_empty() {
            return Err(self.no_answer(format!("the server answered {status} without a body")));
        } else {
            self.pass_on(Incoming::Message { request, body }).await;
        }
        Err(self.no_answer("the response isn't an answer to the request".to_owned()))
    }

    /// Reads a response whose status is an error.
    async fn read_refusal(&self, request: u64, mut response: Response) -> Result<(), CallReply> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.has_session {
            return Err(CallReply::SessionExpired);
        }
        let retry_after = parse_retry_after(response.headers(), SystemTime::now());
        let location = redirect_target(&response);
        let media_type = media_type(response.headers());
        // What can't be read of it doesn't matter.
        let body = self.read_body(&mut response, MAX_ERROR_BYTES).await;
        let body = body.unwrap_or_default();
        let error = find_error(&body);
        let is_about_message =
            status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 407 | 429);
        if let Some(error) = error.clone().filter(|_| is_about_message) {
            self.pass_on(Incoming::Refused { request, error }).await;
            return Ok(());
        }
        let said = match (error, media_type.as_deref()) {
            (Some(error), _) => error.message,
            (None, Some("text/plain" | "application/json")) => {
                String::from_utf8_lossy(&body).into_owned()
            }
            (None, _) => String::new(),
        };
        let said = truncate(escape(said.trim()).as_ref(), MAX_ERROR_CHARS);
        let mut text = format!("the server answered {status}");
        if !said.is_empty() {
            text = format!("{text}: {said}");
        }
        if let Some(hint) = status_hint(status, location) {
            text = format!("{text} ({hint})");
        }
        Err(CallReply::Status {
            status: status.as_u16(),
            retry_after,
            text,
        })
    }

    /// Reads a body of up to `max_bytes`, and a little more of a longer one.
    async fn read_body(
        &self,
        response: &mut Response,
        max_bytes: usize,
    ) -> Result<Vec<u8>, CallReply> {
        let mut body = Vec::new();
        while body.len() <= max_bytes {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    make_room(&mut body, piece.len(), max_bytes);
                    body.extend_from_slice(&piece);
                }
                Ok(None) => break,
                Err(error) => return Err(self.body_failure(&error)),
            }
        }
        Ok(body)
    }

    fn send_failure(&self, error: &reqwest::Error) -> CallReply {
        let was_sent = self.guard.as_ref().is_none_or(SendGuard::is_sent);
        let phase = if error.is_connect() || !was_sent {
            TransportPhase::Connect
        } else {
            TransportPhase::Response
        };
        CallReply::Failed(TransportError {
            phase,
            origin: self.origin.clone(),
            cause: classify_cause(error),
            detail: root_cause(error),
        })
    }

    pub(super) fn body_failure(&self, error: &reqwest::Error) -> CallReply {
        self.no_answer(root_cause(error))
    }

    /// Says why a response that began has no answer.
    fn no_answer(&self, detail: String) -> CallReply {
        CallReply::Failed(TransportError {
            phase: TransportPhase::Body,
            origin: self.origin.clone(),
            cause: TransportCause::Other,
            detail,
        })
    }

    async fn pass_on(&self, part: Incoming) {
        // The receiver is gone only after the connection has ended, which ends this task, too.
        let _ = self.parts.send(part).await;
    }
}

pub(super) fn too_long(request: u64) -> Incoming {
    let reason = format!(
        "it has more than {}",
        format_bytes(MAX_MESSAGE_BYTES as u64)
    );
    Incoming::Unreadable { request, reason }
}

/// Returns the error in a body that is a JSON-RPC response.
fn find_error(body: &[u8]) -> Option<RpcError> {
    let message = parse_messages(body).ok()?.pop()?;
    match message {
        Message::Response { result, .. } => result.err(),
        _ => None,
    }
}

/// Returns where a response redirects to: another server, or another path of the same one. The rest of the address may hold a
/// secret.
fn redirect_target(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let url: Url = response.url().join(location).ok()?;
    let mut target = url.origin().ascii_serialization();
    if url.origin() == response.url().origin() {
        target.push_str(url.path());
    }
    Some(target)
}

fn status_hint(status: StatusCode, location: Option<String>) -> Option<String> {
    match status.as_u16() {
        300..=399 => {
            let to = location
                .map(|origin| format!(" to {origin}"))
                .unwrap_or_default();
            Some(format!(
                "toolq doesn't follow the redirect{to}: write the final address in `url`"
            ))
        }
        401 | 403 => Some("check the `headers` of the server in tools.yaml".to_owned()),
        404 | 405 => Some(
            "check its `url` in tools.yaml, which must be an address for streamable HTTP"
                .to_owned(),
        ),
        _ => None,
    }
}

// Responses that are streams of events. In the legacy era, one that breaks off can be resumed: the call isn't sent
// again, only the rest of its response is requested.

/// How long to wait before a stream is resumed if the server doesn't say.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// How often in a row a stream is resumed without a new event.
const MAX_FRUITLESS_ATTEMPTS: u32 = 3;

/// How far the response to a request was read.
#[derive(Default)]
struct StreamPosition {
    last_event_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// The answer has come, or can't be read.
    is_answered: bool,
}

impl HttpExchange {
    /// Passes on the messages of a stream, and of what follows it after it has broken off.
    ///
    /// # Errors
    /// Why the stream has no answer.
    pub(super) async fn read_events(
        &self,
        request: u64,
        response: Response,
    ) -> Result<(), CallReply> {
        let mut position = StreamPosition::default();
        let mut ended = self.read_stream(request, response, &mut position).await;
        let mut fruitless_attempts = 0;
        while !position.is_answered && fruitless_attempts < MAX_FRUITLESS_ATTEMPTS {
            let Some(resumption) = self.build_resumption(&position) else {
                break;
            };
            sleep(position.retry.unwrap_or(DEFAULT_RETRY)).await;
            let before = position.last_event_id.clone();
            // A server that can't be reached now may be later.
            if let Ok(response) = self.client.execute(resumption).await {
                let is_stream =
                    media_type(response.headers()).as_deref() == Some("text/event-stream");
                if !response.status().is_success() || !is_stream {
                    break;
                }
                ended = self.read_stream(request, response, &mut position).await;
            }
            if position.last_event_id == before {
                fruitless_attempts += 1;
            } else {
                fruitless_attempts = 0;
            }
        }
        ended
    }

    /// Returns the request for the events after those that have come, if they have ids.
    fn build_resumption(&self, position: &StreamPosition) -> Option<Request> {
        let mut request = self.resumption.as_ref()?.try_clone()?;
        let id = position.last_event_id.clone()?;
        request.headers_mut().insert("last-event-id", id);
        Some(request)
    }

    async fn read_stream(
        &self,
        request: u64,
        mut response: Response,
        position: &mut StreamPosition,
    ) -> Result<(), CallReply> {
        let mut decoder = SseDecoder::new(MAX_MESSAGE_BYTES as u64);
        loop {
            let piece = response.chunk().await;
            let Some(piece) = piece.map_err(|error| self.body_failure(&error))? else {
                // Some streams lack the blank line after their last event. An incomplete message is ignored.
                let last = decoder.finish().ok().flatten();
                let last = last.filter(|event| parse_messages(event.text.as_bytes()).is_ok());
                self.pass_on_message(request, last, position).await;
                return Ok(());
            };
            let mut rest = &piece[..];
            loop {
                match decoder.next_event(&mut rest) {
                    Ok(None) => break,
                    Ok(event) => self.pass_on_message(request, event, position).await,
                    Err(error) => {
                        position.is_answered = true;
                        self.pass_on(unreadable(request, error)).await;
                        return Ok(());
                    }
                }
            }
            position.advance(&decoder);
        }
    }

    async fn pass_on_message(
        &self,
        request: u64,
        event: Option<SseEvent>,
        position: &mut StreamPosition,
    ) {
        // An event without data only says that the stream is alive, or where it is.
        if let Some(event) = event.filter(|event| !event.text.trim().is_empty()) {
            let body = event.text.into_bytes();
            if self.resumption.is_some() && is_answer(&body, request) {
                position.is_answered = true;
            }
            self.pass_on(Incoming::Message { request, body }).await;
        }
    }
}

impl StreamPosition {
    fn advance(&mut self, decoder: &SseDecoder) {
        self.retry = decoder.retry().or(self.retry);
        if let Some(id) = decoder.last_event_id() {
            // An empty id, or one that no header can contain, means that the stream can't be resumed.
            let id = HeaderValue::from_bytes(id).ok();
            self.last_event_id = id.filter(|id| !id.is_empty());
        }
    }
}

fn is_answer(body: &[u8], request: u64) -> bool {
    let id = request.to_string();
    let messages = parse_messages(body).unwrap_or_default();
    messages.iter().any(|message| {
        matches!(message, Message::Response { id: Some(answered), .. } if answered.as_json() == id)
    })
}

fn unreadable(request: u64, error: SseError) -> Incoming {
    match error {
        SseError::TooLarge { .. } => too_long(request),
        SseError::NotUtf8 { .. } => Incoming::Unreadable {
            request,
            reason: "it isn't valid UTF-8".to_owned(),
        },
    }
}
