//! Sends the calls of a run to a receiver of OpenTelemetry: spans by the `GenAI` conventions, and metrics, by OTLP over HTTP.

mod call_spans;
mod exporter;
mod live_calls;
mod run_sink;

pub use run_sink::OtlpSink;
