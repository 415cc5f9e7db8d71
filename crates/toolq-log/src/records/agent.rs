//! Metadata about agents: the responses of their models, and what they used.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::record::recorded_text;
use redact::Mask;
use toolq_core::types::{AgentUsage, CallRef, ModelResponse, ReportedUsage};

/// How many bytes of tool names metadata has room for.
const MAX_NAME_BYTES: usize = 16 << 10;

/// Metadata of a `model_response`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelResponseRecord<'a> {
    /// The id of the call that the agent works on.
    #[serde(borrow, default)]
    pub tool_use_id: Cow<'a, str>,
    /// The tool of that call.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// Number of the agent's turn.
    pub turn: usize,
    /// The id of the response.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
    /// The model that responded.
    #[serde(borrow, default)]
    pub model: Option<Cow<'a, str>>,
    /// The stop reason, if toolq doesn't know it. The response then counts as complete.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub unknown_stop: Option<Cow<'a, str>>,
    /// `null` if the API reported none.
    #[serde(default)]
    pub usage: ReportedUsage,
}

impl<'a> ModelResponseRecord<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        turn: usize,
        response: &'a ModelResponse,
        mask: &Mask,
    ) -> Self {
        let optional = |text: Option<&'a str>| text.map(|text| recorded_text(text, mask));
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            turn,
            message_id: optional(response.message_id.as_deref()),
            model: optional(response.model.as_deref()),
            unknown_stop: optional(response.unknown_stop_reason.as_deref()),
            usage: response.usage,
        }
    }
}

/// What an agent used for a call, in the metadata of the call's result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentUsageRecord {
    /// The agent's name.
    pub agent_name: String,
    /// Number of model responses.
    #[serde(default)]
    pub turns_used: u64,
    /// `null` if the API didn't report the tokens of some response.
    #[serde(default)]
    pub tokens_used: Option<u64>,
    /// Number of calls that the agent made.
    #[serde(default)]
    pub tool_calls_made: u64,
    /// The tools that these calls named, in call order. Those of the first calls, if all together are too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_called: Vec<String>,
    /// How many of these were rejected, so that the model had to correct itself.
    #[serde(default)]
    pub corrections: u64,
    /// `false` if the agent wasn't done within its turns. Its answer is then the last text of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// Token usage by model.
    #[serde(default)]
    pub usage: BTreeMap<String, ReportedUsage>,
}

impl AgentUsageRecord {
    pub(crate) fn new(usage: &AgentUsage, mask: &Mask) -> Self {
        Self {
            agent_name: usage.agent_name.clone(),
            turns_used: usage.turns,
            tokens_used: usage.total_tokens(),
            tool_calls_made: usage.requested_calls,
            tools_called: recorded_names(&usage.tools_called, mask),
            corrections: usage.rejected_calls,
            done: usage.ran_out_of_turns.then_some(false),
            usage: {
                let models = usage.usage.iter();
                let named = |(model, usage): (&String, &ReportedUsage)| {
                    (recorded_text(model, mask).into_owned(), *usage)
                };
                models.map(named).collect()
            },
        }
    }
}

/// Returns as many of these names as metadata has room for.
fn recorded_names(names: &[String], mask: &Mask) -> Vec<String> {
    let names = names.iter().map(|name| recorded_text(name, mask));
    let mut bytes = 0;
    let fitting = names.take_while(|name| {
        bytes += name.len();
        bytes <= MAX_NAME_BYTES
    });
    fitting.map(Cow::into_owned).collect()
}

impl From<AgentUsageRecord> for AgentUsage {
    fn from(record: AgentUsageRecord) -> Self {
        Self {
            agent_name: record.agent_name,
            turns: record.turns_used,
            requested_calls: record.tool_calls_made,
            tools_called: record.tools_called,
            rejected_calls: record.corrections,
            ran_out_of_turns: record.done == Some(false),
            usage: record.usage,
        }
    }
}
