//! The JSON of an event.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use redact::Mask;
use toolq_core::schedule::StartWait;
use toolq_core::text::to_millis;
use toolq_core::types::{
    CallAnswer, CallEnding, CallRef, MaskedText, Outcome, ResultContent, ServerEnd,
    ServerIntroduction, ServerStart, Status,
};

/// The `state` of a call in an event.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(crate) struct EventCallState {
    #[serde(rename = "state")]
    pub(crate) phase: &'static str,
    pub(crate) tip: Option<String>,
    pub(crate) progress: Option<f64>,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) result: Option<Box<RawValue>>,
}

/// The members of all events, in output order.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(crate) struct EventLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) timestamp: u64,
    pub(crate) turn: usize,
    pub(crate) tool_use_id: Option<MaskedText<'a>>,
    pub(crate) tool_name: Option<MaskedText<'a>>,
    /// The agent call that this call belongs to.
    pub(super) agent_tool_use_id: Option<MaskedText<'a>>,
    pub(crate) agent_name: Option<MaskedText<'a>>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) position: Option<usize>,
    pub(crate) batch: Option<usize>,
    pub(crate) calls: Option<Vec<BatchCallLine<'a>>>,
    pub(crate) attempt: Option<u32>,
    /// Whether a call was approved: `yes` or `no`.
    pub(crate) decision: Option<&'static str>,
    /// The key that makes a call wait for its turn: `rate` or `max_parallel`.
    pub(crate) limit: Option<&'static str>,
    /// Whose limit that is: the name of the tool, `server NAME` or `host NAME`.
    pub(super) limited_by: Option<String>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) success: Option<bool>,
    pub(crate) status: Option<Status>,
    /// The result is from an earlier run, restored from the session log.
    pub(crate) recalled: Option<bool>,
    pub(crate) error: Option<MaskedText<'a>>,
    pub(crate) state: Option<&'a EventCallState>,
}

/// A call of a batch.
#[derive(Serialize)]
pub(crate) struct BatchCallLine<'a> {
    pub(crate) position: usize,
    pub(crate) tool_use_id: MaskedText<'a>,
    pub(crate) tool_name: MaskedText<'a>,
}

impl<'a> EventLine<'a> {
    /// Creates an event that has only a type.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Creates the event of a batch whose calls may run together.
    pub(crate) fn batch_started(
        turn: usize,
        batch: usize,
        calls: &'a [CallRef],
        mask: &'a Mask,
    ) -> Self {
        let agent = calls.first().and_then(|call| call.parent.as_deref());
        let calls = calls.iter().map(|call| BatchCallLine {
            position: call.position,
            tool_use_id: MaskedText(&call.tool_use_id, mask),
            tool_name: MaskedText(&call.tool_name, mask),
        });
        Self {
            turn,
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, mask)),
            batch: Some(batch),
            calls: Some(calls.collect()),
            ..Self::new("batch_started")
        }
    }

    /// Creates the event of a call that waits for its turn, without the members that all events of a call have.
    pub(crate) fn throttled(wait: &StartWait, mask: &Mask) -> Self {
        Self {
            limit: Some(wait.limit_name()),
            limited_by: Some(mask.apply(&wait.subject.to_string()).into_owned()),
            ..Self::new("tool_throttled")
        }
    }

    /// Creates the event of a call that has ended, without the members that all events of a call have.
    pub(crate) fn finished(
        outcome: &Outcome,
        answer: &'a CallAnswer,
        duration: Duration,
        mask: &'a Mask,
    ) -> Self {
        let line = if outcome.is_completed() {
            Self {
                duration_ms: Some(to_millis(duration)),
                success: Some(!answer.is_error),
                ..Self::new("tool_completed")
            }
        } else {
            Self::new("tool_error")
        };
        let error = match (outcome, &answer.content) {
            // A restored result has only the text that the model read.
            (Outcome::Restored(_), ResultContent::Text(text)) => {
                answer.is_error.then_some(text.as_str())
            }
            (Outcome::Restored(_), _) => None,
            _ => answer.report.error.as_deref(),
        };
        Self {
            status: Some(outcome.status()),
            recalled: outcome.is_restored().then_some(true),
            error: error.map(|error| MaskedText(error, mask)),
            ..line
        }
    }

    /// Adds the members that all events of a call have.
    pub(crate) fn with_call(
        self,
        call: &'a CallRef,
        state: Option<&'a EventCallState>,
        mask: &'a Mask,
    ) -> Self {
        let agent = call.parent.as_deref();
        Self {
            turn: call.turn,
            tool_use_id: Some(MaskedText(&call.tool_use_id, mask)),
            tool_name: Some(MaskedText(&call.tool_name, mask)),
            agent_tool_use_id: agent.map(|agent| MaskedText(&agent.tool_use_id, mask)),
            state,
            ..self
        }
    }
}

// The JSON of an event that belongs to no turn: one of an MCP server.

/// A server is ready, or has ended, in output order.
#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
pub(crate) struct ServerLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: u64,
    server: Cow<'a, str>,
    pid: Option<i32>,
    ready_ms: Option<u64>,
    protocol: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    version: Option<Cow<'a, str>>,
    cause: Option<&'static str>,
    error: Option<Cow<'a, str>>,
    exit: Option<i32>,
    signal: Option<i32>,
    duration_ms: Option<u64>,
    calls: Option<u64>,
}

impl<'a> ServerLine<'a> {
    pub(crate) fn started(start: &'a ServerStart) -> Self {
        let introduction = start.introduction.as_ref();
        let text = |text: fn(&ServerIntroduction) -> Option<&String>| {
            Some(Cow::from(text(introduction?)?))
        };
        Self {
            kind: "server_started",
            server: Cow::from(&start.server),
            pid: start.pid,
            ready_ms: introduction.map(|_| to_millis(start.duration)),
            protocol: text(|introduction| Some(&introduction.protocol)),
            name: text(|introduction| introduction.name.as_ref()),
            version: text(|introduction| introduction.version.as_ref()),
            ..Self::default()
        }
    }

    pub(crate) fn ended(end: &'a ServerEnd) -> Self {
        let (exit, signal) = match end.ending {
            Some(CallEnding::ExitCode(code)) => (Some(code), None),
            Some(CallEnding::Signal(signal)) => (None, Some(signal)),
            _ => (None, None),
        };
        Self {
            kind: "server_ended",
            server: Cow::from(&end.server),
            cause: Some(end.cause.name()),
            error: end.detail.as_ref().map(Cow::from),
            exit,
            signal,
            duration_ms: Some(to_millis(end.duration)),
            calls: Some(end.calls),
            ..Self::default()
        }
    }

    /// Adds the time, and masks everything that comes from a server.
    pub(crate) fn finished(self, timestamp: u64, mask: &Mask) -> Self {
        let masked = |text: Cow<'a, str>| Cow::Owned(mask.apply(&text).into_owned());
        Self {
            timestamp,
            server: masked(self.server),
            protocol: self.protocol.map(masked),
            name: self.name.map(masked),
            version: self.version.map(masked),
            error: self.error.map(masked),
            ..self
        }
    }
}
