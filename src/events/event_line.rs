//! The JSON of an event.

use serde::Serialize;
use serde_json::value::RawValue;

use toolq_core::types::{MaskedText, Status};

/// The `state` of a call in an event.
#[derive(Default, Serialize)]
pub(crate) struct EventCallState {
    #[serde(rename = "state")]
    pub(crate) phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
}

/// The members of all events, in output order.
#[derive(Default, Serialize)]
pub(crate) struct EventLine<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) timestamp: u64,
    pub(crate) turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_name: Option<MaskedText<'a>>,
    /// The agent call that this call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_tool_use_id: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_name: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<Vec<BatchCallLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Status>,
    /// The result is from an earlier run, restored from the session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recalled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'a EventCallState>,
}

/// A call of a batch.
#[derive(Serialize)]
pub(crate) struct BatchCallLine<'a> {
    pub(crate) position: usize,
    pub(crate) tool_use_id: MaskedText<'a>,
    pub(crate) tool_name: MaskedText<'a>,
}

impl EventLine<'_> {
    /// Creates an event that has only a type.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}
