//! Tracks the calls in doubt over all runs of a log: calls that may have done their work and have no result. Calls that
//! agents work on don't count, since only the calls that an agent makes have effects.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use uuid::Uuid;

use crate::records::{Record, RecordKind};

/// The calls that are in doubt after the records applied so far.
#[derive(Debug, Default)]
pub struct InDoubtCalls {
    /// By the id of the `tool_call`.
    calls: HashMap<Uuid, InDoubtCall>,
    /// The calls that agents work on.
    agent_calls: HashSet<Uuid>,
}

/// A call in doubt.
#[derive(Debug, Clone)]
pub struct InDoubtCall {
    /// The id of its `tool_call`.
    pub record_id: Uuid,
    /// Its id, as recorded in the log.
    pub tool_use_id: String,
    /// The tool of the call.
    pub tool_name: String,
}

/// The relevant metadata of a record of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CallRecordMetadata {
    tool_use_id: String,
    tool_name: String,
    /// In a `tool_start`.
    effect: Option<String>,
    /// In a `tool_start` of a call that an agent works on.
    agent: Option<String>,
    /// In a `probe_end`.
    finding: Option<String>,
}

impl InDoubtCalls {
    /// Applies the next record. Metadata that doesn't have the expected form is ignored.
    pub fn apply_record(&mut self, record: &Record) {
        let Some(call_id) = record.parent else { return };
        let may_begin_doubt = match record.kind {
            RecordKind::ToolStart | RecordKind::ToolInDoubt => true,
            RecordKind::ToolResult
            | RecordKind::ToolSkipped
            | RecordKind::Resolve
            | RecordKind::ProbeEnd => false,
            _ => return,
        };
        if self.agent_calls.contains(&call_id)
            || !may_begin_doubt && !self.calls.contains_key(&call_id)
        {
            return;
        }
        let metadata: CallRecordMetadata = record.parse_metadata().unwrap_or_default();
        if metadata.agent.is_some() {
            self.agent_calls.insert(call_id);
            return;
        }
        match (may_begin_doubt, &record.kind) {
            (true, RecordKind::ToolStart) if is_repeatable_effect(metadata.effect.as_deref()) => {}
            (true, _) => {
                let (tool_use_id, tool_name) = (metadata.tool_use_id, metadata.tool_name);
                let in_doubt_call = InDoubtCall {
                    record_id: call_id,
                    tool_use_id,
                    tool_name,
                };
                self.calls.insert(call_id, in_doubt_call);
            }
            (_, RecordKind::ProbeEnd) if metadata.finding.as_deref() != Some("not_done") => {}
            _ => {
                self.calls.remove(&call_id);
            }
        }
    }

    /// Returns whether any call is in doubt.
    pub fn has_any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns all calls in doubt, in the order of the log.
    pub fn in_log_order(&self) -> Vec<&InDoubtCall> {
        let mut all: Vec<_> = self.calls.values().collect();
        all.sort_by_key(|call| call.record_id);
        all
    }

    /// Returns the id to pass to `toolq log resolve`: the id of the call if it is a plain word and no other call in
    /// doubt has it, otherwise the id of the call's record.
    pub fn resolve_id(&self, call: &InDoubtCall) -> String {
        let id = &call.tool_use_id;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let same_id = self.calls.values().filter(|other| other.tool_use_id == *id);
        if same_id.count() == 1 && id.chars().all(is_word) && !id.starts_with('-') {
            return id.clone();
        }
        call.record_id.to_string()
    }
}

fn is_repeatable_effect(effect: Option<&str>) -> bool {
    matches!(effect, Some("read" | "idempotent"))
}
