//! Requests one response from a model, with the retries that the tool's `retry` allows. A request has no effect but its
//! response, so it can safely be repeated.

use std::time::{Duration, SystemTime};

use reqwest::Response as HttpResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::agent::conversation::AgentConversation;
use crate::agent::endpoint::ModelEndpoint;
use crate::agent::runner::AgentError;
use crate::http::{HttpError, content_encoding, error, parse_retry_after};
use crate::scheduler::retry;
use toolq_core::json::expect_json;
use toolq_core::text::{format_bytes, format_duration, truncate};
use toolq_core::transcript::{ResponseError, parse_response};
use toolq_core::types::{
    AgentFailure, Api, HttpBacking, HttpMethod, ModelResponse, Outcome, RequestBody,
    RetryCondition, Template, TransportPhase, Turn,
};

/// The names of the models that an agent may ask.
#[derive(Clone, Copy)]
pub(crate) struct ModelChoice<'m> {
    pub(crate) first: &'m str,
    /// Asked once if the first one is overloaded.
    pub(crate) fallback: Option<&'m str>,
}

impl AgentConversation<'_> {
    /// Requests the response of this turn, with retries.
    ///
    /// # Errors
    /// Why there is no response, after all attempts.
    pub(crate) async fn request_with_retries(
        &self,
        endpoint: &ModelEndpoint,
        models: ModelChoice<'_>,
        turn_number: usize,
    ) -> Result<(ModelResponse, Turn), AgentError> {
        let ModelChoice {
            first: mut model,
            mut fallback,
        } = models;
        let mut attempt = 0;
        loop {
            let body =
                endpoint.build_body(model, &self.messages, self.toolset.declarations.as_deref());
            let error = match self.send_request(endpoint, body, turn_number).await {
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
        let timeout = self.job.accepted.tool.timeout.after;
        let client = self
            .runner
            .clients
            .get(
                &request,
                &plain_backing(),
                (timeout, true),
                &self.runner.environment,
            )
            .map_err(RequestError::permanent)?;
        let origin = endpoint.origin();
        let sent = client.execute(request).await;
        let http =
            sent.map_err(|error| from_transport(error::from_reqwest_error(&origin, &error)))?;
        read_response(http, &origin, self.backing.api, turn_number).await
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

// Failed model requests: why they failed, and whether they may be retried.

/// Why a model request failed, and whether it may be retried.
struct RequestError {
    pub(crate) cause: Box<AgentError>,
    /// The retry condition that the failure matches, if any.
    retry_on: Option<RetryCondition>,
    /// The model is overloaded.
    overloaded: bool,
    /// The minimum wait before the next request that the server requested.
    pub(crate) retry_after: Option<Duration>,
}

impl RequestError {
    /// Returns an error that a retry can't fix.
    fn permanent(cause: impl Into<AgentError>) -> Self {
        Self {
            cause: Box::new(cause.into()),
            retry_on: None,
            overloaded: false,
            retry_after: None,
        }
    }
}

/// Converts an error that the API reported. `status` is `None` for an error without a failing HTTP status, whose `kind`
/// decides alone.
fn from_status(
    status: Option<u16>,
    kind: &str,
    message: &str,
    retry_after: Option<Duration>,
) -> RequestError {
    let overloaded = status == Some(529) || kind == "overloaded_error";
    let retry_on = match (status, kind) {
        (Some(429), _) | (None, "rate_limit_error") => Some(RetryCondition::RateLimited),
        (Some(500..=504 | 529), _) | (None, "api_error" | "timeout_error" | "overloaded_error") => {
            Some(RetryCondition::Unavailable)
        }
        _ => None,
    };
    let description = match (kind, message) {
        (kind, "") => kind.to_owned(),
        ("", message) => message.to_owned(),
        (kind, message) => format!("{message} ({kind})"),
    };
    let cause = AgentFailure::ApiError {
        status,
        message: description,
        retry_after: retry_after.filter(|wait| !wait.is_zero()),
    };
    RequestError {
        cause: Box::new(cause.into()),
        retry_on,
        overloaded,
        retry_after,
    }
}

/// Converts an error of a request that got no complete HTTP response.
fn from_transport(error: HttpError) -> RequestError {
    let transport = match error {
        HttpError::Transport(transport) => transport,
        HttpError::Unsent(outcome) => return RequestError::permanent(outcome),
        // Neither happens here: the agent's own timeout applies, and the encoding is checked separately.
        HttpError::TimedOut(_) | HttpError::EncodedBody(_) => {
            return RequestError::permanent(Outcome::NoBacking);
        }
    };
    let is_temporary = transport.phase != TransportPhase::Build;
    RequestError {
        retry_on: is_temporary.then_some(RetryCondition::Unavailable),
        ..RequestError::permanent(AgentFailure::Unreachable(transport))
    }
}

// The JSON of a request to a model's API.

/// The body of a request for the next response of a model.
#[derive(Serialize)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<SystemPrompt<'a>>,
    pub(crate) messages: ChatMessages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<&'a Value>,
    #[serde(flatten)]
    pub(crate) extra_body: &'a Map<String, Value>,
}

/// The system prompt of the Messages API: a text, or blocks that can be marked.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SystemPrompt<'a> {
    Text(&'a str),
    Blocks(&'a RawValue),
}

/// The messages of a request.
pub(crate) struct ChatMessages<'a> {
    /// The system prompt, where the API takes it as a message.
    pub(crate) system: Option<&'a str>,
    pub(crate) conversation: &'a [Box<RawValue>],
    /// The last message of the conversation, if it is marked for the cache.
    pub(crate) marked_last: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatMessage<'a> {
    System {
        role: &'static str,
        content: &'a str,
    },
    Raw(&'a RawValue),
}

impl Serialize for ChatMessages<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let system = self.system.map(|content| ChatMessage::System {
            role: "system",
            content,
        });
        let unmarked = self.conversation.len() - usize::from(self.marked_last.is_some());
        let conversation = self.conversation[..unmarked].iter();
        let conversation = conversation.map(|message| &**message);
        let conversation = conversation.chain(self.marked_last);
        serializer.collect_seq(system.into_iter().chain(conversation.map(ChatMessage::Raw)))
    }
}

/// Returns the first message of a conversation, which holds the task.
pub(crate) fn user_message(text: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct TaskMessage<'a> {
        role: &'static str,
        content: &'a str,
    }
    let message = TaskMessage {
        role: "user",
        content: text,
    };
    expect_json(serde_json::value::to_raw_value(&message))
}
