//! Spans of the agents that work on calls, and of the responses of their models.

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SpanData;

use crate::attributes;
use crate::attributes::{number, text};
use crate::call_spans::{SpanBuilder, SpanFacts};
use crate::live_calls::{TracedCall, TracedResponse};
use toolq_core::types::{AgentUsage, ReportedUsage};

impl SpanBuilder {
    /// Returns the span of a model's response to an agent. The request was sent when the agent began to work, or when the
    /// last call that it had waited for ended.
    pub(crate) fn response_span(&self, call: &TracedCall, response: &TracedResponse) -> SpanData {
        let begins = call.attempts.iter().map(|attempt| attempt.started_ms);
        let earlier_turns = call.turn_ends.range(..response.turn);
        let ends = earlier_turns.map(|(_, ended_ms)| *ended_ms);
        let before = begins.chain(ends).filter(|ms| *ms <= response.at_ms);
        let mut attributes = vec![text(attributes::OPERATION, "chat")];
        let optional = |name, value: &Option<String>| Some(text(name, value.clone()?));
        attributes.extend(optional(attributes::PROVIDER, &response.provider));
        attributes.extend(optional(attributes::RESPONSE_MODEL, &response.model));
        attributes.extend(optional(attributes::RESPONSE_ID, &response.message_id));
        attributes.extend(usage_attributes(&response.usage));
        let trace = self.trace_of(call);
        self.span(
            &trace,
            SpanFacts {
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
            },
        )
    }

    /// Returns the span of the agent that worked on a call, whose own span has these facts.
    pub(crate) fn agent_span(
        &self,
        call: &TracedCall,
        usage: &AgentUsage,
        facts: &SpanFacts,
    ) -> SpanData {
        let mut sum = ReportedUsage::default();
        for tokens in usage.usage.values() {
            sum += *tokens;
        }
        let mut attributes = vec![
            text(attributes::OPERATION, "invoke_agent"),
            text(attributes::AGENT_NAME, usage.agent_name.clone()),
        ];
        let provider = call.provider.clone();
        attributes.extend(provider.map(|name| text(attributes::PROVIDER, name)));
        attributes.extend(usage_attributes(&sum));
        let trace = self.trace_of(call);
        self.span(
            &trace,
            SpanFacts {
                id: trace.agent_span_id(&call.path),
                parent: facts.id,
                kind: SpanKind::Internal,
                name: format!("invoke_agent {}", usage.agent_name),
                started_ms: facts.started_ms,
                ended_ms: facts.ended_ms,
                error: facts.error.clone(),
                attributes,
            },
        )
    }
}

/// Returns the tokens, if they are known. By the conventions, input includes what was read from the cache or written to it.
fn usage_attributes(usage: &ReportedUsage) -> Vec<KeyValue> {
    let Some(tokens) = usage.0 else {
        return Vec::new();
    };
    let input = tokens.total().saturating_sub(tokens.output);
    let cache = [
        (attributes::CACHE_READ_TOKENS, tokens.cache_read),
        (attributes::CACHE_WRITE_TOKENS, tokens.cache_write),
    ];
    let cache = cache.into_iter().filter(|(_, count)| *count > 0);
    let mut all = vec![
        number(attributes::INPUT_TOKENS, input),
        number(attributes::OUTPUT_TOKENS, tokens.output),
    ];
    all.extend(cache.map(|(name, count)| number(name, count)));
    all
}
