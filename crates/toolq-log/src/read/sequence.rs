//! Checks which records may follow which: the promises of a log, verified from its records alone. Memory use is
//! proportional to the number of calls.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::call_event::CallEvent;
use crate::call_log::CallLog;
use crate::read::corruption::{Corruption, CorruptionKind};
use crate::records::{CallRecord, ModelResponseRecord, Record, RecordKind, TurnRecord};
use toolq_core::types::Effect;

/// Checks records in their order, against the state that the previous ones led to.
#[derive(Debug, Default)]
pub struct SequenceChecker {
    /// The session that hasn't ended yet.
    open_session: Option<Uuid>,
    /// All turns by the id of their record.
    turns: HashMap<Uuid, LoggedTurn>,
    /// All calls by the id of their `tool_call`.
    calls: HashMap<Uuid, CallLog>,
    /// The `describe_start` records of the open session that have no end yet.
    open_describes: HashSet<Uuid>,
    /// The `list_start` records of the open session that have no end yet.
    open_lists: HashSet<Uuid>,
    /// The `server_start` records of the open session that have no end yet.
    open_servers: HashSet<Uuid>,
    /// The calls that agents requested, with the turn in which they did.
    agent_calls: HashMap<Uuid, AgentTurn>,
    /// The turns in which a model has responded.
    answered_turns: HashSet<AgentTurn>,
}

#[derive(Debug, Clone, Copy)]
enum LoggedTurn {
    /// The number of a turn of the input.
    Input(usize),
    Agent(AgentTurn),
}

/// The call that an agent works on, and a turn of the agent.
type AgentTurn = (Uuid, usize);

impl SequenceChecker {
    /// Checks the next record.
    ///
    /// # Errors
    /// The record can't follow the previous ones: its writer broke a promise, or wasn't toolq.
    pub fn check_record(&mut self, record: &Record) -> Result<(), Corruption> {
        self.check_sequence(record)?.map_err(|why| Corruption {
            line: record.line,
            offset: record.offset,
            kind: CorruptionKind::SequenceViolation(why),
        })
    }

    fn check_sequence(&mut self, record: &Record) -> Result<Result<(), &'static str>, Corruption> {
        let require = |found: bool, why| if found { Ok(()) } else { Err(why) };
        Ok(match &record.kind {
            RecordKind::Session => {
                self.open_session = Some(record.id);
                self.open_describes.clear();
                self.open_lists.clear();
                self.open_servers.clear();
                self.calls.values_mut().for_each(CallLog::forget_approval);
                Ok(())
            }
            RecordKind::Recovered => Ok(()),
            RecordKind::Resolve => self.check_call_record(record)?,
            _ if self.open_session.is_none() => Err("it follows the end of its session"),
            RecordKind::SessionEnd => {
                let ends_open_session = record.parent == self.open_session.take();
                require(ends_open_session, "it ends a session that isn't open").and(require(
                    self.open_describes.is_empty(),
                    "a describe_start has no describe_end",
                ))
            }
            RecordKind::DescribeStart => {
                self.open_describes.insert(record.id);
                let is_in_session = record.parent == self.open_session;
                require(is_in_session, "it doesn't belong to the open session")
            }
            RecordKind::DescribeEnd => {
                let start = record.parent;
                let was_open = start.is_some_and(|start| self.open_describes.remove(&start));
                require(was_open, "it has no open describe_start")
            }
            RecordKind::ToolsChange => {
                let is_in_session = record.parent == self.open_session;
                require(is_in_session, "it doesn't belong to the open session")
            }
            RecordKind::ListStart => {
                self.open_lists.insert(record.id);
                let is_in_session = record.parent == self.open_session;
                require(is_in_session, "it doesn't belong to the open session")
            }
            RecordKind::ListEnd => {
                let start = record.parent;
                let was_open = start.is_some_and(|start| self.open_lists.remove(&start));
                require(was_open, "it has no open list_start")
            }
            RecordKind::ServerStart => {
                self.open_servers.insert(record.id);
                let is_in_session = record.parent == self.open_session;
                require(is_in_session, "it doesn't belong to the open session")
            }
            // A server may outlive the end of its session for a moment, so an end isn't required.
            RecordKind::ServerEnd => {
                let start = record.parent;
                let was_open = start.is_some_and(|start| self.open_servers.remove(&start));
                require(was_open, "it has no open server_start")
            }
            RecordKind::Turn => {
                let turn: TurnRecord = record.parse_metadata()?;
                let agent = record.parent.filter(|_| turn.agent.is_some());
                let turn = match agent {
                    Some(agent) => LoggedTurn::Agent((agent, turn.turn)),
                    None => LoggedTurn::Input(turn.turn),
                };
                self.turns.insert(record.id, turn);
                require(
                    record.parent == self.open_session || self.parent_call(record).is_some(),
                    "it belongs neither to the open session nor to an agent's call",
                )
            }
            RecordKind::ToolCall => self.check_call(record)?,
            RecordKind::ModelResponse => self.check_model_response(record)?,
            _ => self.check_call_record(record)?,
        })
    }

    /// Checks that a call has its turn. A resumed run finds a call by the number of its turn.
    fn check_call(&mut self, record: &Record) -> Result<Result<(), &'static str>, Corruption> {
        let turn = record
            .parent
            .and_then(|turn| self.turns.get(&turn).copied());
        let found = turn.is_some() || self.parent_call(record).is_some();
        self.calls.insert(record.id, CallLog::default());
        match turn {
            Some(LoggedTurn::Input(turn))
                if record.parse_metadata::<CallRecord<'_>>()?.turn != turn =>
            {
                return Ok(Err("its turn has another number"));
            }
            Some(LoggedTurn::Agent(turn)) => drop(self.agent_calls.insert(record.id, turn)),
            _ => {}
        }
        Ok(if found {
            Ok(())
        } else {
            Err("its turn isn't in the log")
        })
    }

    /// Checks that a model responds only once in each turn of its agent: a resumed agent doesn't repeat its requests.
    fn check_model_response(
        &mut self,
        record: &Record,
    ) -> Result<Result<(), &'static str>, Corruption> {
        let Some(agent) = self.parent_call(record) else {
            return Ok(Err("its call isn't in the log"));
        };
        let turn = record.parse_metadata::<ModelResponseRecord<'_>>()?.turn;
        let is_first = self.answered_turns.insert((agent, turn));
        Ok(if is_first {
            Ok(())
        } else {
            Err("its turn already has a model response")
        })
    }

    /// Returns the parent of the record if it is a call.
    fn parent_call(&self, record: &Record) -> Option<Uuid> {
        record.parent.filter(|call| self.calls.contains_key(call))
    }

    /// Returns whether a `write` call of an agent starts before the model response that requested it is in the log.
    fn starts_without_response(&self, call: Uuid, event: &CallEvent<'_>) -> bool {
        let CallEvent::Started(start) = event else {
            return false;
        };
        let turn = self.agent_calls.get(&call);
        start.effect == Effect::Write
            && turn.is_some_and(|turn| !self.answered_turns.contains(turn))
    }

    /// Checks a record that belongs to a call.
    fn check_call_record(
        &mut self,
        record: &Record,
    ) -> Result<Result<(), &'static str>, Corruption> {
        let Some(call) = self.parent_call(record) else {
            return Ok(match record.kind {
                RecordKind::Other(_) => Ok(()),
                _ => Err("its call isn't in the log"),
            });
        };
        let Some(event) = CallEvent::from_record(record)? else {
            return Ok(Ok(()));
        };
        if self.starts_without_response(call, &event) {
            return Ok(Err(
                "a `write` call starts before its model response is in the log",
            ));
        }
        Ok(self.calls.entry(call).or_default().apply(&event))
    }
}
