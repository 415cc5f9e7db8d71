//! What is kept of an agent's story for its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::session::Observers;
use redact::Mask;
use toolq_core::types::{AgentUse, Event, Memory, Refused, Sink, Tokens};

/// Everybody who is told, and what is kept of the agent's story for its end.
pub(crate) struct Story {
    pub(crate) observers: Observers,
    mask: Arc<Mask>,
    memory: Option<Arc<dyn Memory>>,
    pub(crate) conversation: Vec<Box<RawValue>>,
    /// How the call ended, in one word.
    pub(crate) status: &'static str,
    pub(crate) duration_ms: u64,
    pub(crate) used: AgentUse,
    /// The same with what the agents used that it called.
    pub(crate) total: BTreeMap<String, Tokens>,
}

impl Story {
    pub(crate) fn new(
        observers: Observers,
        mask: Arc<Mask>,
        memory: Option<Arc<dyn Memory>>,
    ) -> Self {
        Self {
            observers,
            mask,
            memory,
            conversation: Vec::new(),
            status: "",
            duration_ms: 0,
            used: AgentUse::default(),
            total: BTreeMap::new(),
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentMessage { call, message, .. } if call.within.is_none() => {
                // What is sent may hold what nobody else may see.
                let masked = self.mask.json(message.get()).into_owned();
                self.conversation.extend(RawValue::from_string(masked));
            }
            Event::Finished {
                call,
                outcome,
                duration,
                agent: Some(agent),
                ..
            } => {
                // Of what is told from the log, what the agents used that it called is not told apart.
                let memory = self.memory.as_ref().filter(|_| outcome.is_recalled());
                let taken: Vec<_> = memory.map_or_else(
                    || agent.usage.clone().into_iter().collect(),
                    |memory| {
                        let lost = agent.lost.clone();
                        memory.taken(call).into_iter().chain(lost).collect()
                    },
                );
                for (model, usage) in taken {
                    *self.total.entry(model).or_default() += usage;
                }
                if call.within.is_none() {
                    self.used = (*agent).clone();
                    self.status = outcome.status();
                    self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                }
            }
            _ => {}
        }
    }
}

impl Sink for Story {
    fn tell(&mut self, events: &[Event<'_>]) -> Result<(), Refused> {
        for event in events {
            self.hear(event);
        }
        self.observers.tell(events)
    }

    fn settle(&mut self) -> Result<(), Refused> {
        self.observers.settle()
    }
}
