//! Renders a call for the user or program that has to approve it.

use serde::Serialize;

use crate::plan::invocation_json::InvocationJson;
use crate::plan::invocation_line;
use crate::plan::sandbox_text::{self, SandboxJson};
use crate::types::{AcceptedCall, ApprovalRequest, MaskedJson, MaskedText};
use redact::Mask;

/// What an approval program reads.
#[derive(Serialize)]
struct ApprovalQuestionJson<'a> {
    tool_use_id: MaskedText<'a>,
    tool_name: MaskedText<'a>,
    effect: &'static str,
    /// The input that would run.
    input: MaskedJson<'a>,
    /// `None` if the tool has no backing.
    runs: Option<InvocationJson<'a>>,
    /// What its program can reach; missing if that isn't confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxJson>,
    turn: usize,
    /// The agent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<MaskedText<'a>>,
}

/// Renders the question that an approval program reads: an object on one line. It contains the whole input, regardless
/// of its size.
///
/// # Errors
/// The question can't be serialized, so the call can't be approved.
pub fn render_approval_question(
    request: &ApprovalRequest,
    mask: &Mask,
) -> Result<String, serde_json::Error> {
    let ApprovalRequest { call, accepted } = request;
    let question = ApprovalQuestionJson {
        tool_use_id: MaskedText(&call.tool_use_id, mask),
        tool_name: MaskedText(&call.tool_name, mask),
        effect: accepted.tool.effect.name(),
        input: MaskedJson(accepted.input.as_raw(), mask),
        runs: InvocationJson::new(accepted, mask),
        sandbox: SandboxJson::new(accepted, mask),
        turn: call.turn,
        agent: call
            .parent
            .as_ref()
            .map(|agent| MaskedText(&agent.tool_name, mask)),
    };
    Ok(serde_json::to_string(&question)? + "\n")
}

/// Renders what the program of a call can reach on one line for people, with control characters escaped. `None` if it
/// isn't confined.
pub fn render_sandbox(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    sandbox_text::render_sandbox(accepted, mask)
}

/// Renders what a call would run on one line for people, with control characters escaped. `None` if its tool has no
/// backing.
pub fn render_invocation(accepted: &AcceptedCall, mask: &Mask) -> Option<String> {
    invocation_line::render_invocation(accepted, mask)
}
