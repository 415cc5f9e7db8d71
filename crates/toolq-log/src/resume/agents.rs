//! What a history knows of agents: their turns, what their models answered, and where their calls stand.

use std::sync::Arc;

use uuid::Uuid;

use crate::read::Damage;
use crate::records;
use crate::records::Record;
use crate::records::metadata;
use crate::resume::history::{History, Place};
use crate::resume::logged_call::{Entry, Extent};
use redact::Mask;
use toolq_core::types::{CallRef, Checked, Memory, Past, Refused, Tokens, Told};

/// An answer of a model.
#[derive(Debug)]
pub(crate) struct Heard {
    at: Extent,
    model: Option<Box<str>>,
    usage: Tokens,
    /// The record has not all of it.
    masked: bool,
}

/// A history as agents ask it.
#[derive(Debug)]
pub struct Recollection {
    history: Arc<History>,
    mask: Arc<Mask>,
}

impl History {
    pub(crate) fn begin_turn(&mut self, record: &Record) -> Result<(), Damage> {
        let turn: records::TurnFields = record.metadata()?;
        let within = record.parent.filter(|_| turn.agent.is_some());
        self.turns.insert((within, turn.turn), record.id);
        if let Some(agent) = within {
            self.agents.insert(record.id, agent);
        }
        Ok(())
    }

    /// Another session goes on with the task. It asks again for answers that were not heard to their end: what stood in
    /// their places is not what they will ask for.
    pub(crate) fn forget_unheard(&mut self) {
        let heard = &self.heard;
        let holds = |within: Option<Uuid>, turn: usize| {
            within.is_none_or(|agent| heard.contains_key(&(agent, turn)))
        };
        self.turns.retain(|(within, turn), _| holds(*within, *turn));
        let place_holds = |place: &Place| holds(place.within, place.turn);
        self.places.retain(|place, _| place_holds(place));
    }

    pub(crate) fn hear(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        let response: metadata::ModelResponse = record.metadata()?;
        let heard = Heard {
            at: Extent::of(record, end),
            model: response.model.map(Into::into),
            usage: response.usage,
            masked: response.masked,
        };
        let agent = record.parent.unwrap_or_default();
        self.heard.insert((agent, response.turn), heard);
        Ok(())
    }

    /// Whether what is known of a turn holds for a later run. A turn of an agent whose model was not heard to the end
    /// does not: asked again, it may say something else.
    pub(crate) fn is_settled(&self, within: Option<Uuid>, turn: usize) -> bool {
        within.is_none_or(|agent| self.heard.contains_key(&(agent, turn)))
    }

    /// The record of a call, wherever it stands.
    pub(crate) fn find(&self, call: &CallRef) -> Option<Uuid> {
        let within = match &call.within {
            Some(agent) => Some(self.find(agent)?),
            None => None,
        };
        let (turn, position) = (call.turn, call.position);
        let entry = self.entry(Place {
            within,
            turn,
            position,
        })?;
        Some(entry.record)
    }

    /// The calls that the agent of this one asked for, and those further below, without those of agents: these are in
    /// doubt only for the sake of others.
    pub(crate) fn below(&self, agent: Uuid) -> impl Iterator<Item = &Entry> {
        let entries = self.calls.iter().filter(|entry| !entry.is_agents);
        entries.filter(move |entry| self.above(entry.within).any(|above| above == agent))
    }

    /// A call and those that it stands within.
    fn above(&self, call: Option<Uuid>) -> impl Iterator<Item = Uuid> {
        std::iter::successors(call, |call| self.call_of(*call)?.within)
    }
}

impl Recollection {
    /// What `history` has; `mask` hides secrets in what is told of it.
    pub fn new(history: Arc<History>, mask: Arc<Mask>) -> Self {
        Self { history, mask }
    }
}

impl Memory for Recollection {
    fn past(&self, checked: &Checked) -> Result<Past, Refused> {
        let known = self.history.check(&checked.call, &self.mask);
        if !known.map_err(|conflict| Refused(conflict.to_string()))? {
            return Ok(Past::None);
        }
        let past = self.history.past(checked);
        past.map_err(|error| Refused(error.to_string()))
    }

    fn told(&self, call: &CallRef, turn: usize) -> Result<Option<Told>, Refused> {
        let agent = self.history.find(call);
        let Some(heard) = agent.and_then(|agent| self.history.heard.get(&(agent, turn))) else {
            return Ok(None);
        };
        if heard.masked {
            let why = "a secret stood in what the agent's model said, and the session log has no secrets: the agent can't go on from there";
            return Err(Refused(why.to_owned()));
        }
        let body = self.history.body(heard.at);
        Ok(Some(Told {
            body: body.map_err(|error| Refused(error.to_string()))?,
            model: heard.model.as_deref().map(str::to_owned),
        }))
    }

    fn taken(&self, call: &CallRef) -> Vec<(String, Tokens)> {
        let Some(call) = self.history.find(call) else {
            return Vec::new();
        };
        let of_call = |agent| self.history.above(Some(agent)).any(|above| above == call);
        let heard = self.history.heard.iter();
        heard
            .filter(|((agent, _), _)| of_call(*agent))
            .map(|(_, heard)| {
                (
                    heard.model.as_deref().unwrap_or_default().to_owned(),
                    heard.usage,
                )
            })
            .collect()
    }
}
