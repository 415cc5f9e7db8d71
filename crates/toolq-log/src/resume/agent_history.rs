//! What a history knows about agents: their turns, the responses of their models, and the state of their calls.

use std::sync::Arc;

use uuid::Uuid;

use crate::read::{Corruption, LineExtent};
use crate::records::{ModelResponseRecord, Record, TurnRecord};
use crate::resume::history::{CallPosition, TaskHistory};
use crate::resume::logged_call::LoggedCall;
use redact::Mask;
use toolq_core::types::{
    AgentHistory, CallRef, CheckedCall, EmitError, LoggedResponse, ReportedUsage, ResumeState,
};

/// The response of a model.
#[derive(Debug)]
pub(crate) struct ResponseIndexEntry {
    extent: LineExtent,
    model: Option<Box<str>>,
    usage: ReportedUsage,
    /// Whether the record lacks parts of the response because secrets were masked.
    is_masked: bool,
}

/// A history in the form in which agents query it.
#[derive(Debug)]
pub struct LogAgentHistory {
    history: Arc<TaskHistory>,
    mask: Arc<Mask>,
}

impl TaskHistory {
    pub(crate) fn apply_turn(&mut self, record: &Record) -> Result<(), Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        let parent = record.parent.filter(|_| turn.agent.is_some());
        self.turns.insert((parent, turn.turn), record.id);
        if let Some(agent) = parent {
            self.agent_by_turn.insert(record.id, agent);
        }
        Ok(())
    }

    /// Prepares for another session that resumes the task. It repeats the requests whose responses didn't complete. The
    /// new responses may request other calls, so those of the incomplete responses are dropped.
    pub(crate) fn drop_unanswered_turns(&mut self) {
        let responses = &self.responses;
        let is_answered = |parent: Option<Uuid>, turn: usize| {
            parent.is_none_or(|agent| responses.contains_key(&(agent, turn)))
        };
        self.turns
            .retain(|(parent, turn), _| is_answered(*parent, *turn));
        let position_is_answered =
            |position: &CallPosition| is_answered(position.parent, position.turn);
        self.index_by_position
            .retain(|position, _| position_is_answered(position));
    }

    pub(crate) fn apply_response(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        let response: ModelResponseRecord<'_> = record.parse_metadata()?;
        let entry = ResponseIndexEntry {
            extent: LineExtent::from_record(record, end),
            model: response.model.as_deref().map(Into::into),
            usage: response.usage,
            is_masked: response.masked,
        };
        if let Some(agent) = record.parent {
            self.responses.insert((agent, response.turn), entry);
        }
        Ok(())
    }

    /// Returns whether a later run can rely on the calls of a turn. It can't if the turn's model response didn't
    /// complete: when the request is repeated, the response may be different.
    pub(crate) fn is_turn_complete(&self, parent: Option<Uuid>, turn: usize) -> bool {
        parent.is_none_or(|agent| self.responses.contains_key(&(agent, turn)))
    }

    /// Returns the `tool_call` record of a call, which may be nested in calls of agents.
    pub(crate) fn find_call_record(&self, call: &CallRef) -> Option<Uuid> {
        let parent = match &call.parent {
            Some(agent) => Some(self.find_call_record(agent)?),
            None => None,
        };
        let (turn, position) = (call.turn, call.position);
        let logged_call = self.call_at(CallPosition {
            parent,
            turn,
            position,
        })?;
        Some(logged_call.record_id)
    }

    /// Returns the descendants of an agent's call, except those that agents work on: these are in doubt only because of
    /// their own descendants.
    pub(crate) fn descendants(&self, agent: Uuid) -> impl Iterator<Item = &LoggedCall> {
        let calls = self.calls.iter().filter(|call| !call.log.is_agent_call());
        calls.filter(move |call| {
            self.ancestors(call.parent)
                .any(|ancestor| ancestor == agent)
        })
    }

    /// Iterates over a call and its ancestors.
    fn ancestors(&self, call: Option<Uuid>) -> impl Iterator<Item = Uuid> {
        std::iter::successors(call, |call| self.call_by_record(*call)?.parent)
    }
}

impl LogAgentHistory {
    /// Wraps `history`. `mask` is applied to calls before they are compared with the log or shown in a message.
    pub fn new(history: Arc<TaskHistory>, mask: Arc<Mask>) -> Self {
        Self { history, mask }
    }
}

impl AgentHistory for LogAgentHistory {
    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, EmitError> {
        let known = self.history.check_call(&checked.call, &self.mask);
        if !known.map_err(|conflict| EmitError(conflict.to_string()))? {
            return Ok(ResumeState::NotStarted);
        }
        let past = self.history.resume_state(checked);
        past.map_err(|error| EmitError(error.to_string()))
    }

    fn logged_response(
        &self,
        call: &CallRef,
        turn: usize,
    ) -> Result<Option<LoggedResponse>, EmitError> {
        let agent = self.history.find_call_record(call);
        let Some(response) = agent.and_then(|agent| self.history.responses.get(&(agent, turn)))
        else {
            return Ok(None);
        };
        if response.is_masked {
            let why = "the agent can't resume, because its model's response contained a secret and the session log stores no secrets";
            return Err(EmitError(why.to_owned()));
        }
        let body = self.history.read_content(response.extent);
        Ok(Some(LoggedResponse {
            body: body.map_err(|error| EmitError(error.to_string()))?,
            model: response.model.as_deref().map(str::to_owned),
        }))
    }

    fn logged_usage(&self, call: &CallRef) -> Vec<(String, ReportedUsage)> {
        let Some(call) = self.history.find_call_record(call) else {
            return Vec::new();
        };
        let is_of_call = |agent| {
            self.history
                .ancestors(Some(agent))
                .any(|ancestor| ancestor == call)
        };
        let responses = self.history.responses.iter();
        responses
            .filter(|((agent, _), _)| is_of_call(*agent))
            .map(|(_, response)| {
                (
                    response.model.as_deref().unwrap_or_default().to_owned(),
                    response.usage,
                )
            })
            .collect()
    }
}
