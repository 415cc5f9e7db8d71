//! Metadata of the records that end a call: `tool_result`, `tool_skipped` and `tool_in_doubt`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::agent::AgentUsageRecord;
use crate::records::record::{MAX_TEXT_BYTES, RecordKind, recorded_text};
use redact::Mask;
use toolq_core::text::to_millis;
use toolq_core::types::{
    AgentFailure, AgentUsage, CallAnswer, CallEnding, CallRef, CutOutput, Outcome, Reach, Status,
};

/// How much of the end of a program's standard error is recorded, in bytes.
const MAX_STDERR_BYTES: usize = 400;

/// Metadata of a `tool_result`, `tool_skipped` or `tool_in_doubt`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallEndRecord<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// Whether the model reads the content as an error.
    pub is_error: bool,
    /// How the call ended, in one word.
    pub status: Status,
    /// From the first start to the end.
    pub duration_ms: u64,
    /// How many attempts were started. 0 for a call that never started.
    pub attempts: u32,
    /// What the program ended with.
    #[serde(flatten)]
    pub exit: ProcessExit,
    /// Status of the HTTP response.
    pub http_status: Option<u16>,
    /// Size of the output in bytes, if the call could produce any.
    pub bytes: Option<u64>,
    /// Bytes of output that the content omits.
    pub cut_bytes: Option<u64>,
    /// The file that holds the whole output.
    #[serde(borrow)]
    pub saved: Option<Cow<'a, str>>,
    /// The names of the files in `LOG.d` that hold what a server answered and isn't text.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Cow<'a, str>>,
    /// Whether invalid UTF-8 in the output was replaced by U+FFFD.
    pub lossy: Option<bool>,
    /// The limit of the tool that ended the call.
    #[serde(borrow)]
    pub limit: Option<Cow<'a, str>>,
    /// Where the result comes from, if the call itself didn't run.
    #[serde(borrow)]
    pub cached: Option<CacheRecord<'a>>,
    /// Number of processes that the call left running and that were killed.
    pub leftovers: Option<u32>,
    /// What an agent used.
    #[serde(flatten, default)]
    pub agent: Option<AgentUsageRecord>,
    /// The agent whose own budget is used up, as opposed to the budget of the run.
    #[serde(borrow)]
    pub budget_of: Option<Cow<'a, str>>,
    /// Why the call failed or didn't run, if it did, even if the model reads another text.
    #[serde(borrow)]
    pub error: Option<ErrorRecord<'a>>,
    /// What is known of the effect, unless the call was done: `nothing`, `refused` by what was called, or `open`.
    #[serde(borrow)]
    pub reach: Option<Cow<'a, str>>,
    /// Where the result was remembered, if the call didn't run because it had run before.
    #[serde(borrow)]
    pub memory: Option<MemoryRecord<'a>>,
}

/// Where a result comes from that an earlier run has taken.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRecord<'a> {
    /// The log of that run.
    #[serde(borrow)]
    pub log: Cow<'a, str>,
    /// When the call ended, in milliseconds since 1970.
    pub ended: u64,
}

/// A result from the cache.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CacheRecord<'a> {
    /// How long ago the result was taken.
    pub age_ms: u64,
    /// The id of the call that ran.
    #[serde(borrow)]
    pub tool_use_id: Cow<'a, str>,
}

/// Why a call failed or didn't run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord<'a> {
    /// The cause, or else the words of the status.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The end of the program's standard error.
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub stderr: Cow<'a, str>,
}

impl<'a> CallEndRecord<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        outcome: &'a Outcome,
        answer: &'a CallAnswer,
        (duration, attempts, agent_usage): (Duration, u32, Option<&'a AgentUsage>),
        mask: &Mask,
    ) -> Self {
        let captured = outcome.captured();
        let saved = captured.and_then(|captured| captured.saved_path.as_deref());
        let attachments = captured.map(|captured| captured.attachments.iter());
        let attachments = attachments.into_iter().flatten();
        let captured_count = |count: fn(&_) -> u64| captured.map(count).filter(|count| *count > 0);
        Self {
            tool_use_id: recorded_text(&call.tool_use_id, mask),
            tool_name: recorded_text(&call.tool_name, mask),
            is_error: answer.is_error,
            status: outcome.status(),
            duration_ms: to_millis(duration),
            attempts,
            exit: ProcessExit::from_outcome(outcome),
            http_status: http_status(outcome),
            bytes: captured.map(|captured| captured.total_bytes),
            cut_bytes: captured_count(|captured| captured.cut_bytes),
            saved: saved.map(|path| mask.apply(&path.to_string_lossy()).into_owned().into()),
            attachments: attachments
                .filter_map(|path| path.file_name())
                .map(OsStr::to_string_lossy)
                .collect(),
            lossy: captured
                .is_some_and(|captured| captured.lossy)
                .then_some(true),
            limit: match outcome.ending() {
                Some(CallEnding::LimitExceeded(limit)) => Some(limit.name().into()),
                _ => None,
            },
            cached: captured
                .and_then(|captured| captured.cached.as_deref())
                .map(|hit| CacheRecord {
                    age_ms: to_millis(hit.age),
                    tool_use_id: recorded_text(&hit.tool_use_id, mask),
                }),
            leftovers: captured
                .map(|captured| captured.killed_leftovers)
                .filter(|leftovers| *leftovers > 0),
            agent: agent_usage.map(|agent| AgentUsageRecord::new(agent, mask)),
            budget_of: match outcome {
                Outcome::AgentFailed {
                    failure: AgentFailure::OverBudget { agent, .. },
                    ..
                } => Some(agent.into()),
                _ => None,
            },
            error: answer.report.error.as_ref().map(|message| ErrorRecord {
                message: recorded_text(message, mask),
                stderr: recorded_text(stderr_end(outcome), mask),
            }),
            reach: match outcome.reach() {
                Reach::Done => None,
                _ if outcome.is_in_doubt() => None,
                reach => Some(reach.name().into()),
            },
            memory: MemoryRecord::new(outcome, mask),
        }
    }

    /// Returns what is left of the output, if that was cut.
    pub(crate) fn cut_output(&self) -> Option<CutOutput> {
        self.cut_bytes?;
        let saved = self.saved.as_deref().map(Path::new);
        let file_name = saved.and_then(Path::file_name);
        Some(CutOutput {
            file_name: file_name.map(|name| name.to_string_lossy().into_owned()),
            total_bytes: self.bytes.unwrap_or_default(),
        })
    }

    /// Returns whether the call was ended because its run ended, rather than for a reason of its own.
    pub fn is_interrupted(&self) -> bool {
        self.status.is_interrupted() && self.budget_of.is_none()
    }
}

/// Returns the end of the program's standard error, as much as metadata has room for.
fn stderr_end(outcome: &Outcome) -> &str {
    let stderr = outcome
        .output()
        .map_or("", |output| output.stderr.trim_end());
    &stderr[stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_STDERR_BYTES))..]
}

/// Returns the type of the record that ends a call with this outcome. Skipped and in-doubt calls don't get a
/// `tool_result`: a later run may start the former and must not start the latter.
pub(crate) fn end_record_kind(outcome: &Outcome) -> RecordKind {
    if outcome.is_skipped() || outcome.is_restored() && !outcome.is_in_doubt() {
        RecordKind::ToolSkipped
    } else if outcome.is_in_doubt() {
        RecordKind::ToolInDoubt
    } else {
        RecordKind::ToolResult
    }
}

impl MemoryRecord<'_> {
    /// `None` if the result doesn't come from another run.
    fn new(outcome: &Outcome, mask: &Mask) -> Option<Self> {
        let Outcome::Restored(restored) = outcome else {
            return None;
        };
        let source = restored.source.as_ref()?;
        let log = mask.apply(&source.log.to_string_lossy()).into_owned();
        Some(Self {
            log: log.into(),
            ended: source.ended_ms,
        })
    }
}

// What a program or a request ended with.

/// The exit code or the signal of a program. At most one is set.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessExit {
    /// Exit code of the program.
    pub exit: Option<i32>,
    /// Signal that killed the program.
    pub signal: Option<i32>,
}

impl ProcessExit {
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        Self::from_ending(outcome.ending())
    }

    pub(crate) fn from_ending(ending: Option<CallEnding>) -> Self {
        let (exit, signal) = match ending {
            Some(CallEnding::ExitCode(code)) => (Some(code), None),
            Some(CallEnding::Signal(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        Self { exit, signal }
    }
}

/// Returns the status of the response that a request ended with.
pub(crate) fn http_status(outcome: &Outcome) -> Option<u16> {
    outcome.ending().and_then(CallEnding::http_status)
}

// Masks and shortens texts that go into metadata.

/// Returns whether metadata has only part of this text.
pub(crate) fn is_truncated(text: &str, mask: &Mask) -> bool {
    mask.apply(text).len() > MAX_TEXT_BYTES
}
