//! Sends what is exported with toolq's own HTTP client, on the runtime of the run.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::Client;
use tokio::runtime::Handle;

use crate::delivery::{DeliveryReport, Signal};

/// The longest response that is read, in bytes. Receivers say no more than what they rejected.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// What a receiver answers that has no such signal. Those for traces often don't take metrics.
const UNSUPPORTED: [u16; 3] = [404, 405, 501];

/// The client of the exporter of one signal.
#[derive(Debug)]
pub(crate) struct ExportClient {
    pub(crate) client: Client,
    /// The exporter has a thread of its own, outside of the runtime that the client needs.
    pub(crate) runtime: Handle,
    pub(crate) report: Arc<DeliveryReport>,
    pub(crate) signal: Signal,
}

type ResponseFuture<'f> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>;

impl HttpClient for ExportClient {
    fn send_bytes<'c, 'f>(&'c self, request: Request<Bytes>) -> ResponseFuture<'f>
    where
        'c: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let address = address_of(&request);
            let sending = send(self.client.clone(), request);
            let response = match self.runtime.spawn(sending).await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => {
                    let why = root_cause(&error);
                    self.fail(format!("{address}: {why}"));
                    return Err(error.without_url().into());
                }
                Err(ended) => return Err(ended.into()),
            };
            let status = response.status();
            let is_expected =
                self.signal == Signal::Metrics && UNSUPPORTED.contains(&status.as_u16());
            if status.is_success() || is_expected {
                self.report.set_failure(self.signal, None);
            } else {
                self.fail(format!("{address} answered {status}"));
            }
            Ok(response)
        })
    }
}

impl ExportClient {
    fn fail(&self, reason: String) {
        self.report.set_failure(self.signal, Some(reason));
    }
}

async fn send(client: Client, request: Request<Bytes>) -> Result<Response<Bytes>, reqwest::Error> {
    let mut received = client.execute(request.try_into()?).await?;
    let mut body = Vec::new();
    while let Some(chunk) = received.chunk().await? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = received.status();
    *response.headers_mut() = received.headers().clone();
    Ok(response)
}

/// Returns the URL of a request without what may be secret in it.
fn address_of(request: &Request<Bytes>) -> String {
    let uri = request.uri();
    let port = uri.port_u16();
    format!(
        "{}://{}{}{}",
        uri.scheme_str().unwrap_or("http"),
        uri.host().unwrap_or_default(),
        port.map(|port| format!(":{port}")).unwrap_or_default(),
        uri.path()
    )
}

/// Returns the innermost cause, which is the one that says something.
fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
