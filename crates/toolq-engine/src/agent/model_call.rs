//! Requests one response from a model, with the retries that the tool's `retry` allows. A request has no effect but its
//! response, so it can safely be repeated.

use tracing::debug;

use crate::agent::conversation::AgentConversation;
use crate::agent::endpoint::ModelEndpoint;
use crate::agent::error::AgentError;
use crate::agent::model_response::read_response;
use crate::agent::request_error::{RequestError, from_transport};
use crate::http::error;
use crate::scheduler::retry;
use toolq_core::text::format_duration;
use toolq_core::types::{HttpBacking, HttpMethod, ModelResponse, RequestBody, Template, Turn};

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
                timeout,
                &self.runner.environment,
            )
            .map_err(RequestError::permanent)?;
        let origin = endpoint.origin();
        debug!(turn = turn_number, "requests a response");
        let sent = client.execute(request).await;
        debug!(turn = turn_number, ok = sent.is_ok(), "the response begins");
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
