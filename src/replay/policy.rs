//! Rules for recorded calls: which ones run, and what a rejection means.

use clap::ValueEnum;
use serde_json::Value;

use crate::replay::case::{CaseDifference, DifferenceKind};
use redact::Mask;
use toolq_core::answer::{self, AnswerWording};
use toolq_core::types::{
    AcceptedCall, Call, Compare, Effect, IgnorePattern, Invocation, Outcome, RecordedResult,
    Rejection, RejectionReason, TextNormalizer, ToolsConfig,
};

/// Which calls to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExecutePolicy {
    /// Calls of read-only tools.
    Read,
    /// All calls whose tool has a backing.
    All,
    /// No calls.
    None,
    /// Calls of commands, regardless of their effect: they run on a copy. Requests and agents reach beyond it.
    #[value(skip)]
    OnCopy,
}

/// Returns whether to run an accepted call. A call doesn't run if it wouldn't be compared, if it was skipped in the
/// recording, or if it needs an approval or reads the truncated output of an earlier call: a replay asks for no approvals,
/// and keeps no outputs.
pub(crate) fn should_run(
    accepted: &AcceptedCall,
    recorded_as_skipped: bool,
    execute: ExecutePolicy,
) -> bool {
    let wanted = match execute {
        ExecutePolicy::Read => accepted.tool.effect == Effect::Read,
        ExecutePolicy::All => true,
        ExecutePolicy::None => false,
        ExecutePolicy::OnCopy => matches!(accepted.invocation, Some(Invocation::Command(_))),
    };
    wanted
        && !matches!(accepted.invocation, None | Some(Invocation::ReadOutput(_)))
        && accepted.tool.compare != Compare::None
        && !recorded_as_skipped
        && !accepted.needs_approval
}

/// The beginnings of results that say that a call was rejected before it ran: two of Claude Code, and one of toolq.
const REFUSAL_PREFIXES: [&str; 3] = ["<tool_use_error>", "InputValidationError", "Not executed: "];

/// Returns whether the recording shows that a call, which is rejected today, was already rejected when it was recorded.
///
/// Session logs say so by a status. In other formats, the result is an error whose text is one of the known refusals,
/// or is what toolq would answer today. Any other error may come from a tool that ran.
pub(crate) fn was_rejected_when_recorded(
    recorded: &RecordedResult,
    call: &Call,
    rejection: &Rejection,
    tools: &ToolsConfig,
    mask: &Mask,
) -> bool {
    if rejection.reason == RejectionReason::UnknownTool {
        return false;
    }
    if let Some(rejected) = recorded.rejected {
        return rejected;
    }
    if recorded.is_error == Some(false) {
        return false;
    }
    let text = answer::content_as_text(&recorded.content);
    let invalid_input = format!("Invalid input for {}; it was not run:", call.name);
    let mut refusals = REFUSAL_PREFIXES.into_iter().chain([&*invalid_input]);
    if refusals.any(|refusal| text.starts_with(refusal)) {
        return true;
    }
    let tool = tools.get(&call.name).map(|tool| &**tool);
    let messages = tool.map_or(&tools.messages, |tool| &tool.messages);
    let outcome = Outcome::Rejected(rejection.clone());
    let wording = AnswerWording {
        messages,
        mask,
        output_reader: None,
    };
    let actual = answer::build_answer(call, tool, &outcome, wording);
    text == answer::content_as_text(&actual.content)
}

/// Returns the differences of a call that is rejected today.
pub(crate) fn rejection_differences(
    call: &Call,
    rejection: &Rejection,
    mask: &Mask,
) -> Vec<CaseDifference> {
    if rejection.reason == RejectionReason::UnknownTool {
        let lines: Vec<&str> = rejection
            .details
            .iter()
            .map(|detail| detail.message.as_str())
            .collect();
        return vec![CaseDifference {
            kind: DifferenceKind::UnknownTool,
            path: String::new(),
            expected: Some(masked_json(&lines.join("; "), mask)),
            actual: Some(masked_json(&call.name, mask)),
        }];
    }
    let input = call
        .input
        .as_ref()
        .ok()
        .map(toolq_core::json::Input::to_value);
    let difference = |detail: &toolq_core::types::ProblemDetail| {
        let value = input.as_ref().and_then(|input| input.pointer(&detail.path));
        CaseDifference {
            kind: DifferenceKind::Schema,
            path: mask.apply(&detail.path).into_owned(),
            expected: Some(masked_json(&detail.message, mask)),
            actual: value.map(|value: &Value| mask.apply_to_json(&value.to_string()).into_owned()),
        }
    };
    rejection.details.iter().map(difference).collect()
}

/// Returns a text as a masked JSON string.
fn masked_json(text: &str, mask: &Mask) -> String {
    Value::from(mask.apply(text)).to_string()
}

// The settings of a replay.

/// The settings of a replay.
#[derive(Debug, Clone)]
pub struct ReplaySettings {
    /// Which calls run.
    pub execute: ExecutePolicy,
    /// Parts of each result that may differ.
    pub ignored: Vec<IgnorePattern>,
    /// What is replaced in all texts before they are compared.
    pub normalizers: Vec<TextNormalizer>,
    /// Whether to compute edits that write new results into the recordings.
    pub update_recordings: bool,
    /// Whether stale results count as differences.
    pub strict: bool,
    /// Whether to stop after the first turn in which a call differs.
    pub fail_fast: bool,
}
