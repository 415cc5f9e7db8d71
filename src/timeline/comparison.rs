//! Compares the calls of two logs: which are missing, added, changed or slower.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use crate::timeline::log_timeline::LogTimeline;
use crate::timeline::timeline_call::TimelineCall;

/// Time after which calls may be paired less well than possible.
const MAX_PAIRING_TIME: Duration = Duration::from_secs(2);
/// A call is slower if it took this many times as long …
const SLOWER_FACTOR: u64 = 2;
/// … and at least this much longer, in milliseconds.
const SLOWER_MS: u64 = 100;

/// A call that differs between two logs.
#[derive(Debug, Serialize)]
pub(crate) struct CallDifference {
    pub(crate) kind: CallDifferenceKind,
    pub(crate) tool_name: String,
    /// The call in the first log, if it has it.
    pub(crate) before: Option<ComparedCall>,
    /// The call in the second log, if it has it.
    pub(crate) after: Option<ComparedCall>,
}

/// How a call differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallDifferenceKind {
    Missing,
    Added,
    /// The same tool was called with another input.
    Input,
    /// The same call ended differently or has another result.
    Result,
    /// The same call with the same result took much longer.
    Slower,
}

/// What is compared of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ComparedCall {
    pub(crate) tool_use_id: String,
    pub(crate) turn: usize,
    pub(crate) position: usize,
    pub(crate) input: String,
    /// How it ended in one word: `ok`, `failed`, `in doubt`.
    pub(crate) outcome: &'static str,
    pub(crate) result: Option<String>,
    pub(crate) duration_ms: Option<u64>,
}

/// Pairs the calls of two logs in their order, and returns those that differ.
pub(crate) fn compare_timelines(before: &LogTimeline, after: &LogTimeline) -> Vec<CallDifference> {
    let keys = |timeline: &LogTimeline| -> Vec<(String, String)> {
        let calls = timeline.calls.iter();
        calls
            .map(|call| (call.tool_name.clone(), call.input.clone()))
            .collect()
    };
    let (keys_before, keys_after) = (keys(before), keys(after));
    let deadline = Some(Instant::now() + MAX_PAIRING_TIME);
    let logs = ComparedLogs { before, after };
    let mut differences = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Patience, &keys_before, &keys_after, deadline)
    {
        let calls_before = &before.calls[op.old_range()];
        let calls_after = &after.calls[op.new_range()];
        if op.tag() == DiffTag::Equal {
            let pairs = calls_before.iter().zip(calls_after);
            differences
                .extend(pairs.filter_map(|(before, after)| logs.compare_pair(before, after)));
        } else {
            logs.pair_changed(calls_before, calls_after, &mut differences);
        }
    }
    differences
}

/// The logs whose calls are compared.
#[derive(Clone, Copy)]
struct ComparedLogs<'a> {
    before: &'a LogTimeline,
    after: &'a LogTimeline,
}

impl ComparedLogs<'_> {
    /// Compares a call that both logs have with the same input.
    fn compare_pair(self, before: &TimelineCall, after: &TimelineCall) -> Option<CallDifference> {
        let tool_name = after.tool_name.clone();
        let before = compared_call(before, self.before);
        let after = compared_call(after, self.after);
        let kind = if (before.outcome, &before.result) != (after.outcome, &after.result) {
            CallDifferenceKind::Result
        } else if is_slower(before.duration_ms?, after.duration_ms?) {
            CallDifferenceKind::Slower
        } else {
            return None;
        };
        Some(CallDifference {
            kind,
            tool_name,
            before: Some(before),
            after: Some(after),
        })
    }

    /// Pairs calls of the same tool with another input, in their order. The others are missing or added.
    fn pair_changed(
        self,
        before: &[TimelineCall],
        after: &[TimelineCall],
        differences: &mut Vec<CallDifference>,
    ) {
        let mut unpaired: Vec<&TimelineCall> = after.iter().collect();
        for call in before {
            let same_tool = unpaired
                .iter()
                .position(|other| other.tool_name == call.tool_name);
            let other = same_tool.map(|at| unpaired.remove(at));
            differences.push(CallDifference {
                kind: if other.is_some() {
                    CallDifferenceKind::Input
                } else {
                    CallDifferenceKind::Missing
                },
                tool_name: call.tool_name.clone(),
                before: Some(compared_call(call, self.before)),
                after: other.map(|other| compared_call(other, self.after)),
            });
        }
        differences.extend(unpaired.into_iter().map(|call| CallDifference {
            kind: CallDifferenceKind::Added,
            tool_name: call.tool_name.clone(),
            before: None,
            after: Some(compared_call(call, self.after)),
        }));
    }
}

fn is_slower(before_ms: u64, after_ms: u64) -> bool {
    after_ms >= before_ms.saturating_mul(SLOWER_FACTOR) && after_ms - before_ms >= SLOWER_MS
}

fn compared_call(call: &TimelineCall, timeline: &LogTimeline) -> ComparedCall {
    ComparedCall {
        tool_use_id: call.tool_use_id.clone(),
        turn: call.turn,
        position: call.position,
        input: call.input.clone(),
        outcome: call.outcome.label(),
        result: call.end.as_ref().map(|end| end.output.clone()),
        duration_ms: timeline.duration_of(call),
    }
}
