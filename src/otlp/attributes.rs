//! Attributes of spans, by the names of the GenAI conventions. What they don't name begins with `toolq.`.

use opentelemetry::{KeyValue, Value};

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const CALL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const EXIT_CODE: &str = "process.exit.code";
pub(super) const TURN: &str = "toolq.turn";
pub(super) const POSITION: &str = "toolq.position";
pub(super) const BATCH: &str = "toolq.batch";
pub(super) const ATTEMPT: &str = "toolq.attempt";
pub(super) const ATTEMPTS: &str = "toolq.attempts";
pub(super) const STATUS: &str = "toolq.status";
pub(super) const SESSION_ID: &str = "toolq.session.id";

/// Returns an attribute with a text.
pub(super) fn text(name: &'static str, value: impl Into<String>) -> KeyValue {
    KeyValue::new(name, Value::from(value.into()))
}

/// Returns an attribute with a number. One that is too large is the largest that an attribute can have.
pub(super) fn number(name: &'static str, value: impl TryInto<i64>) -> KeyValue {
    KeyValue::new(name, value.try_into().unwrap_or(i64::MAX))
}
