use serde::Serialize;

use crate::model::{Accepted, Call, Checked, Mask, MaskedJson, MaskedText, Tool, Verdict};
use crate::record::line::sha256;

/// Content of a `tool_call`: what is executed, not what was asked, where the two differ.
#[derive(Serialize)]
pub(in crate::record) struct CallContent<'a> {
    name: MaskedText<'a>,
    input: Option<MaskedJson<'a>>,
}

/// Metadata of a `tool_call`.
#[derive(Serialize)]
pub(in crate::record) struct CallFields<'a> {
    tool_use_id: MaskedText<'a>,
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
    input_before_coercion: Option<MaskedJson<'a>>,
    /// Why what stood in the input's place is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_fault: Option<String>,
    tool_name: MaskedText<'a>,
    /// Of the tool's definition with all defaults applied, by which it is seen that it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_sha256: Option<&'a str>,
}

impl<'a> CallContent<'a> {
    pub(in crate::record) fn of(checked: &'a Checked, mask: &'a Mask) -> Self {
        let asked = checked.call.input.as_ref().ok();
        let executed = accepted(checked).map(|accepted| &accepted.input);
        Self {
            name: MaskedText(&checked.call.name, mask),
            input: executed
                .or(asked)
                .map(|input| MaskedJson(input.raw(), mask)),
        }
    }
}

impl<'a> CallFields<'a> {
    pub(in crate::record) fn of(
        checked: &'a Checked,
        batch: Option<usize>,
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
        let before = accepted.and_then(|accepted| accepted.before_coercion.as_ref());
        let fault = input.as_ref().err();
        Self {
            tool_use_id: MaskedText(id, mask),
            turn: *turn,
            position: *position,
            batch,
            concurrency_safe: accepted.map(|accepted| accepted.safe),
            reason: accepted.map(|accepted| accepted.decided_by.to_string()),
            input_sha256: input
                .as_ref()
                .ok()
                .map(|input| sha256(input.text().as_bytes())),
            tool_name: MaskedText(name, mask),
            tool_sha256,
            input_before_coercion: before.map(|input| MaskedJson(input.raw(), mask)),
            input_fault: fault.map(|fault| mask.text(&fault.to_string()).into_owned()),
        }
    }
}

/// A digest of all that a tool is; the same for the same file and release.
pub(in crate::record) fn tool_sha256(tool: &Tool) -> String {
    sha256(format!("{tool:?}").as_bytes())
}

fn accepted(checked: &Checked) -> Option<&Accepted> {
    match &checked.verdict {
        Verdict::Accepted(accepted) => Some(accepted),
        Verdict::Rejected(_) => None,
    }
}
