//! Responses that are streams of events. In the legacy era, one that breaks off can be resumed: the call isn't sent
//! again, only the rest of its response is requested.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Request, Response};
use tokio::time::sleep;

use crate::http::media_type;
use crate::mcp::http_exchange::{HttpExchange, MAX_MESSAGE_BYTES, too_long};
use crate::mcp::transport::{HttpEvent, HttpFailure};
use toolq_core::transcript::{SseDecoder, SseError, SseEvent};
use toolq_mcp::{Message, parse_messages};

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
    ) -> Result<(), HttpFailure> {
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
    ) -> Result<(), HttpFailure> {
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
                        self.pass_on_event(unreadable(request, error)).await;
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
            self.pass_on_event(HttpEvent::Message { request, body })
                .await;
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

fn unreadable(request: u64, error: SseError) -> HttpEvent {
    match error {
        SseError::TooLarge { .. } => too_long(request),
        SseError::NotUtf8 { .. } => HttpEvent::Unreadable {
            request,
            reason: "it isn't valid UTF-8".to_owned(),
        },
    }
}
