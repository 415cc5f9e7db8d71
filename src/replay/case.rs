//! The outcome of replaying recorded calls.

use std::time::Duration;

use toolq_core::types::{CallRef, CheckedCall, Effect, ToolsConfig, Verdict};

/// The outcome of replaying one recorded call.
#[derive(Debug)]
pub struct ReplayCase<'c> {
    /// The path of the recording, as given.
    pub file: &'c str,
    /// The call. Its turn number is relative to the recording.
    pub call: &'c CallRef,
    /// The beginning of its input, masked.
    pub input: &'c str,
    /// What was found.
    pub result: CaseResult,
    /// Time from its first start to its end; zero if it didn't run.
    pub duration: Duration,
    /// Whether it ran.
    pub executed: bool,
}

/// What was found about a call.
#[derive(Debug, Clone)]
pub enum CaseResult {
    /// The current tools accept it, and its result is the recorded one.
    Matched,
    /// The current tools accept it, and its result was served from the recording.
    Served,
    /// Nothing could be compared.
    Incomplete(IncompleteCause),
    /// It differs, in one or more ways, in the order of the input or result.
    Differs(Vec<CaseDifference>),
    /// Its result differs, but may do so because an earlier call that would have changed something didn't run.
    Stale {
        /// That call.
        after: CallRef,
        /// How the result differs.
        differences: Vec<CaseDifference>,
        /// Whether it counts as a difference, as with `--strict`.
        is_failure: bool,
    },
}

impl CaseResult {
    /// Returns the differences that make the replay fail.
    pub fn failures(&self) -> &[CaseDifference] {
        match self {
            Self::Differs(differences)
            | Self::Stale {
                differences,
                is_failure: true,
                ..
            } => differences,
            _ => &[],
        }
    }
}

/// Why nothing was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompleteCause {
    /// The recording has no result for it.
    NoResult,
    /// The recording has none because the conversation went on without it.
    Abandoned,
    /// The replay was stopped before it was compared.
    Halted,
}

/// One way in which a call differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseDifference {
    /// What differs.
    pub kind: DifferenceKind,
    /// JSON pointer into the input (for `schema`) or into the result; empty for the whole.
    pub path: String,
    /// Masked JSON: the recorded value, or for an input the message of the violated rule.
    pub expected: Option<String>,
    /// Masked JSON: the current value, or for an input the rejected value.
    pub actual: Option<String>,
}

/// What can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The current tools reject the input.
    Schema,
    /// The tool no longer exists.
    UnknownTool,
    /// The result differs.
    Result,
    /// The recording has no result, and the call isn't run.
    Missing,
}

impl DifferenceKind {
    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::UnknownTool => "unknown_tool",
            Self::Result => "result",
            Self::Missing => "missing",
        }
    }
}

/// Totals over all recordings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayTotals {
    /// Recordings that were read.
    pub files: usize,
    /// Their turns, including those without calls.
    pub turns: usize,
    /// Their calls.
    pub calls: usize,
    /// Calls that ran.
    pub executed: usize,
    /// Calls whose result was served from the recording.
    pub served: usize,
    /// Calls that match, including served ones.
    pub matched: usize,
    /// Calls that differ.
    pub differing: usize,
    /// Whether a result differs that names a recording: its tool has found it.
    pub has_found_recording: bool,
    /// Calls whose result differs after a call that would have changed something, but didn't run.
    pub stale: usize,
    /// Those of them that count as differing, as with `--strict`.
    pub differing_stale: usize,
    /// Calls that weren't compared, because the recording has no result for them.
    pub unrecorded: usize,
    /// Calls that weren't compared, because the conversation went on without their results.
    pub abandoned: usize,
    /// New results that were written into the recordings.
    pub updated: usize,
}

impl ReplayTotals {
    /// Returns whether a call was compared with its recording.
    pub fn has_comparison(&self) -> bool {
        self.matched + self.differing + self.stale > 0
    }

    /// Counts a call.
    pub fn count_case(&mut self, case: &ReplayCase<'_>) {
        self.calls += 1;
        self.executed += usize::from(case.executed);
        match &case.result {
            CaseResult::Matched => self.matched += 1,
            CaseResult::Served => {
                self.served += 1;
                self.matched += 1;
            }
            CaseResult::Incomplete(IncompleteCause::NoResult) => self.unrecorded += 1,
            CaseResult::Incomplete(IncompleteCause::Abandoned) => self.abandoned += 1,
            CaseResult::Incomplete(IncompleteCause::Halted) => {}
            CaseResult::Differs(differences) => {
                self.differing += 1;
                self.has_found_recording |= names_recording(differences, case.file);
            }
            CaseResult::Stale {
                is_failure,
                differences,
                ..
            } => {
                self.stale += 1;
                self.has_found_recording |= names_recording(differences, case.file);
                self.differing += usize::from(*is_failure);
                self.differing_stale += usize::from(*is_failure);
            }
        }
    }
}

fn names_recording(differences: &[CaseDifference], recording: &str) -> bool {
    let name = recording.rsplit('/').next().unwrap_or(recording);
    let names = |difference: &CaseDifference| {
        let is_result = difference.kind == DifferenceKind::Result;
        is_result
            && difference
                .actual
                .as_ref()
                .is_some_and(|actual| actual.contains(name))
    };
    differences.iter().any(names)
}

// Finds out after which call of a recording the world is no longer what it was when the recording was made.

/// Returns the call, with its turn in the recording, as unapplied if it may have changed something when it was recorded, but didn't run today.
/// `was_skipped` says that it didn't run back then, either.
pub(crate) fn find_unapplied(
    checked: &CheckedCall,
    case: &ReplayCase<'_>,
    was_skipped: bool,
    tools: &ToolsConfig,
) -> Option<CallRef> {
    let was_rejected = matches!(
        (&checked.verdict, &case.result),
        (Verdict::Rejected(_), CaseResult::Served)
    );
    let tool = tools.get(&checked.call.name);
    let only_reads = tool.is_some_and(|tool| tool.effect == Effect::Read);
    let may_have_changed = !case.executed && !was_skipped && !was_rejected && !only_reads;
    may_have_changed.then(|| case.call.clone())
}
