//! Requests one response from a model, with the retries that the tool's `retry` allows. A request has no effect but its
//! response, so it can safely be repeated until a call of the response has started.

use tracing::debug;

use crate::agent::conversation::AgentConversation;
use crate::agent::endpoint::ModelEndpoint;
use crate::agent::error::{AgentError, in_doubt_outcome};
use crate::agent::model_response::ResponseReader;
use crate::agent::request_error::{RequestError, from_transport};
use crate::agent::streaming::{StreamingResponse, TextGuard};
use crate::agent::toolset::AgentToolset;
use crate::http::error;
use crate::scheduler::retry;
use toolq_core::text::format_duration;
use toolq_core::types::{
    HttpBacking, HttpMethod, ModelResponse, NotExecutedCause, RequestBody, Template, Turn,
};

/// A model response that has been received completely.
pub(crate) struct CompleteResponse<'k> {
    pub(crate) response: ModelResponse,
    pub(crate) turn: Turn,
    pub(crate) request_digest: String,
    /// Its calls, some of which may have started.
    pub(crate) streaming: StreamingResponse<'k>,
}

/// The names of the models that an agent may ask.
#[derive(Clone, Copy)]
pub(crate) struct ModelChoice<'m> {
    pub(crate) first: &'m str,
    /// Asked once if the first one is overloaded.
    pub(crate) fallback: Option<&'m str>,
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
        models: ModelChoice<'_>,
        turn_number: usize,
        text_so_far: &mut String,
    ) -> Result<CompleteResponse<'k>, AgentError> {
        let ModelChoice {
            first: mut model,
            mut fallback,
        } = models;
        let mut attempt = 0;
        loop {
            let mut streaming = StreamingResponse::new(
                self.backing.api,
                (model, &self.runner.mask),
                turn_number,
                toolset,
                &self.scope,
                &self.dispatcher,
            );
            let body =
                endpoint.build_body(model, &self.messages, self.toolset.declarations.as_deref());
            let digest = crate::digests::sha256_of_text(&body);
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
                return Err(abort_started_calls(streaming, error).await);
            }
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
        debug!(turn = turn_number, "requests a response");
        let sent = client.execute(request).await;
        debug!(turn = turn_number, ok = sent.is_ok(), "the response begins");
        let response =
            sent.map_err(|error| from_transport(error::from_reqwest_error(&origin, &error)))?;
        // In the last turn calls don't run.
        let may_start_calls = !self.is_last_turn(turn_number);
        let mut reader = ResponseReader::new(response, &origin)?;
        let body = reader
            .read_body(text_guard.response, may_start_calls)
            .await?;
        reader.parse_body(self.backing.api, &body, turn_number)
    }
}

/// Ends the calls that started while the response was streaming. Returns the error of the agent.
async fn abort_started_calls(
    mut streaming: StreamingResponse<'_>,
    error: RequestError,
) -> AgentError {
    let cause = NotExecutedCause::StreamAborted;
    match streaming.abort(cause).await {
        Some(doubt) => in_doubt_outcome(doubt).into(),
        None => error.into_aborted(),
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
