//! Finds out after which call of a recording the world is no longer what it was when the recording was made.

use toolq_core::types::{CheckedCall, Effect, ToolsConfig, Verdict};

use crate::replay::case::{CaseResult, ReplayCase};

/// A call of a recording that may have changed something then, but didn't run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnappliedCall {
    /// The name of its tool, masked.
    pub tool_name: String,
    /// Its id, masked.
    pub tool_use_id: String,
    /// Its turn in the recording.
    pub turn: usize,
}

/// Returns the call as unapplied if it may have changed something when it was recorded, but didn't run today.
/// `was_skipped` says that it didn't run back then, either.
pub(crate) fn find_unapplied(
    checked: &CheckedCall,
    case: &ReplayCase<'_>,
    was_skipped: bool,
    tools: &ToolsConfig,
) -> Option<UnappliedCall> {
    let was_rejected = matches!(
        (&checked.verdict, &case.result),
        (Verdict::Rejected(_), CaseResult::Served)
    );
    let tool = tools.get(&checked.call.name);
    let only_reads = tool.is_some_and(|tool| tool.effect == Effect::Read);
    let may_have_changed = !case.executed && !was_skipped && !was_rejected && !only_reads;
    may_have_changed.then(|| UnappliedCall {
        tool_name: case.call.tool_name.to_string(),
        tool_use_id: case.call.tool_use_id.clone(),
        turn: case.call.turn,
    })
}
