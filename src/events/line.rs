use serde::Serialize;
use serde_json::value::RawValue;

use toolq_core::types::MaskedText;

/// `state` of an event.
#[derive(Default, Serialize)]
pub(crate) struct State {
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

/// The members of all events, in their order.
#[derive(Default, Serialize)]
pub(crate) struct Line<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) timestamp: u64,
    pub(crate) turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_use_id: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_name: Option<MaskedText<'a>>,
    /// The agent's call that an agent's own call belongs to.
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
    pub(crate) calls: Option<Vec<CallLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
    /// It is the end of an earlier run, from the session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recalled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<MaskedText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'a State>,
}

/// A call of a batch.
#[derive(Serialize)]
pub(crate) struct CallLine<'a> {
    pub(crate) position: usize,
    pub(crate) tool_use_id: MaskedText<'a>,
    pub(crate) tool_name: MaskedText<'a>,
}

impl Line<'_> {
    /// An event that has only its type.
    pub(crate) fn of(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}
