//! Requests one response from a model, with the retries that the tool's `retry` allows. A request has no effect but its
//! response, so it can safely be repeated until a call of the response has started.

use std::time::SystemTime;

use reqwest::Response as HttpResponse;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::agent::conversation::AgentConversation;
use crate::agent::error::{AgentError, in_doubt_outcome};
use crate::agent::request::ModelEndpoint;
use crate::agent::request_error::{RequestError, from_status, from_stream, from_transport};
use crate::agent::streaming::{StreamingResponse, TextGuard};
use crate::agent::toolset::AgentToolset;
use crate::http::error;
use crate::http::{content_encoding, parse_retry_after};
use crate::scheduler::retry;
use toolq_core::text::{format_bytes, format_duration, truncate};
use toolq_core::transcript::{ResponseError, parse_response};
use toolq_core::types::{
    AgentFailure, HttpBacking, HttpMethod, ModelResponse, NotExecutedCause, RequestBody,
    ResponseEnding, Template, TransportPhase, Turn,
};

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// The maximum length of the excerpt from an invalid response in an error.
const MAX_EXCERPT_CHARS: usize = 300;

/// A model response that has been received completely.
pub(crate) struct CompleteResponse<'k> {
    pub(crate) response: ModelResponse,
    pub(crate) turn: Turn,
    pub(crate) request_digest: String,
    /// Its calls, some of which may have started.
    pub(crate) streaming: StreamingResponse<'k>,
}

impl AgentConversation<'_> {
    /// Requests the response of this turn, with retries. Streamed text is saved to `text_so_far`, even if this fails or
    /// is dropped.
    ///
    /// # Errors
    /// Why there is no response, after all attempts.
    pub(crate) async fn request_with_retries<'k>(
        &self,
        toolset: &'k AgentToolset,
        endpoint: &ModelEndpoint,
        models: (&str, Option<&str>),
        turn_number: usize,
        text_so_far: &mut String,
    ) -> Result<CompleteResponse<'k>, AgentError> {
        let (mut model, mut fallback) = models;
        let mut attempt = 0;
        loop {
            let body =
                endpoint.build_body(model, &self.messages, self.toolset.declarations.as_deref());
            let digest = crate::digests::sha256_of_text(&body);
            let (api, scope, dispatcher) = (self.backing.api, &self.scope, &self.dispatcher);
            let model_and_mask = (model, &self.runner.mask);
            let mut streaming = StreamingResponse::new(
                api,
                model_and_mask,
                turn_number,
                toolset,
                scope,
                dispatcher,
            );
            let text_guard = TextGuard {
                response: &mut streaming,
                text_so_far,
            };
            let sent = self
                .send_request(endpoint, body, turn_number, text_guard)
                .await;
            let error = match sent {
                Ok((mut response, turn)) => {
                    response.model.get_or_insert_with(|| model.to_owned());
                    streaming.accept();
                    return Ok(CompleteResponse {
                        response,
                        turn,
                        request_digest: digest,
                        streaming,
                    });
                }
                Err(error) => error,
            };
            if streaming.has_open_turn() {
                if let Some(doubt) = streaming
                    .abort(NotExecutedCause::StreamAborted, ResponseEnding::Complete)
                    .await
                {
                    return Err(in_doubt_outcome(doubt).into());
                }
                return Err(error.into_aborted());
            }
            if let Some(other) = fallback.take_if(|_| error.overloaded) {
                self.progress
                    .send_message(format!("{model} is overloaded, trying {other}"));
                model = other;
                continue;
            }
            attempt += 1;
            let remaining = self.deadline.saturating_sub(self.control.now());
            let policy = &self.job.accepted.tool.retry;
            let wait = error.retry_on.and_then(|why| {
                retry::next_request_wait(
                    policy,
                    attempt,
                    why,
                    error.retry_after,
                    remaining,
                    self.jitter_seed,
                )
            });
            let Some(wait) = wait else {
                return Err(error.cause);
            };
            self.progress.send_message(format!(
                "request to {model} failed, retrying in {}",
                format_duration(wait)
            ));
            self.control.sleep(wait).await;
        }
    }

    async fn send_request(
        &self,
        endpoint: &ModelEndpoint,
        body: String,
        turn_number: usize,
        text_guard: TextGuard<'_, '_>,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let request = endpoint.build_request(body);
        let timeout = self.job.accepted.tool.timeout.after;
        let client = self
            .runner
            .clients
            .get(
                &request,
                &plain_backing(),
                timeout,
                &self.runner.environment,
            )
            .map_err(RequestError::permanent)?;
        let origin = endpoint.origin();
        let sent = client.execute(request).await;
        let response =
            sent.map_err(|error| from_transport(error::from_reqwest_error(&origin, &error)))?;
        self.read_response(response, &origin, turn_number, text_guard.response)
            .await
    }

    async fn read_response(
        &self,
        mut http: HttpResponse,
        origin: &str,
        turn_number: usize,
        streaming: &mut StreamingResponse<'_>,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let status = http.status().as_u16();
        let min_wait = parse_retry_after(http.headers(), SystemTime::now());
        if let Some(encoding) = content_encoding(http.headers()) {
            let why =
                format!("its body is encoded ({encoding}), although no encoding was requested");
            return Err(RequestError::permanent(AgentFailure::UnreadableResponse(
                why,
            )));
        }
        let has_event_stream = is_event_stream(http.headers());
        // An error status never comes with a model response, whatever its content type.
        let streamed = has_event_stream && (200..300).contains(&status);
        // In the last turn calls don't run.
        let may_start_calls = !self.is_last_turn(turn_number);
        let (mut body, mut total) = (Vec::new(), 0);
        loop {
            let chunk = match http.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // The response is complete, so it doesn't matter what was cut off after it.
                Err(_) if streamed && streaming.is_complete() => break,
                Err(error) => {
                    let cause = error::root_cause(&error);
                    return Err(from_transport(error::transport_error(
                        TransportPhase::Body,
                        origin,
                        cause,
                    )));
                }
            };
            total += chunk.len();
            if total > MAX_RESPONSE_BYTES {
                let why = format!(
                    "it is larger than {}",
                    format_bytes(MAX_RESPONSE_BYTES as u64)
                );
                return Err(RequestError::permanent(AgentFailure::UnreadableResponse(
                    why,
                )));
            }
            if !streamed {
                body.extend_from_slice(&chunk);
                continue;
            }
            streaming
                .push(&chunk)
                .map_err(|error| from_stream(error, min_wait))?;
            if may_start_calls {
                streaming.dispatch_ready();
            }
            // Don't wait for the end of the body, which may come late or never.
            if streaming.is_over() {
                break;
            }
            // Yield, so a stream that is always ready can't starve timeouts and signals.
            tokio::task::yield_now().await;
        }
        let body = if streamed {
            let complete_body = streaming
                .body()
                .map_err(|error| from_stream(error, min_wait))?;
            complete_body.ok_or_else(|| {
                let why = "the stream ended before the response was complete".to_owned();
                from_transport(error::transport_error(TransportPhase::Body, origin, why))
            })?
        } else if has_event_stream {
            first_event_data(&String::from_utf8_lossy(&body))
        } else {
            String::from_utf8_lossy(&body).into_owned()
        };
        let read = parse_response(self.backing.api, &body, turn_number);
        match read {
            Ok(answer) if (200..300).contains(&status) => Ok(answer),
            Ok(_) | Err(ResponseError::Unreadable(_)) if !(200..300).contains(&status) => {
                Err(from_status(
                    Some(status),
                    "",
                    &truncate(&body, MAX_EXCERPT_CHARS),
                    min_wait,
                ))
            }
            Ok(_) => Err(from_status(Some(status), "", "", min_wait)),
            Err(ResponseError::Api { kind, message }) => {
                let error_status = Some(status).filter(|status| *status != 200);
                Err(from_status(error_status, &kind, &message, min_wait))
            }
            Err(ResponseError::Unreadable(why)) => {
                let why = format!(
                    "{why}; it starts with: {}",
                    truncate(&body, MAX_EXCERPT_CHARS)
                );
                Err(RequestError::permanent(AgentFailure::UnreadableResponse(
                    why,
                )))
            }
        }
    }
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

/// Returns the backing for model requests, which have no special settings: no redirects, no proxy.
fn plain_backing() -> HttpBacking {
    HttpBacking {
        method: HttpMethod::Post,
        url: Template::default(),
        allowed_hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: RequestBody::None,
        success_status: Vec::new(),
        select: None,
        max_redirects: 0,
        proxy: None,
    }
}
