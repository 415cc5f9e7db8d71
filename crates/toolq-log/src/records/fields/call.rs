//! Content and metadata of a `tool_call`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::blob::StoredBlob;
use crate::records::line::sha256_hex;
use crate::records::truncated_text::{TruncatedText, is_truncated};
use redact::Mask;
use toolq_core::types::{AcceptedCall, Call, CheckedCall, MaskedJson, MaskedText, Tool, Verdict};

/// Content of a `tool_call`: the input that is executed, even if it differs from the requested one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallContent<'a> {
    name: MaskedText<'a>,
    input: Option<MaskedJson<'a>>,
    /// The full id of the call, if the metadata has only part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<MaskedText<'a>>,
}

/// An input before coercion: inline or, if it is large, a reference to the file that holds it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum InputBeforeCoercion<'a> {
    Inline(MaskedJson<'a>),
    Stored(StoredBlob),
}

/// Metadata of a `tool_call`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallFields<'a> {
    tool_use_id: TruncatedText<'a>,
    turn: usize,
    position: usize,
    /// `null` for a call that won't run.
    batch: Option<usize>,
    concurrency_safe: Option<bool>,
    /// What decided whether the call is concurrency-safe.
    reason: Option<String>,
    /// SHA-256 of the input's original bytes, before masking and coercion.
    input_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_before_coercion: Option<InputBeforeCoercion<'a>>,
    /// Why the requested input isn't a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_fault: Option<String>,
    tool_name: TruncatedText<'a>,
    /// SHA-256 of the tool's definition with all defaults applied. Shows whether the tool has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_sha256: Option<&'a str>,
}

impl<'a> CallContent<'a> {
    pub(crate) fn new(checked: &'a CheckedCall, mask: &'a Mask) -> Self {
        let requested = checked.call.input.as_ref().ok();
        let executed = accepted_call(checked).map(|accepted| &accepted.input);
        Self {
            name: MaskedText(&checked.call.name, mask),
            input: executed
                .or(requested)
                .map(|input| MaskedJson(input.as_raw(), mask)),
            id: is_truncated(&checked.call.id, mask).then_some(MaskedText(&checked.call.id, mask)),
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

impl<'a> CallFields<'a> {
    pub(crate) fn new(
        checked: &'a CheckedCall,
        batch: Option<usize>,
        input_before: Option<InputBeforeCoercion<'a>>,
        mask: &'a Mask,
        tool_sha256: Option<&'a str>,
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
            tool_use_id: TruncatedText(id, mask),
            turn: *turn,
            position: *position,
            batch,
            concurrency_safe: accepted.map(|accepted| accepted.safe),
            reason: accepted.map(|accepted| accepted.safety_source.to_string()),
            input_sha256: input
                .as_ref()
                .ok()
                .map(|input| sha256_hex(input.text().as_bytes())),
            input_before_coercion: input_before,
            input_fault: fault.map(|fault| {
                TruncatedText(&fault.to_string(), mask)
                    .recorded_text()
                    .into_owned()
            }),
            tool_name: TruncatedText(name, mask),
            tool_sha256,
        }
    }
}

/// Returns a digest of a tool's whole definition. It is the same for the same file and toolq release.
pub(crate) fn digest_tool(tool: &Tool) -> String {
    sha256_hex(format!("{tool:?}").as_bytes())
}

fn accepted_call(checked: &CheckedCall) -> Option<&AcceptedCall> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => Some(accepted),
        Verdict::Rejected(_) => None,
    }
}
