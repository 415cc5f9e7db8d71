//! Requests one response from a model, with the retries that the tool's `retry` allows. A request has no effect but its
//! response, so it can safely be repeated.

use std::time::{Duration, SystemTime};

use reqwest::Response as HttpResponse;

use crate::agent::endpoint::ModelEndpoint;
use crate::agent::error::{AgentError, RequestError, from_status, from_transport};
use crate::attempt::ProgressSender;
use crate::control::RunControl;
use crate::http::{HttpClients, content_encoding, error, parse_retry_after};
use crate::scheduler;
use toolq_core::text::{format_bytes, format_duration, truncate};
use toolq_core::transcript::{ResponseError, parse_response};
use toolq_core::types::{AgentFailure, Api, ModelResponse, Tool, TransportPhase, Turn};

/// The names of the models that an agent may ask.
#[derive(Clone, Copy)]
pub(crate) struct ModelChoice<'m> {
    pub(crate) first: &'m str,
    /// Asked once if the first one is overloaded.
    pub(crate) fallback: Option<&'m str>,
}

/// Asks the model of one agent that works on one call.
pub(crate) struct ModelClient<'a> {
    pub(crate) clients: &'a HttpClients,
    /// The agent.
    pub(crate) tool: &'a Tool,
    pub(crate) api: Api,
    pub(crate) progress: ProgressSender,
    pub(crate) control: RunControl,
    /// When the agent's timeout expires, in the engine's time.
    pub(crate) deadline: Duration,
    /// The seed of the backoff jitter, which is the same on every run.
    pub(crate) jitter_seed: u64,
}

impl ModelClient<'_> {
    /// Requests the response of this turn, with retries. `body` builds the request to a model.
    ///
    /// # Errors
    /// Why there is no response, after all attempts.
    pub(crate) async fn request_with_retries(
        &self,
        endpoint: &ModelEndpoint,
        models: ModelChoice<'_>,
        turn_number: usize,
        body: impl Fn(&str) -> String,
    ) -> Result<(ModelResponse, Turn), AgentError> {
        let ModelChoice {
            first: mut model,
            mut fallback,
        } = models;
        let mut attempt = 0;
        loop {
            let error = match self.send_request(endpoint, body(model), turn_number).await {
                Ok((mut response, turn)) => {
                    response.model.get_or_insert_with(|| model.to_owned());
                    return Ok((response, turn));
                }
                Err(error) => error,
            };
            if let Some(other) = fallback.take_if(|_| error.overloaded) {
                self.progress
                    .send_message(format!("{model} is overloaded, trying {other}"));
                model = other;
                continue;
            }
            attempt += 1;
            self.wait_for_retry(model, attempt, error).await?;
        }
    }

    /// Waits before the next request, or returns the cause of the error if there is no next request.
    async fn wait_for_retry(
        &self,
        model: &str,
        attempt: u32,
        error: RequestError,
    ) -> Result<(), AgentError> {
        let remaining = self.deadline.saturating_sub(self.control.now());
        let policy = &self.tool.retry;
        let wait = error.retry_on.and_then(|why| {
            scheduler::next_request_wait(
                policy,
                attempt,
                why,
                error.retry_after,
                remaining,
                self.jitter_seed,
            )
        });
        let Some(wait) = wait else {
            return Err(*error.cause);
        };
        self.progress.send_message(format!(
            "request to {model} failed, retrying in {}",
            format_duration(wait)
        ));
        self.control.sleep(wait).await;
        Ok(())
    }

    async fn send_request(
        &self,
        endpoint: &ModelEndpoint,
        body: String,
        turn_number: usize,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let request = endpoint.build_request(body);
        let timeout = self.tool.timeout.after;
        let client = self
            .clients
            .get_plain(request.url(), timeout)
            .map_err(RequestError::permanent)?;
        let origin = endpoint.origin();
        let sent = client.execute(request).await;
        let http = sent
            .map_err(|error| from_transport(error::from_reqwest_error(&origin, &error, false)))?;
        read_response(http, &origin, self.api, turn_number).await
    }
}

// Reads the response of a model.

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// The maximum length of the excerpt from an invalid response in an error.
const MAX_EXCERPT_CHARS: usize = 300;

/// The head of a response.
struct ResponseHead {
    status: u16,
    /// The wait that the server asked for.
    retry_after: Option<Duration>,
}

/// Reads the response of turn `turn_number`, whose head has arrived from `origin`.
///
/// # Errors
/// The connection broke off, the API reported an error, or the body isn't a model response.
async fn read_response(
    http: HttpResponse,
    origin: &str,
    api: Api,
    turn_number: usize,
) -> Result<(ModelResponse, Turn), RequestError> {
    if let Some(encoding) = content_encoding(http.headers()) {
        return Err(unreadable(format!(
            "its body is encoded ({encoding}), although no encoding was requested"
        )));
    }
    let head = ResponseHead {
        status: http.status().as_u16(),
        retry_after: parse_retry_after(http.headers(), SystemTime::now()),
    };
    let body = read_body(http, origin).await?;
    head.parse_body(api, &String::from_utf8_lossy(&body), turn_number)
}

async fn read_body(mut http: HttpResponse, origin: &str) -> Result<Vec<u8>, RequestError> {
    let broken = |error: reqwest::Error| {
        let why = error::root_cause(&error);
        from_transport(error::transport_error(TransportPhase::Body, origin, why))
    };
    let mut body = Vec::new();
    while let Some(chunk) = http.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            let limit = format_bytes(MAX_RESPONSE_BYTES as u64);
            return Err(unreadable(format!("it is larger than {limit}")));
        }
    }
    Ok(body)
}

impl ResponseHead {
    fn parse_body(
        &self,
        api: Api,
        body: &str,
        turn_number: usize,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let is_success = (200..300).contains(&self.status);
        let excerpt = || truncate(body, MAX_EXCERPT_CHARS);
        match parse_response(api, body, turn_number) {
            Ok(response) if is_success => Ok(response),
            Err(ResponseError::Api { kind, message }) => {
                let status = Some(self.status).filter(|status| *status != 200);
                Err(from_status(status, &kind, &message, self.retry_after))
            }
            Err(ResponseError::Unreadable(why)) if is_success => {
                Err(unreadable(format!("{why}; it starts with: {}", excerpt())))
            }
            Ok(_) | Err(ResponseError::Unreadable(_)) => {
                let status = Some(self.status);
                Err(from_status(status, "", &excerpt(), self.retry_after))
            }
        }
    }
}

fn unreadable(why: String) -> RequestError {
    RequestError::permanent(AgentFailure::UnreadableResponse(why))
}
