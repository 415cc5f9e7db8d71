//! Spans of calls and of the session. `agent_spans` has those of agents and of the responses of their models.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::live_calls::{TracedCall, TracedEnd, TracedResponse};
use toolq_core::types::{AgentUsage, ReportedUsage, TraceContext};

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
    kind: SpanKind,
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

    /// Returns the span of a session, within which those of its calls are.
    pub(crate) fn session_span(&self, session: &EndedSession) -> SpanData {
        let code = session.exit_code;
        let attributes = vec![
            text(SESSION_ID, session.id.clone()),
            number(EXIT_CODE, code),
        ];
        let error = (code != 0).then(|| format!("exit {code}"));
        let remote_parent = self.trace.parent_span_id();
        let span = self.span(SpanFacts {
            id: self.trace.session_span_id(),
            parent: remote_parent.unwrap_or(0),
            kind: SpanKind::Internal,
            name: SCOPE_NAME.to_owned(),
            started_ms: session.started_ms,
            ended_ms: session.ended_ms,
            error,
            attributes,
        });
        SpanData {
            parent_span_is_remote: remote_parent.is_some(),
            ..span
        }
    }

    /// Returns the span of a call that ended in the session, and that of the agent that worked on it, if one did.
    pub(crate) fn call_spans(&self, call: &TracedCall, end: &TracedEnd) -> Vec<SpanData> {
        let first = call.started_ms();
        let trace = &self.trace;
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
        let mut span = self.span(facts);
        let failures = call
            .attempts
            .iter()
            .enumerate()
            .filter_map(|(index, attempt)| {
                let (status, failed_ms) = attempt.failure.as_ref()?;
                let attributes = vec![
                    number(ATTEMPT, index + 1),
                    text(ERROR_TYPE, status.as_str()),
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

    /// Returns a span of this trace.
    pub(crate) fn span(&self, mut facts: SpanFacts) -> SpanData {
        let trace = &self.trace;
        // An ill-formed state was dropped when it was read; one that the library doesn't like isn't worth more.
        let state: Option<TraceState> = trace.tracestate().and_then(|state| state.parse().ok());
        let status = match facts.error {
            Some(error) => {
                let name = ERROR_TYPE;
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

// Spans of the agents that work on calls, and of the responses of their models.

impl SpanBuilder {
    /// Returns the span of a model's response to an agent. The request was sent when the agent began to work, or when the
    /// last call that it had waited for ended.
    pub(crate) fn response_span(&self, call: &TracedCall, response: &TracedResponse) -> SpanData {
        let begins = call.attempts.iter().map(|attempt| attempt.started_ms);
        let earlier_turns = call.turn_ends.range(..response.turn);
        let ends = earlier_turns.map(|(_, ended_ms)| *ended_ms);
        let before = begins.chain(ends).filter(|ms| *ms <= response.at_ms);
        let mut attributes = vec![text(OPERATION, "chat"), text(PROVIDER, response.provider)];
        let optional = |name, value: &Option<String>| Some(text(name, value.clone()?));
        attributes.extend(optional(RESPONSE_MODEL, &response.model));
        attributes.extend(optional(RESPONSE_ID, &response.message_id));
        attributes.extend(usage_attributes(&response.usage));
        let trace = &self.trace;
        self.span(SpanFacts {
            id: trace.response_span_id(&call.path, response.turn),
            parent: trace.agent_span_id(&call.path),
            kind: SpanKind::Client,
            name: match &response.model {
                Some(model) => format!("chat {model}"),
                None => "chat".to_owned(),
            },
            started_ms: before.max().unwrap_or(response.at_ms),
            ended_ms: response.at_ms,
            error: None,
            attributes,
        })
    }

    /// Returns the span of the agent that worked on a call, whose own span has these facts.
    fn agent_span(&self, call: &TracedCall, usage: &AgentUsage, facts: &SpanFacts) -> SpanData {
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
        self.span(SpanFacts {
            id: trace.agent_span_id(&call.path),
            parent: facts.id,
            kind: SpanKind::Internal,
            name: format!("invoke_agent {}", usage.agent_name),
            started_ms: facts.started_ms,
            ended_ms: facts.ended_ms,
            error: facts.error.clone(),
            attributes,
        })
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
