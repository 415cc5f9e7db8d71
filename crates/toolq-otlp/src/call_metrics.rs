//! Metrics of calls, by tool.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::attributes;
use crate::attributes::text;
use crate::call_spans::SCOPE_NAME;
use crate::live_calls::{TracedCall, TracedEnd};
use toolq_core::types::Status;

/// Bounds of the durations in seconds, as the conventions have them.
const DURATION_BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// Counts calls and errors, and measures how long calls take.
pub(crate) struct CallMetrics {
    provider: SdkMeterProvider,
    calls: Counter<u64>,
    errors: Counter<u64>,
    durations: Histogram<f64>,
}

impl CallMetrics {
    /// Starts the thread that exports them at intervals (`OTEL_METRIC_EXPORT_INTERVAL`).
    pub(crate) fn new(exporter: MetricExporter, resource: Resource) -> Self {
        let provider = SdkMeterProvider::builder()
            .with_periodic_exporter(exporter)
            .with_resource(resource)
            .build();
        let meter = provider.meter(SCOPE_NAME);
        Self {
            calls: meter
                .u64_counter("toolq.calls")
                .with_description("Calls that ended")
                .with_unit("{call}")
                .build(),
            errors: meter
                .u64_counter("toolq.call.errors")
                .with_description("Calls whose result is an error")
                .with_unit("{call}")
                .build(),
            durations: meter
                .f64_histogram("gen_ai.execute_tool.duration")
                .with_description("From the start of a call to its end")
                .with_unit("s")
                .with_boundaries(DURATION_BOUNDS.to_vec())
                .build(),
            provider,
        }
    }

    /// Counts a call that has ended. A call of an unknown tool has no name label: each name that a model makes up would add
    /// another time series.
    pub(crate) fn record(&self, call: &TracedCall, end: &TracedEnd) {
        let is_known = end.status != Status::UnknownTool;
        let name = text(attributes::TOOL_NAME, call.tool_name.clone());
        let mut labels: Vec<KeyValue> = is_known.then_some(name).into_iter().collect();
        self.calls.add(1, &labels);
        if let Some(error) = end.error() {
            labels.push(text(attributes::ERROR_TYPE, error));
            self.errors.add(1, &labels);
        }
        if let Some(started_ms) = call.started_ms() {
            let duration = Duration::from_millis(end.at_ms.saturating_sub(started_ms));
            labels.push(text(attributes::OPERATION, "execute_tool"));
            self.durations.record(duration.as_secs_f64(), &labels);
        }
    }

    /// Exports what was counted, and ends the thread.
    pub(crate) fn shut_down(&self, timeout: Duration) {
        // The client has reported what failed.
        let _ = self.provider.shutdown_with_timeout(timeout);
    }
}
