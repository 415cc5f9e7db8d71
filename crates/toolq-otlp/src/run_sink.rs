//! Exports the spans and metrics of a run while it is in progress.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanProcessor as _,
};
use tokio::runtime::Handle;

use crate::call_spans::{self, SCOPE_NAME, SpanBuilder, text};
use crate::exporter::{DeliveryReport, ExporterBuilder};
use crate::live_calls::{LiveCalls, TracedCall, TracedEnd};
use redact::Mask;
use toolq_core::exit::{CommandError, Exit};
use toolq_core::os::{Clock, Environment};
use toolq_core::types::{EmitError, Event, EventSink, Status, TraceContext};

/// How long the end of a run may wait for the receiver.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How many spans wait for a slow receiver before more are dropped, unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise.
const MAX_QUEUED_SPANS: usize = 1 << 16;

/// Turns the events of a run into spans and metrics, which threads of their own export.
pub struct OtlpSink {
    outlet: Outlet,
    clock: Clock,
    calls: LiveCalls,
    captures_content: bool,
    /// Missing before the session begins.
    session: Option<(SpanBuilder, String, u64)>,
    sent_spans: u64,
}

/// Where spans and metrics go.
struct Outlet {
    spans: Option<BatchSpanProcessor>,
    metrics: Option<CallMetrics>,
    report: Arc<DeliveryReport>,
}

impl OtlpSink {
    /// Starts the exporters on the current runtime. Nothing is sent yet. Without `endpoint`, the environment names the receiver.
    /// With `captures_content`, inputs and results go into the spans.
    ///
    /// # Errors
    /// The requested receiver can't be used.
    pub fn open(
        endpoint: Option<&str>,
        captures_content: bool,
        environment: &Environment,
        mask: &Arc<Mask>,
        clock: &Clock,
    ) -> Result<Self, CommandError> {
        let builder = ExporterBuilder::new(endpoint, environment, Handle::current())?;
        let (spans, metrics) = (builder.spans()?, builder.metrics()?);
        let resource = builder.resource();
        let spans = spans.map(|exporter| {
            let config = BatchConfigBuilder::default();
            let config = match environment.get("OTEL_BSP_MAX_QUEUE_SIZE") {
                Some(_) => config,
                None => config.with_max_queue_size(MAX_QUEUED_SPANS),
            };
            let processor = BatchSpanProcessor::builder(exporter);
            let mut processor = processor.with_batch_config(config.build()).build();
            processor.set_resource(&resource);
            processor
        });
        Ok(Self {
            outlet: Outlet {
                spans,
                metrics: metrics.map(|exporter| CallMetrics::new(exporter, resource)),
                report: builder.report,
            },
            clock: clock.clone(),
            calls: LiveCalls::new(Arc::clone(mask), captures_content),
            captures_content,
            session: None,
            sent_spans: 0,
        })
    }

    /// Begins the trace of the session.
    pub fn begin(&mut self, trace: TraceContext) {
        let id = trace.session().to_owned();
        let spans = SpanBuilder::new(trace, self.captures_content);
        self.session = Some((spans, id, self.clock.now_ms()));
    }

    /// Ends the span of the session, and waits a short time until all is sent. Returns a warning if something wasn't.
    pub fn close(mut self, exit: Exit) -> Option<String> {
        if let Some((spans, id, started_ms)) = self.session.take() {
            let times = (started_ms, self.clock.now_ms());
            let span = spans.session_span(id, times, exit.code());
            self.send(spans.is_sampled().then_some(span));
        }
        let (report, sent_spans) = (Arc::clone(&self.outlet.report), self.sent_spans);
        self.outlet.close();
        report.warning(sent_spans)
    }

    fn send(&mut self, spans: impl IntoIterator<Item = SpanData>) {
        let Some(processor) = &self.outlet.spans else {
            return;
        };
        for span in spans {
            self.sent_spans += 1;
            processor.on_end(span);
        }
    }

    /// Returns the spans that end with an event.
    fn handle_event(&mut self, event: &Event<'_>, at_ms: u64) -> Vec<SpanData> {
        match event {
            Event::Queued { checked, batch } => self.calls.add(checked, *batch, at_ms),
            Event::Started { call, .. } => self.calls.start(call, at_ms),
            Event::Retrying { call, outcome, .. } => {
                self.calls.fail_attempt(call, outcome, at_ms);
            }
            Event::AgentMessage {
                call,
                response: Some(response),
                turn,
                ..
            } => {
                let mask = Arc::clone(&self.calls.mask);
                let responding = self.calls.respond(call, response.provider);
                let Some((call, (spans, ..))) = responding.zip(self.session.as_ref()) else {
                    return Vec::new();
                };
                let span = || spans.response_span(call, (*turn, response), &mask, at_ms);
                return spans.is_sampled().then(span).into_iter().collect();
            }
            Event::Finished {
                call,
                outcome,
                answer,
                agent_usage,
                ..
            } => {
                let ended = self
                    .calls
                    .finish(call, (outcome, answer), *agent_usage, at_ms);
                let Some(((call, end), (spans, ..))) = ended.zip(self.session.as_ref()) else {
                    return Vec::new();
                };
                if let Some(metrics) = &self.outlet.metrics {
                    metrics.record(&call, &end);
                }
                if spans.is_sampled() {
                    return spans.call_spans(&call, &end);
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

impl EventSink for OtlpSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let at_ms = self.clock.now_ms();
        for event in events {
            let spans = self.handle_event(event, at_ms);
            self.send(spans);
        }
        Ok(())
    }
}

impl Outlet {
    /// Sends what is left, and waits for it at most [`CLOSE_TIMEOUT`]: the exporters' own limits are longer.
    fn close(self) {
        let (sender, receiver) = mpsc::channel();
        let closing = thread::Builder::new().spawn(move || {
            if let Some(spans) = &self.spans {
                // What failed is in the report.
                let _ = spans.shutdown_with_timeout(CLOSE_TIMEOUT);
            }
            if let Some(metrics) = &self.metrics {
                metrics.shut_down(CLOSE_TIMEOUT);
            }
            // If closing took too long, the receiver is gone.
            let _ = sender.send(());
        });
        if closing.is_ok() {
            // The report says what is missing.
            let _ = receiver.recv_timeout(CLOSE_TIMEOUT);
        }
    }
}

// Metrics of calls, by tool.

/// Bounds of the durations in seconds, as the conventions have them.
const DURATION_BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// Counts calls and errors, and measures how long calls take.
struct CallMetrics {
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
    fn record(&self, call: &TracedCall, end: &TracedEnd) {
        let is_known = end.status != Status::UnknownTool;
        let name = text(call_spans::TOOL_NAME, call.tool_name.clone());
        let mut labels: Vec<KeyValue> = is_known.then_some(name).into_iter().collect();
        self.calls.add(1, &labels);
        if let Some(error) = end.error() {
            labels.push(text(call_spans::ERROR_TYPE, error));
            self.errors.add(1, &labels);
        }
        if let Some(started_ms) = call.started_ms() {
            let duration = Duration::from_millis(end.at_ms.saturating_sub(started_ms));
            labels.push(text(call_spans::OPERATION, "execute_tool"));
            self.durations.record(duration.as_secs_f64(), &labels);
        }
    }

    /// Exports what was counted, and ends the thread.
    fn shut_down(&self, timeout: Duration) {
        // The client has reported what failed.
        let _ = self.provider.shutdown_with_timeout(timeout);
    }
}
