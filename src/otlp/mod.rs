//! `--otlp`: the calls of a run as OpenTelemetry spans by the GenAI conventions, and metrics of them. Without the feature `otlp`,
//! the flag only leads to an error.

mod settings;

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod agent_spans;
#[cfg(feature = "otlp")]
mod attributes;
#[cfg(feature = "otlp")]
mod call_metrics;
#[cfg(feature = "otlp")]
mod call_spans;
#[cfg(feature = "otlp")]
mod delivery;
#[cfg(feature = "otlp")]
mod export_client;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(feature = "otlp")]
mod live_calls;
#[cfg(feature = "otlp")]
mod run_sink;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::OtlpSink;
#[cfg(feature = "otlp")]
pub(crate) use run_sink::OtlpSink;
pub(crate) use settings::{OtlpSettings, parse_endpoint};
