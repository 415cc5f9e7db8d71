//! Content and metadata of a `tool_call`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::memory::Identity;
use crate::records::blob::RecordContent;
use crate::records::call_end::{ProcessExit, http_status, is_truncated};
use crate::records::record::recorded_text;
use redact::Mask;
use toolq_core::text::to_millis;
use toolq_core::types::{
    AcceptedCall, Call, CallClaim, CallRef, CheckedCall, ContextDigest, Effect, Invocation,
    MaskedJson, Outcome, RunsAgain, Status, Verdict,
};

// The input is written with its secrets masked, and read exactly as it is in the log.
/// Content of a `tool_call`: the input that is executed, even if it differs from the requested one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallContent<'a, I = &'a RawValue> {
    /// The requested tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `null` if the request had no JSON object in its place.
    pub input: Option<I>,
    /// The full id of the call, if the metadata has only part of it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
}

/// Metadata of a `tool_call`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// Number of its turn.
    pub turn: usize,
    /// Its position in the turn, counted from 0.
    pub position: usize,
    /// `null` for a call that won't run.
    pub batch: Option<usize>,
    /// Whether it may run concurrently with others.
    pub concurrency_safe: Option<bool>,
    /// What decided whether the call is concurrency-safe.
    pub reason: Option<Cow<'a, str>>,
    /// The key by which a later run finds the call, if it has an id or values that last.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// A digest of the id of its message, if that is random.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// A digest of what stands before its message in the conversation, if it is part of one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Cow<'a, str>>,
    /// A digest of what the input means, as it was requested. Only with `key`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Cow<'a, str>>,
    /// The same of the input that is executed, if it differs.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub executed_digest: Option<Cow<'a, str>>,
    /// The input as it was requested, if a different one is executed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_before_coercion: Option<RecordContent<'a>>,
    /// Why the requested input isn't a JSON object.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub input_fault: Option<Cow<'a, str>>,
    /// Whether it starts only after a yes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// The requested tool.
    #[serde(borrow, default)]
    pub tool_name: Cow<'a, str>,
}

impl<'a> CallContent<'a, MaskedJson<'a>> {
    pub(crate) fn new(checked: &'a CheckedCall, mask: &'a Mask) -> Self {
        let requested = checked.call.input.as_ref().ok();
        let executed = accepted_call(checked).map(|accepted| &accepted.input);
        let id = &checked.call.id;
        Self {
            name: mask.apply(&checked.call.name),
            input: executed
                .or(requested)
                .map(|input| MaskedJson(input.as_raw(), mask)),
            id: is_truncated(id, mask).then(|| mask.apply(id)),
        }
    }

    /// Returns the original input, if a different one is executed.
    pub(crate) fn input_before_coercion(
        checked: &'a CheckedCall,
        mask: &'a Mask,
    ) -> Option<MaskedJson<'a>> {
        let before = accepted_call(checked)?.before_coercion.as_ref()?;
        Some(MaskedJson(before.as_raw(), mask))
    }
}

impl<'a> CallRecord<'a> {
    pub(crate) fn new(
        checked: &'a CheckedCall,
        batch: Option<usize>,
        input_before_coercion: Option<RecordContent<'a>>,
        identity: Option<&Identity>,
        mask: &Mask,
    ) -> Self {
        let Call {
            turn,
            position,
            id,
            name,
            input,
            ..
        } = &checked.call;
        let accepted = accepted_call(checked);
        let fault = input.as_ref().err();
        Self {
            tool_use_id: recorded_text(id, mask),
            turn: *turn,
            position: *position,
            batch,
            concurrency_safe: accepted.map(|accepted| accepted.safe),
            reason: accepted.map(|accepted| accepted.safety_source.to_string().into()),
            key: identity.map(|identity| identity.keys.new_key().to_string().into()),
            message: identity.and_then(|identity| digest_text(identity.context.message)),
            before: identity.and_then(|identity| digest_text(identity.context.before)),
            input_digest: identity.map(|identity| identity.input_digest.clone().into()),
            executed_digest: identity
                .and_then(|identity| identity.executed_digest.clone())
                .map(Cow::Owned),
            input_before_coercion,
            input_fault: fault
                .map(|fault| recorded_text(&fault.to_string(), mask).into_owned().into()),
            needs_approval: accepted.is_some_and(|accepted| accepted.needs_approval),
            tool_name: recorded_text(name, mask),
        }
    }
}

fn digest_text<'a>(digest: Option<ContextDigest>) -> Option<Cow<'a, str>> {
    digest.map(|digest| digest.to_string().into())
}

fn accepted_call(checked: &CheckedCall) -> Option<&AcceptedCall> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => Some(accepted),
        Verdict::Rejected(_) => None,
    }
}

// Metadata of a `tool_start`.

/// Metadata of a `tool_start`.
#[serde_with::skip_serializing_none]
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
    #[serde(borrow)]
    pub key: Option<Cow<'a, str>>,
    /// How often the call was repeated on purpose. Missing if it wasn't.
    pub generation: Option<u32>,
    /// Why the call starts again although another run had started it: `did_nothing`, `not_done`, `idempotent` or `renewed`.
    #[serde(borrow)]
    pub again: Option<Cow<'a, str>>,
    /// The same for all attempts.
    #[serde(borrow)]
    pub idempotency_key: Cow<'a, str>,
    /// The effect of the tool. One that a newer toolq added is read as `write`.
    #[serde(deserialize_with = "read_effect")]
    #[schemars(with = "String")]
    pub effect: Effect,
    /// How the previous attempt failed.
    pub after: Option<FailedAttempt>,
    /// The agent that starts to work on the call. It may start again, because its own calls are recorded one by one.
    #[serde(borrow)]
    pub agent: Option<Cow<'a, str>>,
    /// Whether it starts only after a yes, which an `approval` before it records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// How long the attempt waited because its tool, server or host limits how many calls run at once or how far their
    /// starts are apart. Waiting for calls before it doesn't count.
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

impl<'a> StartRecord<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        accepted: &'a AcceptedCall,
        (attempt, idempotency_key, waited): (u32, &'a str, Option<Duration>),
        claim: Option<&'a CallClaim>,
        mask: &Mask,
    ) -> Self {
        let is_agent_call = matches!(accepted.invocation, Some(Invocation::Agent(_)));
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            attempt,
            key: claim.map(|claim| claim.name.as_str().into()),
            generation: claim
                .map(|claim| claim.generation)
                .filter(|generation| *generation > 1),
            again: claim
                .and_then(|claim| claim.again)
                .map(|again| again_name(again).into()),
            idempotency_key: idempotency_key.into(),
            effect: accepted.tool.effect,
            after: None,
            agent: is_agent_call.then(|| accepted.tool.name.as_str().into()),
            needs_approval: accepted.needs_approval,
            waited_ms: waited.map(to_millis),
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
