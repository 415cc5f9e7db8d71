use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::records::fields::agent::AgentFields;
use crate::records::fields::ms;
use crate::records::kind::Kind;
use crate::records::truncated_text::Brief;
use redact::Mask;
use toolq_core::types::{AgentFault, AgentUse, CallRef, Ending, Outcome};

/// Metadata of a `tool_start`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StartFields<'a> {
    pub(crate) tool_use_id: Brief<'a>,
    pub(crate) tool_name: Brief<'a>,
    pub(crate) attempt: u32,
    pub(crate) idempotency_key: &'a str,
    pub(crate) effect: &'static str,
    /// How the attempt before it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<AttemptFields>,
    /// The agent that starts to work on it. It may start again: what it called has records of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'a str>,
}

/// An attempt that failed and was followed by another.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AttemptFields {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    wait_ms: u64,
}

impl AttemptFields {
    pub(crate) fn of(outcome: &Outcome, wait: Duration) -> Self {
        let (exit, signal, http_status) = ending(outcome);
        Self {
            status: outcome.status(),
            exit,
            signal,
            http_status,
            wait_ms: ms(wait),
        }
    }
}

/// Which record tells how a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// It has its result.
    Result,
    /// It was answered without having been started.
    Skipped,
    /// It may have had its effect.
    InDoubt,
}

impl ResultKind {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        if outcome.is_skipped() {
            Self::Skipped
        } else if outcome.is_in_doubt() {
            Self::InDoubt
        } else {
            Self::Result
        }
    }

    /// The type of the record.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Result => Kind::ToolResult,
            Self::Skipped => Kind::ToolSkipped,
            Self::InDoubt => Kind::ToolInDoubt,
        }
    }
}

/// Metadata of a `tool_result`, `tool_skipped` or `tool_in_doubt`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResultFields<'a> {
    tool_use_id: Brief<'a>,
    tool_name: Brief<'a>,
    is_error: bool,
    /// How it ended, in one word.
    status: &'static str,
    duration_ms: u64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    /// Bytes of output that came, where any could.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Bytes that the content leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_bytes: Option<u64>,
    /// The file that has all bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
    /// Some bytes were no UTF-8 and stand as U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    lossy: Option<bool>,
    /// The limit of the tool that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    /// Processes that it had left running and that were ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    leftovers: Option<u32>,
    /// What an agent used.
    #[serde(flatten)]
    agent: Option<AgentFields<'a>>,
    /// The agent whose own budget is used up: not that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_of: Option<&'a str>,
}

impl<'a> ResultFields<'a> {
    pub(crate) fn of(
        call: &'a CallRef,
        outcome: &'a Outcome,
        is_error: bool,
        (duration, attempts): (Duration, u32),
        mask: &'a Mask,
    ) -> Self {
        let (exit, signal, http_status) = ending(outcome);
        let captured = outcome.captured();
        let saved = captured.and_then(|captured| captured.saved.as_deref());
        Self {
            tool_use_id: Brief(&call.tool_use_id, mask),
            tool_name: Brief(&call.tool_name, mask),
            is_error,
            status: outcome.status(),
            duration_ms: ms(duration),
            attempts,
            exit,
            signal,
            http_status,
            bytes: captured.map(|captured| captured.bytes),
            cut_bytes: captured.map(|captured| captured.cut).filter(|cut| *cut > 0),
            saved: saved.map(|path| mask.text(&path.to_string_lossy()).into_owned()),
            lossy: captured
                .map(|captured| captured.lossy)
                .filter(|lossy| *lossy),
            limit: match outcome.ending() {
                Some(Ending::Limit(limit)) => Some(limit.name()),
                _ => None,
            },
            leftovers: captured
                .map(|captured| captured.leftovers)
                .filter(|leftovers| *leftovers > 0),
            agent: None,
            budget_of: match outcome {
                Outcome::AgentFailed {
                    fault: AgentFault::OverBudget { agent, .. },
                    ..
                } => Some(agent),
                _ => None,
            },
        }
    }

    /// The same with what an agent used.
    pub(crate) fn with_agent(self, agent: Option<&'a AgentUse>) -> Self {
        Self {
            agent: agent.map(AgentFields::of),
            ..self
        }
    }
}

/// Exit code, signal and HTTP status: one of them, or none.
pub(crate) fn ending(outcome: &Outcome) -> (Option<i32>, Option<i32>, Option<u16>) {
    match outcome.ending() {
        Some(Ending::Exit(code)) => (Some(code), None, None),
        Some(Ending::Signal(signal)) => (None, Some(signal), None),
        Some(Ending::Http(status)) => (None, None, Some(status)),
        Some(Ending::Limit(_) | Ending::Answered | Ending::Unfinished) | None => (None, None, None),
    }
}
