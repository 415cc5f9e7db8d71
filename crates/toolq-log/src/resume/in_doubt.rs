//! What is in doubt, over all runs of a log: calls that may have done their work and have no result, whoever asked. Those
//! of agents are not among them: what an agent may have done, its own calls did.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use uuid::Uuid;

use crate::records::{Kind, Record};

/// The calls in doubt so far, by the id of their `tool_call`.
#[derive(Debug, Default)]
pub struct Doubts {
    calls: HashMap<Uuid, Doubtful>,
    /// The calls of agents.
    agents: HashSet<Uuid>,
}

/// A call in doubt.
#[derive(Debug, Clone)]
pub struct Doubtful {
    /// The id of its `tool_call`.
    pub record: Uuid,
    /// Its id, as the log has it.
    pub tool_use_id: String,
    /// Its tool.
    pub tool_name: String,
}

/// What is looked at of a record of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    tool_use_id: String,
    tool_name: String,
    /// Of a `tool_start`.
    effect: Option<String>,
    /// Of that of an agent's call.
    agent: Option<String>,
    /// Of a `probe_end`.
    finding: Option<String>,
}

impl Doubts {
    /// Takes the next record. What has another form than toolq's says nothing here.
    pub fn take(&mut self, record: &Record) {
        let Some(call) = record.parent else { return };
        let begins = match record.kind {
            Kind::ToolStart | Kind::ToolInDoubt => true,
            Kind::ToolResult | Kind::ToolSkipped | Kind::Resolve | Kind::ProbeEnd => false,
            _ => return,
        };
        if self.agents.contains(&call) || !begins && !self.calls.contains_key(&call) {
            return;
        }
        let told: Told = record.metadata().unwrap_or_default();
        if told.agent.is_some() {
            self.agents.insert(call);
            return;
        }
        match (begins, &record.kind) {
            (true, Kind::ToolStart) if is_repeatable(told.effect.as_deref()) => {}
            (true, _) => {
                let (tool_use_id, tool_name) = (told.tool_use_id, told.tool_name);
                let doubtful = Doubtful {
                    record: call,
                    tool_use_id,
                    tool_name,
                };
                self.calls.insert(call, doubtful);
            }
            (_, Kind::ProbeEnd) if told.finding.as_deref() != Some("not_done") => {}
            _ => {
                self.calls.remove(&call);
            }
        }
    }

    /// Whether there is one.
    pub fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// All of them, as they came.
    pub fn all(&self) -> Vec<&Doubtful> {
        let mut all: Vec<_> = self.calls.values().collect();
        all.sort_by_key(|doubtful| doubtful.record);
        all
    }

    /// What `toolq log resolve` knows a call by: its id, where that is a word, and of no other in doubt.
    pub fn name(&self, call: &Doubtful) -> String {
        let id = &call.tool_use_id;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let twins = self.calls.values().filter(|other| other.tool_use_id == *id);
        if twins.count() == 1 && id.chars().all(is_word) && !id.starts_with('-') {
            return id.clone();
        }
        call.record.to_string()
    }
}

fn is_repeatable(effect: Option<&str>) -> bool {
    matches!(effect, Some("read" | "idempotent"))
}
