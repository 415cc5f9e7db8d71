//! What is asked of a history: whether a call is the one that the log has in its place, what is to become of it, and
//! what the log answered.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::read::{Damage, Records};
use crate::records::metadata;
use crate::records::{BodyError, Brief, LoggedCallContent, Record, sha256, tool_sha256};
use crate::resume::history::{History, Place};
use crate::resume::logged_call::{Answered, Entry, Extent};
use crate::resume::policy::{Decision, State, Work, decide};
use redact::Mask;
use toolq_core::json::Input;
use toolq_core::text::{cut, escape};
use toolq_core::types::{
    Accepted, AgentUse, Begun, Call, Checked, Content, Effect, Invocation, Past, Recalled, Tools,
    Verdict,
};

/// Characters that are shown of an input.
const SHOWN: usize = 60;

/// The log has another call where the input has this one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("turn {turn}, call {position}: the session log has {logged}, {by} has {given}")]
pub struct Conflict {
    turn: usize,
    position: usize,
    /// `pay {"amount":5}`
    logged: String,
    given: String,
    /// Who asks for it now.
    by: &'static str,
}

/// Why what the log holds can't be read again.
#[derive(Debug, thiserror::Error)]
pub enum RecallError {
    /// It was there when the log was opened.
    #[error("the session log {} can't be read any more: {damage}", path.display())]
    Damaged {
        /// The log.
        path: PathBuf,
        /// What is wrong now.
        damage: Damage,
    },
    /// A body is kept beside the log, and is not as it was.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// There is no log to read.
    #[error("there is no session log")]
    NoLog,
    /// It is neither a text nor a list of blocks.
    #[error("the session log {} has an answer that is none", .0.display())]
    NoAnswer(PathBuf),
}

impl RecallError {
    /// The log that can't be read again.
    pub fn log(&self) -> Option<PathBuf> {
        match self {
            Self::Damaged { path, .. } | Self::NoAnswer(path) => Some(path.clone()),
            Self::Body(error) => Some(error.log()),
            Self::NoLog => None,
        }
    }
}

impl History {
    /// Whether the log has a call in the place of `call`.
    pub fn knows(&self, call: &Call) -> bool {
        self.entry_of(call).is_some()
    }

    /// Whether the log knows `call`.
    ///
    /// # Errors
    /// It has another call in its place.
    pub fn check(&self, call: &Call, mask: &Mask) -> Result<bool, Conflict> {
        match self.entry_of(call) {
            Some(entry) if same(entry, call, mask) => Ok(true),
            Some(entry) => Err(self.conflict(entry, call, mask)),
            None => Ok(false),
        }
    }

    /// What this run is to do with a call that [`check`](Self::check) has passed.
    ///
    /// # Errors
    /// Its answer can't be read.
    pub fn past(&self, checked: &Checked) -> Result<Past, RecallError> {
        let Some(entry) = self.entry_of(&checked.call) else {
            return Ok(Past::None);
        };
        let begun = || Begun {
            attempts: entry.attempts,
            key: entry.key.as_deref().map(str::to_owned),
            doubtful: entry.is_agents && self.below(entry.record).any(Entry::may_have_had_effect),
        };
        Ok(match self.decision(entry, checked) {
            Decision::Run | Decision::Conflict => Past::None,
            Decision::Again => Past::Started(begun()),
            Decision::Probe => Past::Unsure(begun()),
            Decision::InDoubt => Past::InDoubt(begun()),
            Decision::Print => match entry.answer {
                Some(answered) => Past::Answered(self.answer(entry, answered)?),
                None => Past::InDoubt(begun()),
            },
        })
    }

    /// Whether today's tools would say what becomes of a call, and not the log.
    pub fn is_missing(&self, checked: &Checked) -> bool {
        let Some(entry) = self.entry_of(&checked.call) else {
            return true;
        };
        let rejected = matches!(checked.verdict, Verdict::Rejected(_));
        match self.decision(entry, checked) {
            Decision::Print | Decision::InDoubt => false,
            Decision::Run | Decision::Again | Decision::Probe => {
                !(rejected && entry.rejected.is_some())
            }
            Decision::Conflict => true,
        }
    }

    /// Whether today's tools have to say what becomes of a call: it has no end of its own in the log, or is an agent's, which
    /// may go on from a doubt.
    pub fn is_open(&self, call: &Call) -> bool {
        self.entry_of(call).is_none_or(|entry| match entry.state {
            State::Ended | State::Done => false,
            State::InDoubt => entry.is_agents,
            State::Asked | State::Started | State::CutShort | State::NotDone => true,
        })
    }

    /// The names of tools that calls of the task named and that are defined otherwise in `tools`, or not at all. What a
    /// tool says of itself is a part of its definition; of one that was not asked nobody knows.
    pub fn changed(&self, tools: &Tools) -> BTreeSet<String> {
        let then: BTreeMap<&str, &str> = self
            .entries()
            .filter_map(|(_, entry)| Some((&*entry.tool, entry.tool_sha256.as_deref()?)))
            .collect();
        let differs = |name: &str, then: &str| {
            let now = tools.get(name);
            now.is_none_or(|tool| !tool.is_unasked() && tool_sha256(tool) != then)
        };
        let changed = then.into_iter().filter(|(name, then)| differs(name, then));
        changed.map(|(name, _)| name.to_owned()).collect()
    }

    /// Whether the log has this very answer to a call that was rejected.
    pub(crate) fn says(&self, place: Place, json: &str) -> bool {
        let rejected = self.entry(place).and_then(|entry| entry.rejected);
        let said = rejected.and_then(|at| self.said(at).ok());
        said.is_some_and(|said| said == json)
    }

    fn entry_of(&self, call: &Call) -> Option<&Entry> {
        let within = match &call.within {
            Some(agent) => Some(self.find(agent)?),
            None => None,
        };
        let (turn, position) = (call.turn, call.position);
        self.entry(Place {
            within,
            turn,
            position,
        })
    }

    fn decision(&self, entry: &Entry, checked: &Checked) -> Decision {
        let accepted = match &checked.verdict {
            Verdict::Accepted(accepted) => Some(&**accepted),
            Verdict::Rejected(_) => None,
        };
        let is_agent = accepted.is_some_and(|accepted| {
            entry.is_agents && matches!(accepted.invocation, Some(Invocation::Agent(_)))
        });
        let work = if !is_agent {
            let probe = accepted.is_some_and(|accepted| accepted.probe.is_some());
            Work::Tool(effect(entry, accepted), probe)
        // What an agent asked for goes on with it: so it comes to the call in doubt itself.
        } else if entry.is_in_doubt()
            && entry.within.is_none()
            && self.below(entry.record).any(Entry::is_in_doubt)
        {
            Work::DoubtfulAgent
        } else {
            Work::Agent
        };
        decide(Some(entry.state), true, work)
    }

    fn answer(&self, entry: &Entry, answered: Answered) -> Result<Recalled, RecallError> {
        let said = self.said(answered.at)?;
        let text = serde_json::from_str(&said).map(Content::Text);
        let content = text.or_else(|_| serde_json::from_str(&said).map(Content::Blocks));
        let record = entry.is_agents.then(|| self.record(answered.at));
        let used = record
            .transpose()?
            .and_then(|record| record.metadata().ok());
        Ok(Recalled {
            status: answered.status,
            is_error: answered.is_error,
            content: content.map_err(|_| RecallError::NoAnswer(self.path()))?,
            agent: used.and_then(agent_use).map(Box::new),
        })
    }

    /// What a call was answered, as JSON: kept, or read again.
    fn said(&self, at: Extent) -> Result<Cow<'_, str>, RecallError> {
        if let Some(json) = self.answers.get(at.offset) {
            return Ok(Cow::Borrowed(json));
        }
        let json: Box<str> = self.body(at)?.into();
        Ok(Cow::Owned(json.into()))
    }

    pub(crate) fn body(&self, at: Extent) -> Result<Box<RawValue>, RecallError> {
        let record = self.record(at)?;
        Ok(record.content.load(&self.path())?)
    }

    fn record(&self, at: Extent) -> Result<Record<'static>, RecallError> {
        let damaged = |damage| RecallError::Damaged {
            path: self.path(),
            damage,
        };
        let (_, file) = self.source.as_ref().ok_or(RecallError::NoLog)?;
        Records::at(file, at.offset, at.len).map_err(damaged)
    }

    fn path(&self) -> PathBuf {
        let path = self.source.as_ref().map(|(path, _)| path.clone());
        path.unwrap_or_default()
    }

    fn conflict(&self, entry: &Entry, call: &Call, mask: &Mask) -> Conflict {
        let logged = self.body(entry.asked).ok();
        let logged: Option<LoggedCallContent> =
            logged.and_then(|body| serde_json::from_str(body.get()).ok());
        let input = logged.and_then(|content| content.input);
        let given = call.input.as_ref().ok().map(Input::text);
        let given = given.map(|text| mask.json(text));
        Conflict {
            turn: call.turn,
            position: call.position,
            by: match call.within {
                Some(_) => "the agent",
                None => "the input",
            },
            logged: shown(&entry.tool, input.as_deref().map(RawValue::get)),
            given: shown(&mask.text(&call.name), given.as_deref()),
        }
    }
}

/// What an agent used, by the metadata of its result.
fn agent_use(used: metadata::AgentUsed) -> Option<AgentUse> {
    Some(AgentUse {
        agent_name: used.agent_name?,
        turns: used.turns_used,
        calls: used.tool_calls_made,
        corrections: used.corrections,
        unfinished: used.done == Some(false),
        usage: used.usage,
        lost: used.lost,
    })
}

/// A call is known by its place, its tool and the bytes of its input. Never by its id: recordings use ids again.
fn same(entry: &Entry, call: &Call, mask: &Mask) -> bool {
    let input = call.input.as_ref().ok();
    let digest = input.map(|input| sha256(input.text().as_bytes()));
    *entry.tool == *Brief(&call.name, mask).text()
        && entry.input_sha256.as_deref() == digest.as_deref()
}

/// The graver of what the tool did to the world when it was started, and what it does now.
fn effect(entry: &Entry, accepted: Option<&Accepted>) -> Effect {
    let now = accepted.map(|accepted| accepted.tool.effect);
    let both = [entry.effect, now].into_iter().flatten();
    both.max().unwrap_or(Effect::Write)
}

/// `pay {"amount":5}`, for people.
fn shown(tool: &str, input: Option<&str>) -> String {
    let text = format!("{tool} {}", input.unwrap_or("without an input"));
    escape(&cut(&text, SHOWN)).into_owned()
}
