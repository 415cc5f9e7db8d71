//! Metadata about agents: the responses of their models, and what they used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::truncated_text::TruncatedText;
use redact::Mask;
use toolq_core::types::{AgentUsage, CallRef, ModelResponse, ReportedUsage};

/// Metadata of a `model_response`: what a later run needs to reuse it, and its token usage.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelResponse")]
pub(crate) struct ResponseFields<'a> {
    tool_use_id: TruncatedText<'a>,
    tool_name: TruncatedText<'a>,
    /// Number of the agent's turn.
    turn: usize,
    model: Option<TruncatedText<'a>>,
    /// The stop reason, if toolq doesn't know it. The response then counts as complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_stop: Option<TruncatedText<'a>>,
    /// `null` if the API reported none.
    usage: ReportedUsage,
    /// SHA-256 of the body of the request.
    request_sha256: &'a str,
    /// Whether the response contained a secret, so that the record doesn't have all of it.
    #[serde(skip_serializing_if = "is_false")]
    masked: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_false(it: &bool) -> bool {
    !it
}

impl<'a> ResponseFields<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        turn: usize,
        response: &'a ModelResponse,
        request_sha256: &'a str,
        mask: &'a Mask,
    ) -> Self {
        Self {
            tool_use_id: TruncatedText(&call.tool_use_id, mask),
            tool_name: TruncatedText(&call.tool_name, mask),
            turn,
            model: response
                .model
                .as_deref()
                .map(|model| TruncatedText(model, mask)),
            unknown_stop: response
                .unknown_stop_reason
                .as_deref()
                .map(|word| TruncatedText(word, mask)),
            usage: response.usage,
            request_sha256,
            masked: mask.apply_to_json(response.body.get()) != response.body.get(),
        }
    }
}

/// What an agent used for a call, in the metadata of the call's result.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentUsageFields<'a> {
    agent_name: &'a str,
    turns_used: u64,
    /// `null` if the API didn't report the tokens of some response.
    tokens_used: Option<u64>,
    tool_calls_made: u64,
    corrections: u64,
    /// `false` if the agent wasn't done within its turns. Its answer is then the last text of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<bool>,
    /// Token usage by model.
    usage: &'a BTreeMap<String, ReportedUsage>,
    /// The part of `usage` reported for responses that broke off. Those have no `model_response`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lost: &'a BTreeMap<String, ReportedUsage>,
}

impl<'a> AgentUsageFields<'a> {
    pub(crate) fn from_usage(usage: &'a AgentUsage) -> Self {
        Self {
            agent_name: &usage.agent_name,
            turns_used: usage.turns,
            tokens_used: usage.total_tokens(),
            tool_calls_made: usage.requested_calls,
            corrections: usage.rejected_calls,
            done: usage.ran_out_of_turns.then_some(false),
            usage: &usage.usage,
            lost: &usage.aborted_usage,
        }
    }
}
