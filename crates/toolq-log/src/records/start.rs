//! Metadata of a `tool_start`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::records::process_exit::{ProcessExit, http_status};
use crate::records::recorded_text::recorded_text;
use crate::records::to_millis;
use redact::Mask;
use toolq_core::types::{
    AcceptedCall, CallClaim, CallRef, Effect, Invocation, Outcome, RunsAgain, Status,
};

/// Metadata of a `tool_start`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StartRecord<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// Counted from 1.
    pub attempt: u32,
    /// What stands for it in the memory: the key of the call, its number among the calls with this key, and how often a run has
    /// claimed it: `KEY.1~1`. Missing if nothing remembers it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// How often the call was repeated on purpose. Missing if it wasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Why the call starts again although another run had started it: `did_nothing`, `not_done`, `idempotent` or `renewed`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Cow<'a, str>>,
    /// The same for all attempts.
    #[serde(borrow)]
    pub idempotency_key: Cow<'a, str>,
    /// The effect of the tool. One that a newer toolq added is read as `write`.
    #[serde(deserialize_with = "read_effect")]
    #[schemars(with = "String")]
    pub effect: Effect,
    /// How the previous attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FailedAttempt>,
    /// The agent that starts to work on the call. It may start again, because its own calls are recorded one by one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// Whether it starts only after a yes, which an `approval` before it records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// How long the attempt waited because its tool, server or host limits how many calls run at once or how far their
    /// starts are apart. Waiting for calls before it doesn't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
}

/// A failed attempt that was followed by another.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailedAttempt {
    /// How it ended.
    pub status: Status,
    /// What its program ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
    /// Status of the HTTP response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The wait before the next attempt.
    pub wait_ms: u64,
}

/// How an attempt starts, as the engine says it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptStart<'a> {
    /// Counted from 1.
    pub attempt: u32,
    pub idempotency_key: &'a str,
    /// What stands for it in the memory.
    pub claim: Option<&'a CallClaim>,
    /// How long it waited for the limits of its tool, server or host.
    pub waited: Option<Duration>,
}

impl<'a> StartRecord<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        accepted: &'a AcceptedCall,
        start: AttemptStart<'a>,
        after: Option<FailedAttempt>,
        mask: &Mask,
    ) -> Self {
        let is_agent_call = matches!(accepted.invocation, Some(Invocation::Agent(_)));
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            attempt: start.attempt,
            key: start.claim.map(|claim| claim.name.as_str().into()),
            generation: start
                .claim
                .map(|claim| claim.generation)
                .filter(|generation| *generation > 1),
            again: start
                .claim
                .and_then(|claim| claim.again)
                .map(|again| again_name(again).into()),
            idempotency_key: start.idempotency_key.into(),
            effect: accepted.tool.effect,
            after,
            agent: is_agent_call.then(|| accepted.tool.name.as_str().into()),
            needs_approval: accepted.needs_approval,
            waited_ms: start.waited.map(to_millis),
        }
    }
}

impl FailedAttempt {
    pub(crate) fn new(outcome: &Outcome, wait: Duration) -> Self {
        Self {
            status: outcome.status(),
            exit: ProcessExit::from_outcome(outcome),
            http_status: http_status(outcome),
            wait_ms: to_millis(wait),
        }
    }
}

fn again_name(again: RunsAgain) -> &'static str {
    match again {
        RunsAgain::DidNothing => "did_nothing",
        RunsAgain::SettledNotDone => "not_done",
        RunsAgain::Idempotent => "idempotent",
        RunsAgain::Renewed => "renewed",
    }
}

fn read_effect<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Effect, D::Error> {
    let word = Cow::<'_, str>::deserialize(deserializer)?;
    Ok(Effect::from_name(&word).unwrap_or(Effect::Write))
}
