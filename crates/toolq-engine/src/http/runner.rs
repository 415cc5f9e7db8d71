//! An HTTP backing: a request is sent, and its response read within limits of time and bytes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Request;

use crate::attempt::{Attempt, End, called_off};
use crate::http::clients::Clients;
use crate::http::error;
use crate::http::error::Fault;
use crate::http::request;
use crate::http::response;
use crate::http::response::{Coming, Head};
use crate::http::send_guard::Sending;
use crate::output::Output;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::format_duration;
use toolq_core::types::{Backing, HttpBacking, HttpInvocation, Outcome, Tool, TransportPhase};

/// Sends the requests of a tools.yaml.
#[derive(Debug)]
pub(crate) struct Requests {
    clients: Clients,
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
}

impl Requests {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            clients: Clients::new(settings.jobs, settings.resolver.clone()),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.outputs.clone(),
        }
    }

    /// Runs one attempt.
    pub(crate) async fn run(&self, invocation: &HttpInvocation, attempt: Attempt) -> End {
        let Attempt {
            job,
            key,
            limit,
            cancel,
            meter,
            control,
            ..
        } = attempt;
        let tool = &job.accepted.tool;
        let Some(Backing::Http(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let sending = Sending::default();
        let request = request::build(invocation, backing, &job, &key, &self.environment);
        let request = match request {
            Ok(request) => sending.watch(request, tool.effect, backing),
            Err(outcome) => return outcome.into(),
        };
        let origin = request.url().origin().ascii_serialization();
        let select = backing.select.clone();
        let body =
            Output::of_response(tool, self.outputs.as_ref(), &self.mask, select).metered(meter);
        // What was read belongs to this function, so that a response cut off by its limit is not lost.
        let mut response = Coming { head: None, body };
        let read = tokio::select! {
            read = self.exchange(request, backing, tool, &mut response) => read,
            () = called_off(cancel, &control) => return response.given_up(&sending, tool.effect),
            () = control.sleep(limit.after) => Err(late(limit.named, &sending, &origin)),
        };
        response.end(read, tool.effect, &self.mask)
    }

    /// Sends the request and reads the response.
    ///
    /// # Errors
    /// Why no whole response came.
    async fn exchange(
        &self,
        request: Request,
        backing: &HttpBacking,
        tool: &Tool,
        coming: &mut Coming,
    ) -> Result<(), Fault> {
        let origin = request.url().origin().ascii_serialization();
        let after = tool.timeout.after;
        let client = self
            .clients
            .get(&request, backing, after, &self.environment)?;
        let sent = client.execute(request).await;
        let mut response = sent.map_err(|error| error::of_request(&origin, &error))?;
        let head = coming.head.insert(Head::of(&response, backing));
        response::read(&mut response, head, &mut coming.body, &origin).await
    }
}

/// The time of a request is over. One that was not sent by then is not sent any more.
fn late(limit: Duration, sending: &Sending, origin: &str) -> Fault {
    if sending.call_off() {
        let detail = format!("no connection within {}", format_duration(limit));
        error::broken(TransportPhase::Connect, origin, detail)
    } else {
        Fault::Late(limit)
    }
}
