//! Checks which records may follow which: the promises of a log, verified from its records alone.
//!
//! A call is recorded before it starts, and starts before it has a result. It gets one result and never starts again
//! after that. A call that may have had its effect starts again only if a user or a probe stated that it had none.
//! Memory use is proportional to the number of calls.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use uuid::Uuid;

use crate::read::corruption::{Corruption, CorruptionKind};
use crate::records::{ModelResponseRecord, Record, RecordKind, StartRecord, TurnFields as Turn};
use toolq_core::types::Status;

/// Checks records in their order, against the state that the previous ones led to.
#[derive(Debug, Default)]
pub struct SequenceChecker {
    /// The session that hasn't ended yet.
    open_session: Option<Uuid>,
    /// All turns by the id of their record. Turns of an agent have the agent's call and turn number.
    turns: HashMap<Uuid, Option<AgentTurn>>,
    /// All calls by the id of their `tool_call`.
    calls: HashMap<Uuid, CallPhase>,
    /// The `describe_start` records of the open session that have no end yet.
    open_describes: HashSet<Uuid>,
    /// The calls that agents requested, with the turn in which they did.
    agent_calls: HashMap<Uuid, AgentTurn>,
    /// The turns in which a model has responded.
    answered_turns: HashSet<AgentTurn>,
}

/// The call that an agent works on, and a turn of the agent.
type AgentTurn = (Uuid, usize);

/// How far a call has come, with the number of its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPhase {
    /// It may start: it never did, or its attempts certainly had no effect.
    Startable(u32),
    /// An attempt has started and has no end.
    Started(u32, RepeatSafety),
    /// It may have had its effect.
    InDoubt(u32),
    /// It has its result.
    Ended,
}

/// Whether another attempt may follow one that has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatSafety {
    /// The call may run twice.
    Repeatable,
    /// An agent works on the call. It may resume, even after one of its own calls was in doubt.
    Agent,
    /// The call must not run twice.
    Unsafe,
}

/// How a call ended.
#[derive(Deserialize)]
struct EndStatus {
    status: Status,
    #[serde(default)]
    budget_of: Option<serde::de::IgnoredAny>,
}

impl EndStatus {
    fn is_interrupted(&self) -> bool {
        self.status.is_interrupted() && self.budget_of.is_none()
    }
}

/// Whether a call in doubt had its effect.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DoubtFinding {
    /// In a `resolve`.
    done: Option<bool>,
    /// In a `probe_end`.
    finding: Option<String>,
}

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
                let was_open = self
                    .open_describes
                    .remove(&record.parent.unwrap_or_default());
                require(was_open, "it has no open describe_start")
            }
            RecordKind::Turn => {
                let turn: Turn = record.parse_metadata()?;
                let agent = record.parent.filter(|_| turn.agent.is_some());
                let turn = agent.map(|agent| (agent, turn.turn));
                self.turns.insert(record.id, turn);
                require(
                    record.parent == self.open_session || self.has_parent_call(record),
                    "it belongs neither to the open session nor to an agent's call",
                )
            }
            RecordKind::ToolCall => {
                let parent = record.parent.unwrap_or_default();
                let turn = self.turns.get(&parent).copied();
                let found = turn.is_some() || self.calls.contains_key(&parent);
                self.calls.insert(record.id, CallPhase::Startable(0));
                if let Some(turn) = turn.flatten() {
                    self.agent_calls.insert(record.id, turn);
                }
                require(found, "its turn isn't in the log")
            }
            RecordKind::ModelResponse => self.check_model_response(record)?,
            _ => self.check_call_record(record)?,
        })
    }

    /// Checks that a model responds only once in each turn of its agent: a resumed agent doesn't repeat its requests.
    fn check_model_response(
        &mut self,
        record: &Record,
    ) -> Result<Result<(), &'static str>, Corruption> {
        let agent = record.parent.unwrap_or_default();
        if !self.calls.contains_key(&agent) {
            return Ok(Err("its call isn't in the log"));
        }
        let turn = record.parse_metadata::<ModelResponseRecord>()?.turn;
        let is_first = self.answered_turns.insert((agent, turn));
        Ok(if is_first {
            Ok(())
        } else {
            Err("its turn already has a model response")
        })
    }

    /// Returns whether the record starts a `write` call of an agent before the model response that requested it is in
    /// the log.
    fn writes_without_response(&self, record: &Record) -> Result<bool, Corruption> {
        let turn = self.agent_calls.get(&record.parent.unwrap_or_default());
        let lacks_response = turn.is_some_and(|turn| !self.answered_turns.contains(turn));
        Ok(lacks_response && record.parse_metadata::<StartRecord>()?.effect == "write")
    }

    /// Returns whether the parent of the record is a call.
    fn has_parent_call(&self, record: &Record) -> bool {
        let parent = record.parent.unwrap_or_default();
        self.calls.contains_key(&parent)
    }

    /// Checks a record that belongs to a call.
    fn check_call_record(
        &mut self,
        record: &Record,
    ) -> Result<Result<(), &'static str>, Corruption> {
        if record.kind == RecordKind::ToolStart && self.writes_without_response(record)? {
            return Ok(Err(
                "a `write` call starts before its model response is in the log",
            ));
        }
        let parent = record.parent.unwrap_or_default();
        let Some(phase) = self.calls.get_mut(&parent) else {
            return Ok(match record.kind {
                RecordKind::Other(_) => Ok(()),
                _ => Err("its call isn't in the log"),
            });
        };
        let next = match &record.kind {
            RecordKind::ToolStart => phase.after_start(&record.parse_metadata()?, record),
            RecordKind::ToolResult => phase.after_result(&record.parse_metadata()?),
            RecordKind::ToolSkipped => phase.after_skip(record),
            RecordKind::ToolInDoubt => phase.after_in_doubt(),
            _ => phase.after_finding(
                record.kind == RecordKind::Resolve,
                &record.parse_metadata()?,
            ),
        };
        Ok(next.map(|next| *phase = next))
    }
}

impl CallPhase {
    fn after_start(self, start: &StartRecord<'_>, record: &Record) -> Result<Self, &'static str> {
        let attempts = match self {
            Self::Startable(attempts)
            | Self::Started(attempts, RepeatSafety::Repeatable | RepeatSafety::Agent) => attempts,
            // An agent resumes once the call in doubt that it requested is settled.
            Self::InDoubt(attempts) if start.agent.is_some() => attempts,
            // The engine retries after an attempt that certainly had no effect, and records how it failed.
            Self::Started(attempts, RepeatSafety::Unsafe) if follows_failed_attempt(record) => {
                attempts
            }
            Self::Started(..) | Self::InDoubt(_) => {
                return Err("a call that may have had its effect starts again");
            }
            Self::Ended => return Err("a call that has its result starts again"),
        };
        if start.attempt != attempts + 1 {
            return Err("it isn't the next attempt of its call");
        }
        let repeat_safety = match &*start.effect {
            _ if start.agent.is_some() => RepeatSafety::Agent,
            "read" | "idempotent" => RepeatSafety::Repeatable,
            _ => RepeatSafety::Unsafe,
        };
        Ok(Self::Started(start.attempt, repeat_safety))
    }

    /// A rejected call has a result without a start. It may still run with other tools, even if it was started before
    /// the rejection. A repeatable call that was ended with its run has no result of its own.
    fn after_result(self, end: &EndStatus) -> Result<Self, &'static str> {
        match self {
            Self::Startable(0) => Ok(self),
            Self::Startable(_)
            | Self::Started(_, RepeatSafety::Repeatable | RepeatSafety::Agent)
                if end.status.is_rejected() =>
            {
                Ok(self)
            }
            Self::Started(attempts, RepeatSafety::Repeatable) if end.is_interrupted() => {
                Ok(Self::Startable(attempts))
            }
            Self::Started(_, RepeatSafety::Agent) if end.is_interrupted() => Ok(self),
            Self::Ended => Err("its call already has a result"),
            _ => Ok(Self::Ended),
        }
    }

    fn after_skip(self, record: &Record) -> Result<Self, &'static str> {
        match self {
            // The engine canceled its request before any of it was sent.
            Self::Started(attempts, RepeatSafety::Unsafe) if was_cancelled_after_start(record) => {
                Ok(Self::Startable(attempts))
            }
            // A resumed run may end before it gets to a call that it would repeat.
            Self::Startable(_)
            | Self::Started(_, RepeatSafety::Repeatable | RepeatSafety::Agent) => Ok(self),
            Self::Started(..) | Self::InDoubt(_) => Err("a call that had started is skipped"),
            Self::Ended => Err("its call already has a result"),
        }
    }

    fn after_in_doubt(self) -> Result<Self, &'static str> {
        match self {
            Self::Started(attempts, _) | Self::InDoubt(attempts) => Ok(Self::InDoubt(attempts)),
            Self::Startable(_) => Err("a call that never started is in doubt"),
            Self::Ended => Err("its call already has a result"),
        }
    }

    /// A `resolve` states what happened to a call; a probe may also end without a finding.
    fn after_finding(self, is_resolve: bool, finding: &DoubtFinding) -> Result<Self, &'static str> {
        let done = finding.done.or(match finding.finding.as_deref() {
            Some("not_done") => Some(false),
            _ => None,
        });
        match (self, done) {
            (Self::Started(..) | Self::InDoubt(_), Some(true)) => Ok(Self::Ended),
            (Self::Started(attempts, _) | Self::InDoubt(attempts), Some(false)) => {
                Ok(Self::Startable(attempts))
            }
            // A user who resolved it as not done may find out that it was done after all.
            (Self::Startable(1..), Some(true)) if is_resolve => Ok(Self::Ended),
            (Self::Startable(1..), Some(false)) if is_resolve => Ok(self),
            (_, _) if is_resolve => Err("it resolves a call that isn't in doubt"),
            (phase, _) => Ok(phase),
        }
    }
}

/// Returns whether a skipped call was canceled after its start. Only then does it have attempts.
fn was_cancelled_after_start(record: &Record) -> bool {
    #[derive(Deserialize)]
    struct SkipAttempts {
        #[serde(default)]
        attempts: u32,
    }
    let metadata = record.parse_metadata::<SkipAttempts>();
    metadata.is_ok_and(|metadata| metadata.attempts > 0)
}

/// Returns whether a start records how the previous attempt failed.
fn follows_failed_attempt(record: &Record) -> bool {
    #[derive(Deserialize)]
    struct PreviousAttempt {
        #[serde(default)]
        after: Option<serde::de::IgnoredAny>,
    }
    let metadata = record.parse_metadata::<PreviousAttempt>();
    metadata.is_ok_and(|metadata| metadata.after.is_some())
}
