//! Attributes of spans, by the names of the GenAI conventions. What they don't name begins with `toolq.`.

use opentelemetry::{KeyValue, Value};

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const CALL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const EXIT_CODE: &str = "process.exit.code";
pub(crate) const TURN: &str = "toolq.turn";
pub(crate) const POSITION: &str = "toolq.position";
pub(crate) const BATCH: &str = "toolq.batch";
pub(crate) const ATTEMPT: &str = "toolq.attempt";
pub(crate) const ATTEMPTS: &str = "toolq.attempts";
pub(crate) const STATUS: &str = "toolq.status";
pub(crate) const SESSION_ID: &str = "toolq.session.id";

/// Returns an attribute with a text.
pub(crate) fn text(name: &'static str, value: impl Into<String>) -> KeyValue {
    KeyValue::new(name, Value::from(value.into()))
}

/// Returns an attribute with a number. One that is too large is the largest that an attribute can have.
pub(crate) fn number(name: &'static str, value: impl TryInto<i64>) -> KeyValue {
    KeyValue::new(name, value.try_into().unwrap_or(i64::MAX))
}
