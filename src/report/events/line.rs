use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::MaskedText;

/// `state` of an event.
#[derive(Default, Serialize)]
pub(super) struct State {
    #[serde(rename = "state")]
    pub(super) phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Box<RawValue>>,
}

/// The members of all events, in their order.
#[derive(Default, Serialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) timestamp: u64,
    pub(super) turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_id: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<MaskedText<'a>>,
    /// The agent's call that an agent's own call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_tool_use_id: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_name: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<Vec<CallLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    /// It is the end of an earlier run, from the session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recalled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'a State>,
}

/// A call of a batch.
#[derive(Serialize)]
pub(super) struct CallLine<'a> {
    pub(super) position: usize,
    pub(super) tool_use_id: MaskedText<'a>,
    pub(super) tool_name: MaskedText<'a>,
}

impl Line<'_> {
    /// An event that has only its type.
    pub(super) fn of(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}
