//! Spans of calls and of the session. `agent_spans` has those of agents and of the responses of their models.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::attributes;
use crate::attributes::{number, text};
use crate::live_calls::{TracedCall, TracedEnd};
use toolq_core::types::TraceContext;

/// The name of the span of a session, and of what makes the spans.
pub(crate) const SCOPE_NAME: &str = "toolq";

/// Builds the spans of a session.
pub(crate) struct SpanBuilder {
    trace: TraceContext,
    scope: InstrumentationScope,
    /// Inputs and results go into the spans.
    captures_content: bool,
}

/// A session that has ended.
pub(crate) struct EndedSession {
    pub(crate) id: String,
    pub(crate) started_ms: u64,
    pub(crate) ended_ms: u64,
    pub(crate) exit_code: u8,
}

/// What tells spans apart. The rest is the same for all of a session.
pub(crate) struct SpanFacts {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) kind: SpanKind,
    pub(crate) name: String,
    pub(crate) started_ms: u64,
    pub(crate) ended_ms: u64,
    /// How it failed, if it did.
    pub(crate) error: Option<String>,
    pub(crate) attributes: Vec<KeyValue>,
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

    /// Returns whether the trace that a call belongs to is sampled. The program that began the trace decides that.
    pub(crate) fn is_call_sampled(&self, call: &TracedCall) -> bool {
        self.trace_of(call).is_sampled()
    }

    /// Returns the trace that a call belongs to.
    pub(crate) fn trace_of(&self, call: &TracedCall) -> Cow<'_, TraceContext> {
        match &call.traceparent {
            Some(parent) => Cow::Owned(self.trace.of_turn(parent)),
            None => Cow::Borrowed(&self.trace),
        }
    }

    /// Returns the span of a session, within which those of its calls are.
    pub(crate) fn session_span(&self, session: &EndedSession) -> SpanData {
        let code = session.exit_code;
        let attributes = vec![
            text(attributes::SESSION_ID, session.id.clone()),
            number(attributes::EXIT_CODE, code),
        ];
        let error = (code != 0).then(|| format!("exit {code}"));
        let remote_parent = self.trace.parent_span_id();
        let span = self.span(
            &self.trace,
            SpanFacts {
                id: self.trace.session_span_id(),
                parent: remote_parent.unwrap_or(0),
                kind: SpanKind::Internal,
                name: SCOPE_NAME.to_owned(),
                started_ms: session.started_ms,
                ended_ms: session.ended_ms,
                error,
                attributes,
            },
        );
        SpanData {
            parent_span_is_remote: remote_parent.is_some(),
            ..span
        }
    }

    /// Returns the span of a call that ended in the session, and that of the agent that worked on it, if one did.
    pub(crate) fn call_spans(&self, call: &TracedCall, end: &TracedEnd) -> Vec<SpanData> {
        let first = call.started_ms();
        let trace = self.trace_of(call);
        let facts = SpanFacts {
            id: trace.call_span_id(&call.path),
            parent: trace.parent_of_call(&call.path),
            kind: SpanKind::Internal,
            name: format!("execute_tool {}", call.tool_name),
            started_ms: first.unwrap_or(call.requested_ms),
            // A call that never ran takes no time.
            ended_ms: first.map_or(call.requested_ms, |_| end.at_ms),
            error: end.error(),
            attributes: self.call_attributes(call, end),
        };
        let agent = end.agent.as_ref();
        let agent = agent.map(|usage| self.agent_span(call, usage, &facts));
        let mut span = self.span(&trace, facts);
        span.parent_span_is_remote = call.traceparent.is_some() && call.path.len() == 1;
        let failures = call
            .attempts
            .iter()
            .enumerate()
            .filter_map(|(index, attempt)| {
                let (status, failed_ms) = attempt.failure.as_ref()?;
                let attributes = vec![
                    number(attributes::ATTEMPT, index + 1),
                    text(attributes::ERROR_TYPE, status.as_str()),
                ];
                Some(Event::new("toolq.retry", time(*failed_ms), attributes, 0))
            });
        let mut events = SpanEvents::default();
        events.events.extend(failures);
        span.events = events;
        std::iter::once(span).chain(agent).collect()
    }

    fn call_attributes(&self, call: &TracedCall, end: &TracedEnd) -> Vec<KeyValue> {
        let (turn, position) = call.path.first().copied().unwrap_or_default();
        let mut all = vec![
            text(attributes::OPERATION, "execute_tool"),
            text(attributes::TOOL_NAME, call.tool_name.clone()),
            text(attributes::TOOL_TYPE, "function"),
            text(attributes::CALL_ID, call.tool_use_id.clone()),
            number(attributes::TURN, turn),
            number(attributes::POSITION, position),
            number(attributes::ATTEMPTS, call.attempts.len()),
            text(attributes::STATUS, end.status.as_str()),
        ];
        all.extend(call.batch.map(|batch| number(attributes::BATCH, batch)));
        if self.captures_content {
            all.push(text(attributes::CALL_ARGUMENTS, call.input.clone()));
            all.push(text(attributes::CALL_RESULT, end.output.clone()));
        }
        all
    }

    /// Returns a span of this trace.
    pub(crate) fn span(&self, trace: &TraceContext, mut facts: SpanFacts) -> SpanData {
        // An ill-formed state was dropped when it was read; one that the library doesn't like isn't worth more.
        let state: Option<TraceState> = trace.tracestate().and_then(|state| state.parse().ok());
        let status = match facts.error {
            Some(error) => {
                let name = attributes::ERROR_TYPE;
                facts.attributes.push(text(name, error.clone()));
                SpanStatus::error(error)
            }
            None => SpanStatus::Unset,
        };
        SpanData {
            span_context: SpanContext::new(
                TraceId::from_bytes(trace.trace_id().to_be_bytes()),
                SpanId::from_bytes(facts.id.to_be_bytes()),
                TraceFlags::SAMPLED,
                false,
                state.unwrap_or_default(),
            ),
            parent_span_id: SpanId::from_bytes(facts.parent.to_be_bytes()),
            parent_span_is_remote: false,
            span_kind: facts.kind,
            name: Cow::Owned(facts.name),
            start_time: time(facts.started_ms),
            end_time: time(facts.ended_ms.max(facts.started_ms)),
            attributes: facts.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}
