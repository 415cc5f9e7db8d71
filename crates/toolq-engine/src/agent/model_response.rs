//! Reads one response of a model: a body, or a stream whose calls may start while it arrives.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::Response as HttpResponse;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::agent::request_error::{RequestError, from_status, from_stream, from_transport};
use crate::agent::streaming::StreamingResponse;
use crate::http::error;
use crate::http::{content_encoding, parse_retry_after};
use toolq_core::text::{format_bytes, truncate};
use toolq_core::transcript::{ResponseError, parse_response};
use toolq_core::types::{AgentFailure, Api, ModelResponse, TransportPhase, Turn};

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// The maximum length of the excerpt from an invalid response in an error.
const MAX_EXCERPT_CHARS: usize = 300;

/// Reads an HTTP response whose head has arrived.
pub(crate) struct ResponseReader<'o> {
    http: HttpResponse,
    origin: &'o str,
    status: u16,
    /// The wait that the server asked for.
    retry_after: Option<Duration>,
    /// The body is a stream of events.
    is_event_stream: bool,
    /// Size of the body so far.
    bytes_read: usize,
}

impl<'o> ResponseReader<'o> {
    /// Examines the head of a response from `origin`.
    ///
    /// # Errors
    /// The body has an encoding, which wasn't requested.
    pub(crate) fn new(http: HttpResponse, origin: &'o str) -> Result<Self, RequestError> {
        if let Some(encoding) = content_encoding(http.headers()) {
            return Err(unreadable(format!(
                "its body is encoded ({encoding}), although no encoding was requested"
            )));
        }
        Ok(Self {
            status: http.status().as_u16(),
            retry_after: parse_retry_after(http.headers(), SystemTime::now()),
            is_event_stream: is_event_stream(http.headers()),
            http,
            origin,
            bytes_read: 0,
        })
    }

    /// Reads the body. A stream goes through `streaming`; if `may_start_calls`, its calls start while it arrives.
    ///
    /// # Errors
    /// The connection or the stream broke off, or an event of the stream is invalid or an error.
    pub(crate) async fn read_body(
        &mut self,
        streaming: &mut StreamingResponse<'_>,
        may_start_calls: bool,
    ) -> Result<String, RequestError> {
        // A response with an error status is never a model response, regardless of its content type.
        if self.is_event_stream && self.is_success() {
            return self.read_stream(streaming, may_start_calls).await;
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk().await? {
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&body);
        Ok(if self.is_event_stream {
            first_event_data(&text)
        } else {
            text.into_owned()
        })
    }

    async fn read_stream(
        &mut self,
        streaming: &mut StreamingResponse<'_>,
        may_start_calls: bool,
    ) -> Result<String, RequestError> {
        let retry_after = self.retry_after;
        // Don't wait for the end of the body, which may come late or never.
        while !streaming.is_over() {
            let chunk = match self.next_chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // The connection broke, but the response is complete, so it doesn't matter what was cut off after it.
                Err(error) if error.retry_on.is_some() && streaming.is_complete() => break,
                Err(error) => return Err(error),
            };
            streaming
                .push(&chunk)
                .map_err(|error| from_stream(error, retry_after))?;
            if may_start_calls {
                streaming.dispatch_ready();
            }
            // Yield, so a stream that is always ready can't starve timeouts and signals.
            tokio::task::yield_now().await;
        }
        let body = streaming.body();
        body.map_err(|error| from_stream(error, retry_after))?
            .ok_or_else(|| {
                self.broken_body("the stream ended before the response was complete".to_owned())
            })
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, RequestError> {
        let chunk = self.http.chunk().await;
        let chunk = chunk.map_err(|error| self.broken_body(error::root_cause(&error)))?;
        self.bytes_read += chunk.as_ref().map_or(0, Bytes::len);
        if self.bytes_read > MAX_RESPONSE_BYTES {
            let limit = format_bytes(MAX_RESPONSE_BYTES as u64);
            return Err(unreadable(format!("it is larger than {limit}")));
        }
        Ok(chunk)
    }

    /// Parses a complete body as the response of turn `turn_number`.
    ///
    /// # Errors
    /// The API reported an error, or the body isn't a model response.
    pub(crate) fn parse_body(
        &self,
        api: Api,
        body: &str,
        turn_number: usize,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let excerpt = || truncate(body, MAX_EXCERPT_CHARS);
        match parse_response(api, body, turn_number) {
            Ok(response) if self.is_success() => Ok(response),
            Err(ResponseError::Api { kind, message }) => {
                let status = Some(self.status).filter(|status| *status != 200);
                Err(from_status(status, &kind, &message, self.retry_after))
            }
            Err(ResponseError::Unreadable(why)) if self.is_success() => {
                Err(unreadable(format!("{why}; it starts with: {}", excerpt())))
            }
            Ok(_) | Err(ResponseError::Unreadable(_)) => {
                let status = Some(self.status);
                Err(from_status(status, "", &excerpt(), self.retry_after))
            }
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn broken_body(&self, why: String) -> RequestError {
        from_transport(error::transport_error(
            TransportPhase::Body,
            self.origin,
            why,
        ))
    }
}

fn unreadable(why: String) -> RequestError {
    RequestError::permanent(AgentFailure::UnreadableResponse(why))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|content_type| content_type.starts_with(b"text/event-stream"))
}

/// Returns the data of the first event in `body`, or all of `body` if it contains no event.
fn first_event_data(body: &str) -> String {
    let lines = body.lines().map(|line| line.strip_prefix("data:"));
    let event = lines.skip_while(Option::is_none).map_while(|data| data);
    let data: Vec<&str> = event.map(str::trim_start).collect();
    match &data[..] {
        [] => body.to_owned(),
        data => data.join("\n"),
    }
}
