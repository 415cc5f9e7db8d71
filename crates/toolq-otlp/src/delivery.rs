//! What a receiver got, and why it didn't get the rest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
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
    pub(crate) fn set_failure(&self, signal: Signal, reason: Option<String>) {
        *self.failure(signal) = reason;
    }

    fn failure(&self, signal: Signal) -> MutexGuard<'_, Option<String>> {
        let failure = match signal {
            Signal::Spans => &self.span_failure,
            Signal::Metrics => &self.metric_failure,
        };
        failure.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) inner: opentelemetry_otlp::SpanExporter,
    pub(crate) report: Arc<DeliveryReport>,
}

impl SpanExporter for ReportingExporter {
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
