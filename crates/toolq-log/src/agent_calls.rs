//! Which calls agents made, directly or through other agents. An agent has an effect as soon as one of them has.

use std::collections::HashMap;
use std::iter;

use uuid::Uuid;

/// How deeply agents can be nested. A log that somebody has changed may say that an agent works for itself.
const MAX_DEPTH: usize = 16;

/// The calls that agents work on.
#[derive(Debug, Default)]
pub(crate) struct AgentCalls {
    /// By the record of each turn of the agent, and by that of each call that it made.
    by_record: HashMap<Uuid, Uuid>,
}

impl AgentCalls {
    /// Adds a turn of the agent that works on `call`.
    pub(crate) fn add_turn(&mut self, turn: Uuid, call: Uuid) {
        self.by_record.insert(turn, call);
    }

    /// Adds a call if an agent made it in `turn`. Returns whether one did.
    pub(crate) fn add_call(&mut self, call: Uuid, turn: Option<Uuid>) -> bool {
        let agent = turn.and_then(|turn| self.by_record.get(&turn)).copied();
        if let Some(agent) = agent {
            self.by_record.insert(call, agent);
        }
        agent.is_some()
    }

    /// Returns whether an agent made this call.
    pub(crate) fn is_of_agent(&self, call: Uuid) -> bool {
        self.by_record.contains_key(&call)
    }

    /// Iterates over the calls whose agents led to `call`, from that of the agent that made it to that of the input.
    pub(crate) fn agents_above(&self, call: Uuid) -> impl Iterator<Item = Uuid> {
        let agent_of = |record: &Uuid| self.by_record.get(record).copied();
        iter::successors(agent_of(&call), agent_of).take(MAX_DEPTH)
    }
}
