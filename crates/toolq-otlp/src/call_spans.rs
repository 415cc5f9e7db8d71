//! Spans of calls, of the session, of agents, and of the responses of their models.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::live_calls::{TracedCall, TracedEnd};
use redact::Mask;
use toolq_core::types::{AgentUsage, ModelResponse, ReportedUsage, TraceContext};

/// The name of the span of a session, and of what makes the spans.
pub(crate) const SCOPE_NAME: &str = "toolq";

/// Builds the spans of a session.
pub(crate) struct SpanBuilder {
    trace: TraceContext,
    scope: InstrumentationScope,
    /// Inputs and results go into the spans.
    captures_content: bool,
}

impl SpanBuilder {
    pub(crate) fn new(trace: TraceContext, captures_content: bool) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let scope = InstrumentationScope::builder(SCOPE_NAME).with_version(version);
        Self {
            trace,
            scope: scope.build(),
            captures_content,
        }
    }

    /// Returns whether the trace is sampled. The program that began the trace decides that.
    pub(crate) fn is_sampled(&self) -> bool {
        self.trace.is_sampled()
    }

    /// Returns the span of a session, within which those of its calls are. Times are in milliseconds since 1970.
    pub(crate) fn session_span(&self, id: String, times: (u64, u64), exit_code: u8) -> SpanData {
        let remote_parent = self.trace.parent_span_id();
        let error = (exit_code != 0).then(|| format!("exit {exit_code}"));
        let blank = self.blank(self.trace.session_span_id(), remote_parent.unwrap_or(0));
        let span = SpanData {
            name: SCOPE_NAME.into(),
            parent_span_is_remote: remote_parent.is_some(),
            attributes: vec![text(SESSION_ID, id), number(EXIT_CODE, exit_code)],
            ..blank
        };
        finished(span, times, error)
    }

    /// Returns the span of a call that ended in the session, and that of the agent that worked on it, if one did.
    pub(crate) fn call_spans(&self, call: &TracedCall, end: &TracedEnd) -> Vec<SpanData> {
        let first = call.started_ms();
        let trace = &self.trace;
        // A call that never ran takes no time.
        let ended_ms = first.map_or(call.requested_ms, |_| end.at_ms);
        let times = (first.unwrap_or(call.requested_ms), ended_ms);
        let agent = end.agent.as_ref();
        let agent = agent.map(|usage| finished(self.agent_span(call, usage), times, end.error()));
        let blank = self.blank(
            trace.call_span_id(&call.path),
            trace.parent_of_call(&call.path),
        );
        let mut span = SpanData {
            name: format!("execute_tool {}", call.tool_name).into(),
            attributes: self.call_attributes(call, end),
            ..blank
        };
        let attempts = call.attempts.iter().enumerate();
        let failures = attempts.filter_map(|(index, attempt)| {
            let (status, failed_ms) = attempt.failure.as_ref()?;
            let attributes = vec![
                number(ATTEMPT, index + 1),
                text(ERROR_TYPE, status.as_str()),
            ];
            Some(Event::new("toolq.retry", time(*failed_ms), attributes, 0))
        });
        span.events.events.extend(failures);
        let span = finished(span, times, end.error());
        std::iter::once(span).chain(agent).collect()
    }

    fn call_attributes(&self, call: &TracedCall, end: &TracedEnd) -> Vec<KeyValue> {
        let (turn, position) = call.path.first().copied().unwrap_or_default();
        let mut all = vec![
            text(OPERATION, "execute_tool"),
            text(TOOL_NAME, call.tool_name.clone()),
            text(TOOL_TYPE, "function"),
            text(CALL_ID, call.tool_use_id.clone()),
            number(TURN, turn),
            number(POSITION, position),
            number(ATTEMPTS, call.attempts.len()),
            text(STATUS, end.status.as_str()),
        ];
        all.extend(call.batch.map(|batch| number(BATCH, batch)));
        if self.captures_content {
            all.push(text(CALL_ARGUMENTS, call.input.clone()));
            all.push(text(CALL_RESULT, end.output.clone()));
        }
        all
    }

    /// Returns a span of this trace that says nothing yet.
    fn blank(&self, id: u64, parent: u64) -> SpanData {
        let trace = &self.trace;
        // An ill-formed state was dropped when it was read; one that the library doesn't like isn't worth more.
        let state: Option<TraceState> = trace.tracestate().and_then(|state| state.parse().ok());
        SpanData {
            span_context: SpanContext::new(
                TraceId::from_bytes(trace.trace_id().to_be_bytes()),
                SpanId::from_bytes(id.to_be_bytes()),
                TraceFlags::SAMPLED,
                false,
                state.unwrap_or_default(),
            ),
            parent_span_id: SpanId::from_bytes(parent.to_be_bytes()),
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::default(),
            start_time: UNIX_EPOCH,
            end_time: UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: SpanStatus::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

/// Sets when a span began and ended, and how it failed, if it did.
fn finished(
    mut span: SpanData,
    (started_ms, ended_ms): (u64, u64),
    error: Option<String>,
) -> SpanData {
    span.start_time = time(started_ms);
    span.end_time = time(ended_ms.max(started_ms));
    if let Some(error) = error {
        span.attributes.push(text(ERROR_TYPE, error.clone()));
        span.status = SpanStatus::error(error);
    }
    span
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

// Spans of the agents that work on calls, and of the responses of their models.

impl SpanBuilder {
    /// Returns the span of a model's response in a turn of the agent that works on a call. The request was sent when the agent began
    /// to work, or when the last call that it had waited for ended.
    pub(crate) fn response_span(
        &self,
        call: &TracedCall,
        (turn, response): (usize, &ModelResponse),
        mask: &Mask,
        at_ms: u64,
    ) -> SpanData {
        let begins = call.attempts.iter().map(|attempt| attempt.started_ms);
        let earlier_turns = call.turn_ends.range(..turn);
        let ends = earlier_turns.map(|(_, ended_ms)| *ended_ms);
        let before = begins.chain(ends).filter(|ms| *ms <= at_ms);
        let mut attributes = vec![text(OPERATION, "chat"), text(PROVIDER, response.provider)];
        let named = [
            (RESPONSE_MODEL, &response.model),
            (RESPONSE_ID, &response.message_id),
        ];
        let masked = |value: &Option<String>| Some(mask.apply(value.as_ref()?).into_owned());
        let named = named.into_iter();
        attributes.extend(named.filter_map(|(name, value)| Some(text(name, masked(value)?))));
        attributes.extend(usage_attributes(&response.usage));
        let trace = &self.trace;
        let blank = self.blank(
            trace.response_span_id(&call.path, turn),
            trace.agent_span_id(&call.path),
        );
        let span = SpanData {
            span_kind: SpanKind::Client,
            name: match masked(&response.model) {
                Some(model) => format!("chat {model}").into(),
                None => "chat".into(),
            },
            attributes,
            ..blank
        };
        finished(span, (before.max().unwrap_or(at_ms), at_ms), None)
    }

    /// Returns the span of the agent that worked on a call.
    fn agent_span(&self, call: &TracedCall, usage: &AgentUsage) -> SpanData {
        let mut sum = ReportedUsage::default();
        for tokens in usage.usage.values() {
            sum += *tokens;
        }
        let mut attributes = vec![
            text(OPERATION, "invoke_agent"),
            text(AGENT_NAME, usage.agent_name.clone()),
        ];
        attributes.extend(call.provider.map(|name| text(PROVIDER, name)));
        attributes.extend(usage_attributes(&sum));
        let trace = &self.trace;
        let blank = self.blank(
            trace.agent_span_id(&call.path),
            trace.call_span_id(&call.path),
        );
        SpanData {
            name: format!("invoke_agent {}", usage.agent_name).into(),
            attributes,
            ..blank
        }
    }
}

/// Returns the tokens, if they are known. By the conventions, input includes what was read from the cache or written to it.
fn usage_attributes(usage: &ReportedUsage) -> Vec<KeyValue> {
    let Some(tokens) = usage.0 else {
        return Vec::new();
    };
    let input = tokens.total().saturating_sub(tokens.output);
    let cache = [
        (CACHE_READ_TOKENS, tokens.cache_read),
        (CACHE_WRITE_TOKENS, tokens.cache_write),
    ];
    let cache = cache.into_iter().filter(|(_, count)| *count > 0);
    let mut all = vec![
        number(INPUT_TOKENS, input),
        number(OUTPUT_TOKENS, tokens.output),
    ];
    all.extend(cache.map(|(name, count)| number(name, count)));
    all
}

// Attributes of spans, by the names of the GenAI conventions. What they don't name begins with `toolq.`.

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const CALL_ID: &str = "gen_ai.tool.call.id";
const CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const CALL_RESULT: &str = "gen_ai.tool.call.result";
const AGENT_NAME: &str = "gen_ai.agent.name";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const RESPONSE_ID: &str = "gen_ai.response.id";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const ERROR_TYPE: &str = "error.type";
const EXIT_CODE: &str = "process.exit.code";
const TURN: &str = "toolq.turn";
const POSITION: &str = "toolq.position";
const BATCH: &str = "toolq.batch";
const ATTEMPT: &str = "toolq.attempt";
const ATTEMPTS: &str = "toolq.attempts";
const STATUS: &str = "toolq.status";
const SESSION_ID: &str = "toolq.session.id";

/// Returns an attribute with a text.
pub(crate) fn text(name: &'static str, value: impl Into<String>) -> KeyValue {
    KeyValue::new(name, Value::from(value.into()))
}

/// Returns an attribute with a number. One that is too large is the largest that an attribute can have.
fn number(name: &'static str, value: impl TryInto<i64>) -> KeyValue {
    KeyValue::new(name, value.try_into().unwrap_or(i64::MAX))
}
