use schemars::JsonSchema;
use serde::Serialize;

use crate::records::blob::Stored;
use crate::records::line::sha256;
use crate::records::truncated_text::{Brief, is_cut};
use redact::Mask;
use toolq_core::types::{Accepted, Call, Checked, MaskedJson, MaskedText, Tool, Verdict};

/// Content of a `tool_call`: what is executed, not what was asked, where the two differ.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallContent<'a> {
    name: MaskedText<'a>,
    input: Option<MaskedJson<'a>>,
    /// The id of the call, where metadata has a part of it only.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<MaskedText<'a>>,
}

/// An input before its types were mended: itself or, where it is large, the file that has it.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Before<'a> {
    Inline(MaskedJson<'a>),
    Stored(Stored),
}

/// Metadata of a `tool_call`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallFields<'a> {
    tool_use_id: Brief<'a>,
    turn: usize,
    position: usize,
    /// None for a call that will not run.
    batch: Option<usize>,
    concurrency_safe: Option<bool>,
    /// What decided that.
    reason: Option<String>,
    /// Of the input's bytes as they came, before anything was masked or coerced.
    input_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_before_coercion: Option<Before<'a>>,
    /// Why what stood in the input's place is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_fault: Option<String>,
    tool_name: Brief<'a>,
    /// Of the tool's definition with all defaults applied, by which it is seen that it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_sha256: Option<&'a str>,
}

impl<'a> CallContent<'a> {
    pub(crate) fn of(checked: &'a Checked, mask: &'a Mask) -> Self {
        let asked = checked.call.input.as_ref().ok();
        let executed = accepted(checked).map(|accepted| &accepted.input);
        Self {
            name: MaskedText(&checked.call.name, mask),
            input: executed
                .or(asked)
                .map(|input| MaskedJson(input.raw(), mask)),
            id: is_cut(&checked.call.id, mask).then_some(MaskedText(&checked.call.id, mask)),
        }
    }

    /// The input as it came, where another is executed.
    pub(crate) fn before(checked: &'a Checked, mask: &'a Mask) -> Option<MaskedJson<'a>> {
        let before = accepted(checked)?.before_coercion.as_ref()?;
        Some(MaskedJson(before.raw(), mask))
    }
}

impl<'a> CallFields<'a> {
    pub(crate) fn of(
        checked: &'a Checked,
        batch: Option<usize>,
        before: Option<Before<'a>>,
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
        let accepted = accepted(checked);
        let fault = input.as_ref().err();
        Self {
            tool_use_id: Brief(id, mask),
            turn: *turn,
            position: *position,
            batch,
            concurrency_safe: accepted.map(|accepted| accepted.safe),
            reason: accepted.map(|accepted| accepted.decided_by.to_string()),
            input_sha256: input
                .as_ref()
                .ok()
                .map(|input| sha256(input.text().as_bytes())),
            input_before_coercion: before,
            input_fault: fault.map(|fault| Brief(&fault.to_string(), mask).text().into_owned()),
            tool_name: Brief(name, mask),
            tool_sha256,
        }
    }
}

/// A digest of all that a tool is; the same for the same file and release.
pub(crate) fn tool_sha256(tool: &Tool) -> String {
    sha256(format!("{tool:?}").as_bytes())
}

fn accepted(checked: &Checked) -> Option<&Accepted> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => Some(accepted),
        Verdict::Rejected(_) => None,
    }
}
