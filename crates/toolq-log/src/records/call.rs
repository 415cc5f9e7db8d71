//! Content and metadata of a `tool_call`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::memory::Identity;
use crate::records::blob::RecordContent;
use crate::records::recorded_text::{is_truncated, recorded_text};
use redact::Mask;
use toolq_core::types::{AcceptedCall, Call, CheckedCall, ContextDigest, MaskedJson, Verdict};

/// Content of a `tool_call`: the input that is executed, even if it differs from the requested one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallContent<'a> {
    /// The requested tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `null` if the request had no JSON object in its place.
    #[serde(borrow)]
    #[schemars(with = "Option<MaskedJson<'a>>")]
    pub input: Option<RecordedJson<'a>>,
    /// The full id of the call, if the metadata has only part of it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
}

/// JSON that is written with its secrets masked, and read exactly as it is in the log.
#[derive(Debug)]
pub enum RecordedJson<'a> {
    /// To be written.
    Masked(MaskedJson<'a>),
    /// As read.
    Raw(&'a RawValue),
}

impl RecordedJson<'_> {
    /// Returns the JSON text of a value that was read.
    pub fn as_raw(&self) -> &RawValue {
        match self {
            Self::Masked(MaskedJson(raw, _)) | Self::Raw(raw) => raw,
        }
    }
}

impl Serialize for RecordedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Masked(masked) => masked.serialize(serializer),
            Self::Raw(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RecordedJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::Raw)
    }
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
    #[serde(borrow)]
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
    /// The requested tool.
    #[serde(borrow, default)]
    pub tool_name: Cow<'a, str>,
}

impl<'a> CallContent<'a> {
    pub(crate) fn new(checked: &'a CheckedCall, mask: &'a Mask) -> Self {
        let requested = checked.call.input.as_ref().ok();
        let executed = accepted_call(checked).map(|accepted| &accepted.input);
        let id = &checked.call.id;
        Self {
            name: mask.apply(&checked.call.name),
            input: executed
                .or(requested)
                .map(|input| RecordedJson::Masked(MaskedJson(input.as_raw(), mask))),
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
