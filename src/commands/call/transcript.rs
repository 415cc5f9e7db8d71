//! Collects an agent's conversation and usage for the final output.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use redact::Mask;
use toolq_core::types::{AgentUsage, CallRef, Event, ReportedUsage, Status};

/// Collects what the final output needs from the events of a run.
pub(super) struct AgentTranscript {
    mask: Arc<Mask>,
    pub(super) conversation: Vec<Box<RawValue>>,
    /// The status of the agent's call.
    pub(super) status: Status,
    pub(super) duration_ms: u64,
    pub(super) agent_usage: AgentUsage,
    /// Usage by model, including that of agents it called.
    pub(super) total_usage: BTreeMap<String, ReportedUsage>,
}

impl AgentTranscript {
    pub(super) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            conversation: Vec::new(),
            status: Status::NotExecuted,
            duration_ms: 0,
            agent_usage: AgentUsage::default(),
            total_usage: BTreeMap::new(),
        }
    }

    /// Adds a message to the conversation, unless it is one of an agent that the agent called.
    fn record_message(&mut self, call: &CallRef, message: &RawValue) {
        if call.parent.is_none() {
            // Messages to the model may contain secrets.
            let masked = self.mask.apply_to_json(message.get()).into_owned();
            self.conversation.extend(RawValue::from_string(masked));
        }
    }

    pub(super) fn record_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentMessage { call, message, .. } => self.record_message(call, message),
            Event::Finished {
                call,
                outcome,
                duration,
                agent_usage,
                ..
            } => {
                let usage_by_model = agent_usage.iter().flat_map(|agent| &agent.usage);
                for (model, usage) in usage_by_model {
                    *self.total_usage.entry(model.clone()).or_default() += *usage;
                }
                if call.parent.is_none() {
                    self.agent_usage = agent_usage.cloned().unwrap_or_default();
                    for name in &mut self.agent_usage.tools_called {
                        *name = self.mask.apply(name).into_owned();
                    }
                    self.status = outcome.status();
                    self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                }
            }
            _ => {}
        }
    }
}
