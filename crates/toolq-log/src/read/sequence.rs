//! What records may follow which: the promises of a log, checked from its records alone.
//!
//! Records come in, in their order. A call is on record before it starts, and starts before it has a result; it has one
//! result, and what has one never starts again; what may have had its effect starts again only when somebody said that it
//! had none. Memory is proportional to the number of calls.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use uuid::Uuid;

use crate::read::corruption::{Damage, Flaw};
use crate::records::metadata;
use crate::records::{Kind, ModelResponse, Record, Start, TurnFields as Turn};

/// What the records so far allow.
#[derive(Debug, Default)]
pub struct Order {
    /// The session that has no end yet.
    session: Option<Uuid>,
    /// Each with the agent whose it is.
    turns: HashMap<Uuid, Option<AgentTurn>>,
    /// By the id of the `tool_call`.
    calls: HashMap<Uuid, Stage>,
    /// The `describe_start`s of the open session that have no end yet.
    asked: HashSet<Uuid>,
    /// The calls that agents asked for.
    inner: HashMap<Uuid, AgentTurn>,
    /// What models answered.
    heard: HashSet<AgentTurn>,
}

/// The call that an agent works on, and its turn.
type AgentTurn = (Uuid, usize);

/// How far a call came, with the number of its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It never started, or what started surely had no effect: it may start.
    Free(u32),
    /// An attempt has no end.
    Started(u32, Risk),
    /// It may have had its effect.
    InDoubt(u32),
    /// It has its result.
    Ended,
}

/// What an attempt without an end means for the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Risk {
    /// The call may run twice.
    None,
    /// Nor does it matter: an agent goes on, also when a call that it asked for was in doubt.
    Agent,
    /// It must not.
    Effect,
}

/// How a call ended.
#[derive(Default, Deserialize)]
#[serde(default)]
struct End {
    status: String,
    budget_of: Option<serde::de::IgnoredAny>,
}

impl End {
    fn is_cut_short(&self) -> bool {
        metadata::is_cut_short(&self.status) && self.budget_of.is_none()
    }
}

/// What says whether a call in doubt had its effect.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Finding {
    /// Of a `resolve`.
    done: Option<bool>,
    /// Of a probe.
    finding: Option<String>,
}

impl Order {
    /// Takes the next record.
    ///
    /// # Errors
    /// It can't stand where it stands. What wrote it broke a promise, or was no toolq.
    pub fn take(&mut self, record: &Record) -> Result<(), Damage> {
        self.place(record)?.map_err(|why| Damage {
            line: record.line,
            offset: record.offset,
            what: Flaw::Disorder(why),
        })
    }

    fn place(&mut self, record: &Record) -> Result<Result<(), &'static str>, Damage> {
        let known = |found: bool, why| if found { Ok(()) } else { Err(why) };
        Ok(match &record.kind {
            Kind::Session => {
                self.session = Some(record.id);
                self.asked.clear();
                Ok(())
            }
            Kind::Recovered => Ok(()),
            Kind::Resolve => self.call(record)?,
            _ if self.session.is_none() => Err("it stands behind the end of its session"),
            Kind::SessionEnd => {
                let ends = record.parent == self.session.take();
                known(ends, "it ends a session that is not open").and(known(
                    self.asked.is_empty(),
                    "a tool that was asked what it takes has no end",
                ))
            }
            Kind::DescribeStart => {
                self.asked.insert(record.id);
                let below = record.parent == self.session;
                known(below, "it belongs to no open session")
            }
            Kind::DescribeEnd => {
                let asked = self.asked.remove(&record.parent.unwrap_or_default());
                known(asked, "its tool was not asked, or has its end already")
            }
            Kind::Turn => {
                let turn: Turn = record.metadata()?;
                let agent = record.parent.filter(|_| turn.agent.is_some());
                let turn = agent.map(|agent| (agent, turn.turn));
                self.turns.insert(record.id, turn);
                known(
                    record.parent == self.session || self.has_call(record),
                    "it belongs to no open session, and to no call of an agent",
                )
            }
            Kind::ToolCall => {
                let parent = record.parent.unwrap_or_default();
                let turn = self.turns.get(&parent).copied();
                let found = turn.is_some() || self.calls.contains_key(&parent);
                self.calls.insert(record.id, Stage::Free(0));
                if let Some(turn) = turn.flatten() {
                    self.inner.insert(record.id, turn);
                }
                known(found, "its turn is not on record")
            }
            Kind::ModelResponse => self.response(record)?,
            _ => self.call(record)?,
        })
    }

    /// A model answers in each turn of its agent once: an agent that goes on doesn't ask again.
    fn response(&mut self, record: &Record) -> Result<Result<(), &'static str>, Damage> {
        let agent = record.parent.unwrap_or_default();
        if !self.calls.contains_key(&agent) {
            return Ok(Err("its call is not on record"));
        }
        let turn = record.metadata::<ModelResponse>()?.turn;
        let new = self.heard.insert((agent, turn));
        Ok(if new {
            Ok(())
        } else {
            Err("its turn has an answer already")
        })
    }

    /// Whether it starts a call that an agent's model was not heard to ask for, and that writes.
    fn is_unheard(&self, record: &Record) -> Result<bool, Damage> {
        let turn = self.inner.get(&record.parent.unwrap_or_default());
        let unheard = turn.is_some_and(|turn| !self.heard.contains(turn));
        Ok(unheard && record.metadata::<Start>()?.effect == "write")
    }

    /// Whether it stands below a call.
    fn has_call(&self, record: &Record) -> bool {
        let parent = record.parent.unwrap_or_default();
        self.calls.contains_key(&parent)
    }

    /// A record that belongs to a call.
    fn call(&mut self, record: &Record) -> Result<Result<(), &'static str>, Damage> {
        if record.kind == Kind::ToolStart && self.is_unheard(record)? {
            return Ok(Err(
                "a call that writes starts, and its model's answer is not on record",
            ));
        }
        let parent = record.parent.unwrap_or_default();
        let Some(stage) = self.calls.get_mut(&parent) else {
            return Ok(match record.kind {
                Kind::Other(_) => Ok(()),
                _ => Err("its call is not on record"),
            });
        };
        let next = match &record.kind {
            Kind::ToolStart => stage.start(&record.metadata()?, record),
            Kind::ToolResult => stage.result(&record.metadata()?),
            Kind::ToolSkipped => stage.skipped(record),
            Kind::ToolInDoubt => stage.in_doubt(),
            _ => stage.found(record.kind == Kind::Resolve, &record.metadata()?),
        };
        Ok(next.map(|next| *stage = next))
    }
}

impl Stage {
    fn start(self, start: &Start<'_>, record: &Record) -> Result<Self, &'static str> {
        let attempts = match self {
            Self::Free(attempts) | Self::Started(attempts, Risk::None | Risk::Agent) => attempts,
            // An agent goes on when the call in doubt that it asked for is settled.
            Self::InDoubt(attempts) if start.agent.is_some() => attempts,
            // The engine goes on after an attempt that surely had no effect, and says how it failed.
            Self::Started(attempts, Risk::Effect) if goes_on(record) => attempts,
            Self::Started(..) | Self::InDoubt(_) => {
                return Err("a call starts again that may have had its effect");
            }
            Self::Ended => return Err("a call starts again that has its result"),
        };
        if start.attempt != attempts + 1 {
            return Err("its attempt is not the next one of its call");
        }
        let risk = match &*start.effect {
            _ if start.agent.is_some() => Risk::Agent,
            "read" | "idempotent" => Risk::None,
            _ => Risk::Effect,
        };
        Ok(Self::Started(start.attempt, risk))
    }

    /// A call that is rejected has a result without a start; with other tools it may run, also where it did before them.
    /// One that was ended with its run, and may run twice, has no result of its own.
    fn result(self, end: &End) -> Result<Self, &'static str> {
        match self {
            Self::Free(0) => Ok(self),
            Self::Free(_) | Self::Started(_, Risk::None | Risk::Agent)
                if metadata::is_rejected(&end.status) =>
            {
                Ok(self)
            }
            Self::Started(attempts, Risk::None) if end.is_cut_short() => Ok(Self::Free(attempts)),
            Self::Started(_, Risk::Agent) if end.is_cut_short() => Ok(self),
            Self::Ended => Err("its call has a result already"),
            _ => Ok(Self::Ended),
        }
    }

    fn skipped(self, record: &Record) -> Result<Self, &'static str> {
        match self {
            // The engine called its request off before any of it was sent.
            Self::Started(attempts, Risk::Effect) if was_called_off(record) => {
                Ok(Self::Free(attempts))
            }
            // A later run may not have come again to what may run twice.
            Self::Free(_) | Self::Started(_, Risk::None | Risk::Agent) => Ok(self),
            Self::Started(..) | Self::InDoubt(_) => Err("a call is skipped that had started"),
            Self::Ended => Err("its call has a result already"),
        }
    }

    fn in_doubt(self) -> Result<Self, &'static str> {
        match self {
            Self::Started(attempts, _) | Self::InDoubt(attempts) => Ok(Self::InDoubt(attempts)),
            Self::Free(_) => Err("a call is in doubt that never started"),
            Self::Ended => Err("its call has a result already"),
        }
    }

    /// Somebody said what became of a call, or nobody could.
    fn found(self, resolve: bool, finding: &Finding) -> Result<Self, &'static str> {
        let done = finding.done.or(match finding.finding.as_deref() {
            Some("not_done") => Some(false),
            _ => None,
        });
        match (self, done) {
            (Self::Started(..) | Self::InDoubt(_), Some(true)) => Ok(Self::Ended),
            (Self::Started(attempts, _) | Self::InDoubt(attempts), Some(false)) => {
                Ok(Self::Free(attempts))
            }
            // Who said that it was not done may know better by now.
            (Self::Free(1..), Some(true)) if resolve => Ok(Self::Ended),
            (Self::Free(1..), Some(false)) if resolve => Ok(self),
            (_, _) if resolve => Err("it resolves a call that is not in doubt"),
            (stage, _) => Ok(stage),
        }
    }
}

/// A call that is skipped has no attempts, unless it was started and came to nothing.
fn was_called_off(record: &Record) -> bool {
    #[derive(Deserialize)]
    struct Skipped {
        #[serde(default)]
        attempts: u32,
    }
    let skipped = record.metadata::<Skipped>();
    skipped.is_ok_and(|skipped| skipped.attempts > 0)
}

fn goes_on(record: &Record) -> bool {
    #[derive(Deserialize)]
    struct After {
        #[serde(default)]
        after: Option<serde::de::IgnoredAny>,
    }
    let after = record.metadata::<After>();
    after.is_ok_and(|after| after.after.is_some())
}
