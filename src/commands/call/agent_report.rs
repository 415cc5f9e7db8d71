//! What `--to json` prints of an agent.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::commands::call::session::answer_text;
use crate::commands::call::transcript::AgentTranscript;
use toolq_core::types::{CallAnswer, ReportedUsage, Status, ToolsConfig, format_usd};

/// The answer of an agent with what it took.
#[derive(Serialize)]
pub(super) struct AgentReport<'a> {
    text: String,
    is_error: bool,
    status: &'a Status,
    /// Whether the text is a final answer, rather than an error or the last text when the turns were used up.
    done: bool,
    agent_name: &'a str,
    turns_used: u64,
    /// `None` if an API didn't report them.
    tokens_used: Option<u64>,
    tool_calls_made: u64,
    tools_called: &'a [String],
    corrections: u64,
    /// Usage by model, including that of agents it called.
    usage: &'a BTreeMap<String, ReportedUsage>,
    /// `None` if a price is unknown, or if no model responded.
    estimated_cost_usd: Option<Box<RawValue>>,
    duration_ms: u64,
}

impl<'a> AgentReport<'a> {
    pub(super) fn new(
        transcript: &'a AgentTranscript,
        answer: &CallAnswer,
        tools: &ToolsConfig,
    ) -> Self {
        Self {
            text: answer_text(answer),
            is_error: answer.is_error,
            status: &transcript.status,
            done: !answer.is_error && !transcript.agent_usage.ran_out_of_turns,
            agent_name: &transcript.agent_usage.agent_name,
            turns_used: transcript.agent_usage.turns,
            tokens_used: transcript.agent_usage.total_tokens(),
            tool_calls_made: transcript.agent_usage.requested_calls,
            tools_called: &transcript.agent_usage.tools_called,
            corrections: transcript.agent_usage.rejected_calls,
            usage: &transcript.total_usage,
            estimated_cost_usd: estimate_cost(transcript, tools),
            duration_ms: transcript.duration_ms,
        }
    }
}

/// Returns the total cost as a JSON number, or `None` if a price is unknown.
fn estimate_cost(transcript: &AgentTranscript, tools: &ToolsConfig) -> Option<Box<RawValue>> {
    if transcript.total_usage.is_empty() {
        return None;
    }
    let parts = transcript
        .total_usage
        .iter()
        .map(|(model, usage)| tools.prices.cost(model, usage));
    let sum = parts.sum::<Option<u128>>()?;
    RawValue::from_string(format_usd(sum)).ok()
}
