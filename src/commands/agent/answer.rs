//! Prints the answer of an agent.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::AnswerFormat;
use crate::commands::agent::transcript::AgentTranscript;
use crate::commands::single_call::{SingleAnswer, answer_text};
use crate::output::CommandError;
use crate::output::stdout;
use toolq_core::json::{expect_json, indent_json};
use toolq_core::types::{ReportedUsage, Status, ToolsConfig, format_usd};

/// The output of `--to json`.
#[derive(Serialize)]
struct AgentReport<'a> {
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

/// Prints the answer in the requested format.
///
/// # Errors
/// Stdout can't be written.
pub(crate) fn print_answer(
    transcript: &AgentTranscript,
    agent_answer: &SingleAnswer,
    to: AnswerFormat,
    tools: &ToolsConfig,
) -> Result<(), CommandError> {
    let Some(answer) = agent_answer.get() else {
        return Ok(());
    };
    match to {
        AnswerFormat::Text if answer.is_error => Ok(()),
        AnswerFormat::Text => Ok(stdout::write_line(&answer_text(answer))?),
        AnswerFormat::Messages => print_json(&transcript.conversation),
        AnswerFormat::Json => print_json(&AgentReport {
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
        }),
    }
}

fn print_json(value: &impl Serialize) -> Result<(), CommandError> {
    let compact = expect_json(serde_json::to_string(value));
    let line = if stdout::is_terminal() {
        indent_json(&compact)
    } else {
        compact
    };
    Ok(stdout::write_line(&line)?)
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
