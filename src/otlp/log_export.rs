//! Exports the spans of a log.

use std::sync::Arc;

use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::runtime::Builder;

use crate::otlp::call_spans::{EndedSession, SpanBuilder};
use crate::otlp::exporter::ExporterBuilder;
use crate::otlp::settings::OtlpSettings;
use crate::output::{CommandError, Exit};
use crate::timeline::{LogTimeline, LoggedRun};
use toolq_core::os::Environment;
use toolq_core::types::{TraceContext, Traceparent};

/// How many spans a request has.
const BATCH_SIZE: usize = 512;

/// Sends the spans of all runs in a log, and returns what was sent, in a sentence.
///
/// # Errors
/// The receiver can't be used, or didn't take them all.
pub(crate) fn export_log(
    timeline: &LogTimeline,
    settings: &OtlpSettings,
    environment: &Environment,
) -> Result<String, CommandError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| CommandError::new(Exit::Resources, error))?;
    let builder = ExporterBuilder::new(settings, environment, runtime.handle().clone())?;
    let Some(mut exporter) = builder.spans()? else {
        return Ok("OTEL_TRACES_EXPORTER is none, so no spans were sent".to_owned());
    };
    exporter.set_resource(&builder.resource());
    let spans = log_spans(timeline, settings);
    for batch in spans.chunks(BATCH_SIZE) {
        if let Err(error) = runtime.block_on(exporter.export(batch.to_vec())) {
            let report = Arc::clone(&builder.report);
            let why = report.warning(spans.len() as u64);
            let message = why.unwrap_or_else(|| error.to_string());
            return Err(CommandError::new(Exit::Output, message));
        }
    }
    runtime.shutdown_background();
    Ok(format!("{} spans sent", spans.len()))
}

/// Returns the spans of all runs: of the calls that ended in it, and of the run itself.
fn log_spans(timeline: &LogTimeline, settings: &OtlpSettings) -> Vec<SpanData> {
    let runs = timeline.runs.iter();
    let builders: Vec<SpanBuilder> = runs
        .map(|run| SpanBuilder::new(trace_of(run), settings.captures_content))
        .collect();
    let mut spans = Vec::new();
    for call in &timeline.calls {
        let Some(builder) = builders.get(call.run) else {
            continue;
        };
        for response in &call.responses {
            if let Some(builder) = builders.get(response.run) {
                spans.push(builder.response_span(call, response));
            }
        }
        spans.extend(builder.call_spans(call, timeline.last_ms));
    }
    for (run, builder) in timeline.runs.iter().zip(&builders) {
        spans.push(builder.session_span(&EndedSession {
            id: run.id.to_string(),
            started_ms: run.started_ms,
            ended_ms: run.ended_ms,
            exit_code: run.end.as_ref().map(|end| end.exit_code),
        }));
    }
    spans
}

/// Returns the trace that the run was part of.
fn trace_of(run: &LoggedRun) -> TraceContext {
    let parent = run.session.traceparent.as_deref();
    let parent = parent.and_then(|parent| Traceparent::parse(parent, None));
    let task = run.session.resumes.unwrap_or(run.id);
    TraceContext::new(&task.to_string(), &run.id.to_string(), parent)
}
