use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::truncated_text::Brief;
use redact::Mask;
use toolq_core::types::{AgentUse, CallRef, Response, Tokens};

/// Metadata of a `model_response`: what is needed to use it again, and what it took.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelResponse")]
pub(crate) struct ResponseFields<'a> {
    tool_use_id: Brief<'a>,
    tool_name: Brief<'a>,
    /// The agent's turn.
    turn: usize,
    model: Option<Brief<'a>>,
    /// Why it ended, where that is a word that is not known: it was taken for a good end.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_stop: Option<Brief<'a>>,
    /// `null` where the API told none.
    usage: Tokens,
    /// Of the body of the request that it answers.
    request_sha256: &'a str,
    /// A secret was in the answer, so that the record has not all of it.
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
    pub(crate) fn of(
        call: &'a CallRef,
        turn: usize,
        response: &'a Response,
        request_sha256: &'a str,
        mask: &'a Mask,
    ) -> Self {
        Self {
            tool_use_id: Brief(&call.tool_use_id, mask),
            tool_name: Brief(&call.tool_name, mask),
            turn,
            model: response.model.as_deref().map(|model| Brief(model, mask)),
            unknown_stop: response
                .unknown_stop
                .as_deref()
                .map(|word| Brief(word, mask)),
            usage: response.usage,
            request_sha256,
            masked: mask.json(response.body.get()) != response.body.get(),
        }
    }
}

/// What an agent used for a call, in the metadata of its result.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentFields<'a> {
    agent_name: &'a str,
    turns_used: u64,
    /// `null` where the API did not count those of an answer.
    tokens_used: Option<u64>,
    tool_calls_made: u64,
    corrections: u64,
    /// False where it was not done within its turns: its answer is its last words.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<bool>,
    /// By model.
    usage: &'a BTreeMap<String, Tokens>,
    /// What of it was told of answers that broke off, which have no `model_response`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lost: &'a BTreeMap<String, Tokens>,
}

impl<'a> AgentFields<'a> {
    pub(crate) fn of(agent: &'a AgentUse) -> Self {
        Self {
            agent_name: &agent.agent_name,
            turns_used: agent.turns,
            tokens_used: agent.tokens(),
            tool_calls_made: agent.calls,
            corrections: agent.corrections,
            done: agent.unfinished.then_some(false),
            usage: &agent.usage,
            lost: &agent.lost,
        }
    }
}
