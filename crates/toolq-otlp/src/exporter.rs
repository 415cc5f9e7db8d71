//! Exporters by OTLP over HTTP. Where `--otlp` says nothing, they read the `OTEL_` variables themselves.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{self, SpanData};
use parking_lot::{Mutex, MutexGuard};
use reqwest::Client;
use tokio::runtime::Handle;

use crate::call_spans::SCOPE_NAME;
use toolq_core::exit::CommandError;
use toolq_core::os::Environment;
use toolq_engine::http_client_builder;

/// The longest time that sending a batch may take, by the specification.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time before a request that failed is sent once more.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Builds the exporters of a receiver.
pub(crate) struct ExporterBuilder<'a> {
    /// The URL of the receiver, without the path of a signal. `None` is what the environment says.
    endpoint: Option<&'a str>,
    environment: &'a Environment,
    client: Client,
    runtime: Handle,
    pub(crate) report: Arc<DeliveryReport>,
}

impl<'a> ExporterBuilder<'a> {
    /// Requests run on `runtime`.
    ///
    /// # Errors
    /// The environment asks for something that toolq doesn't have, or there is no HTTP client.
    pub(crate) fn new(
        endpoint: Option<&'a str>,
        environment: &'a Environment,
        runtime: Handle,
    ) -> Result<Self, CommandError> {
        let protocol = environment.get("OTEL_EXPORTER_OTLP_PROTOCOL");
        if let Some(other) = protocol.filter(|name| !matches!(&**name, "" | "http/protobuf")) {
            let message = format!("OTEL_EXPORTER_OTLP_PROTOCOL is {other}; nothing ran");
            return Err(CommandError::usage(message)
                .with_hint("toolq sends http/protobuf, which receivers take on port 4318"));
        }
        let variables = ["", "TRACES_", "METRICS_"];
        let variables = variables.map(|signal| format!("OTEL_EXPORTER_OTLP_{signal}ENDPOINT"));
        let from_environment = variables.iter().filter_map(|name| environment.get(name));
        let given = endpoint.map(Into::into);
        let mut endpoints = given.into_iter().chain(from_environment);
        let needs_tls = endpoints.any(|endpoint| endpoint.starts_with("https:"));
        let timeout = environment.get("OTEL_EXPORTER_OTLP_TIMEOUT");
        let timeout = timeout.and_then(|millis| millis.parse().ok());
        let client = http_client_builder(needs_tls)
            .timeout(timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis))
            .build()
            .map_err(|error| CommandError::usage(format!("--otlp: {error}; nothing ran")))?;
        Ok(Self {
            endpoint,
            environment,
            client,
            runtime,
            report: Arc::default(),
        })
    }

    /// Returns the exporter of spans, unless `OTEL_TRACES_EXPORTER` is `none`.
    ///
    /// # Errors
    /// The environment names no usable receiver.
    pub(crate) fn spans(&self) -> Result<Option<ReportingExporter>, CommandError> {
        if self.is_off("OTEL_TRACES_EXPORTER") {
            return Ok(None);
        }
        let builder = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_retry_policy(retry_policy())
            .with_http_client(self.http_client(Signal::Spans));
        let built = match self.endpoint("v1/traces") {
            Some(endpoint) => builder.with_endpoint(endpoint).build(),
            None => builder.build(),
        };
        let inner = built.map_err(unusable)?;
        let report = Arc::clone(&self.report);
        Ok(Some(ReportingExporter { inner, report }))
    }

    /// Returns the exporter of metrics, unless `OTEL_METRICS_EXPORTER` is `none`.
    ///
    /// # Errors
    /// As for [`Self::spans`].
    pub(crate) fn metrics(&self) -> Result<Option<MetricExporter>, CommandError> {
        if self.is_off("OTEL_METRICS_EXPORTER") {
            return Ok(None);
        }
        let builder = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_retry_policy(retry_policy())
            .with_http_client(self.http_client(Signal::Metrics));
        let built = match self.endpoint("v1/metrics") {
            Some(endpoint) => builder.with_endpoint(endpoint).build(),
            None => builder.build(),
        };
        built.map(Some).map_err(unusable)
    }

    /// Returns what sends the spans: `toolq`, unless the environment has another name for the service.
    pub(crate) fn resource(&self) -> Resource {
        let environment = self.environment;
        let attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES");
        let is_named = environment.get("OTEL_SERVICE_NAME").is_some()
            || attributes.is_some_and(|list| list.contains("service.name="));
        let builder = Resource::builder();
        if is_named {
            builder.build()
        } else {
            builder.with_service_name(SCOPE_NAME).build()
        }
    }

    fn endpoint(&self, path: &str) -> Option<String> {
        let endpoint = self.endpoint?;
        Some(format!("{endpoint}/{path}"))
    }

    fn is_off(&self, variable: &str) -> bool {
        self.environment.get(variable).as_deref() == Some("none")
    }

    fn http_client(&self, signal: Signal) -> ExportClient {
        ExportClient {
            client: self.client.clone(),
            runtime: self.runtime.clone(),
            report: Arc::clone(&self.report),
            signal,
        }
    }
}

/// A receiver that is down must not use up the time that the end of a run has for it.
fn retry_policy() -> RetryPolicy {
    RetryPolicy::recommended()
        .with_max_retries(1)
        .with_initial_delay(RETRY_DELAY)
        .with_max_jitter(RETRY_DELAY)
}

fn unusable(error: impl std::fmt::Display) -> CommandError {
    CommandError::usage(format!("--otlp: {error}; nothing ran"))
}

// Sends what is exported with toolq's own HTTP client, on the runtime of the run.

/// The longest response that is read, in bytes. Receivers say no more than what they rejected.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// What a receiver answers that has no such signal. Those for traces often don't take metrics.
const UNSUPPORTED: [u16; 3] = [404, 405, 501];

/// The client of the exporter of one signal.
#[derive(Debug)]
struct ExportClient {
    client: Client,
    /// The exporter has a thread of its own, outside of the runtime that the client needs.
    runtime: Handle,
    report: Arc<DeliveryReport>,
    signal: Signal,
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

// What a receiver got, and why it didn't get the rest.

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Spans,
    /// Receivers of spans often don't take them.
    Metrics,
}

/// Counts what is delivered, and keeps why the rest isn't.
#[derive(Debug, Default)]
pub(crate) struct DeliveryReport {
    delivered_spans: AtomicU64,
    span_failure: Mutex<Option<String>>,
    metric_failure: Mutex<Option<String>>,
}

impl DeliveryReport {
    /// Sets how the last request of a signal failed, or that it didn't: requests that failed are repeated, and each
    /// request for metrics has all of them.
    fn set_failure(&self, signal: Signal, reason: Option<String>) {
        *self.failure(signal) = reason;
    }

    fn failure(&self, signal: Signal) -> MutexGuard<'_, Option<String>> {
        let failure = match signal {
            Signal::Spans => &self.span_failure,
            Signal::Metrics => &self.metric_failure,
        };
        failure.lock()
    }

    /// Returns what wasn't delivered of `sent_spans`, in a sentence.
    pub(crate) fn warning(&self, sent_spans: u64) -> Option<String> {
        let delivered = self.delivered_spans.load(Ordering::Relaxed);
        let lost = sent_spans.saturating_sub(delivered);
        let metric_failure = self.failure(Signal::Metrics).clone();
        match (lost, metric_failure) {
            (0, None) => None,
            (0, Some(why)) => Some(format!("the metrics were not delivered: {why}")),
            (lost, _) => {
                let why = self.failure(Signal::Spans).clone();
                let why = why.unwrap_or_else(|| "the receiver is too slow".to_owned());
                Some(format!(
                    "{lost} of {sent_spans} spans were not delivered: {why}"
                ))
            }
        }
    }
}

/// A span exporter that reports what it delivers.
#[derive(Debug)]
pub(crate) struct ReportingExporter {
    inner: SpanExporter,
    pub(crate) report: Arc<DeliveryReport>,
}

impl trace::SpanExporter for ReportingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        let result = self.inner.export(batch).await;
        // The client says why it failed, if it did.
        if result.is_ok() {
            let delivered = &self.report.delivered_spans;
            delivered.fetch_add(count, Ordering::Relaxed);
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
