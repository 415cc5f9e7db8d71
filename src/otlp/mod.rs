//! `--otlp`: where the calls of a run are sent as OpenTelemetry spans, and metrics of them. Without the feature `otlp`, the flag
//! only leads to an error.

#[cfg(not(feature = "otlp"))]
mod absent;
mod settings;

#[cfg(not(feature = "otlp"))]
pub(crate) use absent::OtlpSink;
pub(crate) use settings::OtlpSettings;
#[cfg(feature = "otlp")]
pub(crate) use toolq_otlp::OtlpSink;
