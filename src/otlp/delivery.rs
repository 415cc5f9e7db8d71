//! What a receiver got, and why it didn't get the rest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// Counts what is delivered, and keeps the first failure.
#[derive(Debug, Default)]
pub(super) struct DeliveryReport {
    delivered_spans: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl DeliveryReport {
    /// Keeps the reason of a failure, unless there was one before.
    pub(super) fn record_failure(&self, reason: impl Into<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| reason.into());
    }

    /// Returns the first failure.
    pub(super) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    /// Returns what wasn't delivered of `sent_spans`, in a sentence.
    pub(super) fn warning(&self, sent_spans: u64) -> Option<String> {
        let delivered = self.delivered_spans.load(Ordering::Relaxed);
        let lost = sent_spans.saturating_sub(delivered);
        let failure = self.failure();
        match (lost, failure) {
            (0, None) => None,
            (0, Some(why)) => Some(format!("the metrics were not delivered: {why}")),
            (lost, why) => {
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
pub(super) struct ReportingExporter {
    pub(super) inner: opentelemetry_otlp::SpanExporter,
    pub(super) report: Arc<DeliveryReport>,
}

impl SpanExporter for ReportingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        let result = self.inner.export(batch).await;
        match &result {
            Ok(()) => {
                let delivered = &self.report.delivered_spans;
                delivered.fetch_add(count, Ordering::Relaxed);
            }
            // Usually the client has said more about it.
            Err(error) => self.report.record_failure(error.to_string()),
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
