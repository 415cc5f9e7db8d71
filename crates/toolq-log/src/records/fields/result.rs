//! Metadata of the start and the end of a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::agent::AgentUsageFields;
use crate::records::fields::to_millis;
use crate::records::kind::RecordKind;
use crate::records::truncated_text::TruncatedText;
use redact::Mask;
use toolq_core::types::{AgentFailure, AgentUsage, CallEnding, CallRef, Outcome, Status};

/// Metadata of a `tool_start`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StartFields<'a> {
    pub(crate) tool_use_id: TruncatedText<'a>,
    pub(crate) tool_name: TruncatedText<'a>,
    pub(crate) attempt: u32,
    pub(crate) idempotency_key: &'a str,
    pub(crate) effect: &'static str,
    /// How the previous attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<AttemptFields>,
    /// The agent that starts to work on the call. It may start again, because its own calls are recorded one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'a str>,
}

/// A failed attempt that was followed by another.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AttemptFields {
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    wait_ms: u64,
}

impl AttemptFields {
    pub(crate) fn from_outcome(outcome: &Outcome, wait: Duration) -> Self {
        let (exit, signal, http_status) = exit_codes(outcome);
        Self {
            status: outcome.status(),
            exit,
            signal,
            http_status,
            wait_ms: to_millis(wait),
        }
    }
}

/// Which record ends a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// The call has its result.
    Result,
    /// The call was answered without running.
    Skipped,
    /// The call may have had its effect.
    InDoubt,
}

impl ResultKind {
    pub(crate) fn from_outcome(outcome: &Outcome) -> Self {
        if outcome.is_skipped() {
            Self::Skipped
        } else if outcome.is_in_doubt() {
            Self::InDoubt
        } else {
            Self::Result
        }
    }

    /// Returns the type of the record.
    pub(crate) fn record_kind(self) -> RecordKind {
        match self {
            Self::Result => RecordKind::ToolResult,
            Self::Skipped => RecordKind::ToolSkipped,
            Self::InDoubt => RecordKind::ToolInDoubt,
        }
    }
}

/// Metadata of a `tool_result`, `tool_skipped` or `tool_in_doubt`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResultFields<'a> {
    tool_use_id: TruncatedText<'a>,
    tool_name: TruncatedText<'a>,
    is_error: bool,
    /// How the call ended, in one word.
    status: Status,
    duration_ms: u64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    /// Size of the output in bytes, if the call could produce any.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Bytes of output that the content omits.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_bytes: Option<u64>,
    /// The file that holds the whole output.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
    /// Whether invalid UTF-8 in the output was replaced by U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    lossy: Option<bool>,
    /// The limit of the tool that ended the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    /// Number of processes that the call left running and that were killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    leftovers: Option<u32>,
    /// What an agent used.
    #[serde(flatten)]
    agent: Option<AgentUsageFields<'a>>,
    /// The agent whose own budget is used up, as opposed to the budget of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_of: Option<&'a str>,
}

impl<'a> ResultFields<'a> {
    pub(crate) fn new(
        call: &'a CallRef,
        outcome: &'a Outcome,
        is_error: bool,
        (duration, attempts): (Duration, u32),
        mask: &'a Mask,
    ) -> Self {
        let (exit, signal, http_status) = exit_codes(outcome);
        let captured = outcome.captured();
        let saved = captured.and_then(|captured| captured.saved_path.as_deref());
        Self {
            tool_use_id: TruncatedText(&call.tool_use_id, mask),
            tool_name: TruncatedText(&call.tool_name, mask),
            is_error,
            status: outcome.status(),
            duration_ms: to_millis(duration),
            attempts,
            exit,
            signal,
            http_status,
            bytes: captured.map(|captured| captured.total_bytes),
            cut_bytes: captured
                .map(|captured| captured.cut_bytes)
                .filter(|cut| *cut > 0),
            saved: saved.map(|path| mask.apply(&path.to_string_lossy()).into_owned()),
            lossy: captured
                .map(|captured| captured.lossy)
                .filter(|lossy| *lossy),
            limit: match outcome.ending() {
                Some(CallEnding::LimitExceeded(limit)) => Some(limit.name()),
                _ => None,
            },
            leftovers: captured
                .map(|captured| captured.killed_leftovers)
                .filter(|leftovers| *leftovers > 0),
            agent: None,
            budget_of: match outcome {
                Outcome::AgentFailed {
                    failure: AgentFailure::OverBudget { agent, .. },
                    ..
                } => Some(agent),
                _ => None,
            },
        }
    }

    /// Adds what an agent used.
    pub(crate) fn with_agent_usage(self, agent: Option<&'a AgentUsage>) -> Self {
        Self {
            agent: agent.map(AgentUsageFields::from_usage),
            ..self
        }
    }
}

/// Returns the exit code, the signal and the HTTP status, of which at most one is set.
pub(crate) fn exit_codes(outcome: &Outcome) -> (Option<i32>, Option<i32>, Option<u16>) {
    match outcome.ending() {
        Some(CallEnding::ExitCode(code)) => (Some(code), None, None),
        Some(CallEnding::Signal(signal)) => (None, Some(signal), None),
        Some(CallEnding::HttpStatus(status)) => (None, None, Some(status)),
        Some(CallEnding::LimitExceeded(_) | CallEnding::Answered | CallEnding::Unfinished)
        | None => (None, None, None),
    }
}
