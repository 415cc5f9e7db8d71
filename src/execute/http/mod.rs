//! An HTTP backing: a request is sent, and its response read within limits of time and bytes.

pub(super) mod clients;
pub(super) mod failure;
mod request;
mod resolver;
pub(super) mod response;

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{Backing, Environment, HttpBacking, HttpInvocation, Mask, Outcome};

use super::EngineSettings;
use super::attempt::{Attempt, End, Written};
use super::output::Output;
use super::queue::Job;
use clients::Clients;
use failure::Fault;
pub use resolver::Resolver;
use response::{Coming, Head};

/// Sends the requests of a tools.yaml.
#[derive(Debug)]
pub(super) struct Requests {
    clients: Clients,
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
}

impl Requests {
    pub(super) fn new(settings: &EngineSettings) -> Self {
        Self {
            clients: Clients::new(settings.jobs, settings.resolver.clone()),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.outputs.clone(),
        }
    }

    /// Runs one attempt.
    pub(super) async fn run(&self, invocation: &HttpInvocation, attempt: Attempt) -> End {
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
        let select = backing.select.clone();
        let body =
            Output::of_response(tool, self.outputs.as_ref(), &self.mask, select).metered(meter);
        // What was read belongs to this function, so that a response cut off by its limit is not lost.
        let mut response = Coming { head: None, body };
        let read = tokio::select! {
            read = self.exchange(invocation, backing, &job, &key, &mut response) => read,
            Ok(()) = cancel => return End::Cancelled(Written::new(response.body, String::new())),
            () = control.sleep(limit.after) => Err(Fault::Late(limit.named)),
        };
        response.end(read, tool.effect, &self.mask)
    }

    /// Sends the request and reads the response.
    ///
    /// # Errors
    /// Why no whole response came.
    async fn exchange(
        &self,
        invocation: &HttpInvocation,
        backing: &HttpBacking,
        job: &Job,
        key: &str,
        coming: &mut Coming,
    ) -> Result<(), Fault> {
        let request = request::build(invocation, backing, job, key, &self.environment)?;
        let origin = request.url().origin().ascii_serialization();
        let after = job.accepted.tool.timeout.after;
        let client = self
            .clients
            .get(&request, backing, after, &self.environment)?;
        let sent = client.execute(request).await;
        let mut response = sent.map_err(|error| failure::of_request(&origin, &error))?;
        let head = coming.head.insert(Head::of(&response, backing));
        response::read(&mut response, head, &mut coming.body, &origin).await
    }
}
