//! Runs HTTP backings: sends the request, and reads the response within limits on time and size.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Request;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::http::clients::HttpClients;
use crate::http::error;
use crate::http::error::HttpError;
use crate::http::request;
use crate::http::response;
use crate::http::response::{PendingResponse, ResponseHead};
use crate::http::send_guard::SendGuard;
use crate::output::OutputCollector;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::format_duration;
use toolq_core::types::{Backing, HttpBacking, HttpInvocation, Outcome, Tool, TransportPhase};

/// Sends the requests of a tools.yaml.
#[derive(Debug)]
pub(crate) struct HttpRunner {
    clients: HttpClients,
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
}

impl HttpRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            clients: HttpClients::new(settings.jobs, settings.resolver.clone()),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
        }
    }

    /// Runs one attempt.
    pub(crate) async fn run(&self, invocation: &HttpInvocation, attempt: Attempt) -> AttemptResult {
        let Attempt {
            job,
            idempotency_key: key,
            trace,
            timeout: limit,
            cancel,
            output_counter: meter,
            control,
            ..
        } = attempt;
        let tool = &job.accepted.tool;
        let Some(Backing::Http(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let send_guard = SendGuard::default();
        let meta = (&*key, trace.as_ref());
        let request = request::build_request(invocation, backing, &job, meta, &self.environment);
        let request = match request {
            Ok(request) => send_guard.guard_request(request, tool.effect, backing),
            Err(outcome) => return outcome.into(),
        };
        let origin = request.url().origin().ascii_serialization();
        let select = backing.select.clone();
        let body = OutputCollector::for_response(tool, self.outputs.as_ref(), &self.mask, select)
            .with_counter(meter);
        // Owned here rather than by the future that reads the response, so that a timeout doesn't lose what was read.
        let mut pending = PendingResponse { head: None, body };
        let read = tokio::select! {
            // An answer that is there counts, even if the call was canceled or its time is over.
            biased;
            read = self.exchange((request, &origin), backing, tool, &mut pending) => read,
            () = canceled(cancel, &control) => return pending.into_canceled(&send_guard, tool.effect),
            () = control.sleep(limit.duration) => Err(timeout_error(limit.configured, &send_guard, &origin)),
        };
        pending.into_attempt_result(read, tool.effect, &self.mask)
    }

    /// Sends the request and reads the response into `pending`.
    ///
    /// # Errors
    /// Why there is no complete response.
    async fn exchange(
        &self,
        (request, origin): (Request, &str),
        backing: &HttpBacking,
        tool: &Tool,
        pending: &mut PendingResponse,
    ) -> Result<(), HttpError> {
        let attempt_timeout = tool.timeout.after;
        let client = self
            .clients
            .get(&request, backing, attempt_timeout, &self.environment)?;
        let sent = client.execute(request).await;
        let mut response = sent.map_err(|error| error::from_reqwest_error(origin, &error))?;
        let head = pending
            .head
            .insert(ResponseHead::from_response(&response, backing));
        response::read_body(&mut response, head, &mut pending.body, origin).await
    }
}

/// Returns the error of a request that timed out. If it wasn't sent yet, it won't be anymore.
fn timeout_error(limit: Duration, send_guard: &SendGuard, origin: &str) -> HttpError {
    if send_guard.try_cancel() {
        let detail = format!("no connection within {}", format_duration(limit));
        error::transport_error(TransportPhase::Connect, origin, detail)
    } else {
        HttpError::TimedOut(limit)
    }
}
