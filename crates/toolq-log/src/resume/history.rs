//! What a log says of the task that its last run worked on: where each call stands, and where its answer is.
//!
//! A task is a run and the runs that resume it. Records come in, in their order; a run that resumes nothing begins another
//! task, and what was before it is forgotten. Kept is a place in the file for each call, never a body: bodies are read
//! again when they are asked for, but for small ones, of which so much is kept and no more. Nothing is written here.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use uuid::Uuid;

use crate::read::Damage;
use crate::records::metadata;
use crate::records::{Kind, Record};
use crate::resume::agents::Heard;
use crate::resume::answer_cache::Answers;
use crate::resume::logged_call::Entry;
use toolq_core::os::Process;

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// The call of the agent that asked for it; none where the input did.
    pub(crate) within: Option<Uuid>,
    pub(crate) turn: usize,
    pub(crate) position: usize,
}

/// What is known of a task.
#[derive(Debug, Default)]
pub struct History {
    /// The session that began it.
    task: Option<Uuid>,
    /// How many sessions have worked on it.
    epoch: u32,
    /// Who works on it, as far as the log says: its last session has no end.
    unfinished: Option<Process>,
    /// By what calls ran last.
    ground: Ground,
    /// That of the last session, by which nothing may have run.
    last_ground: Ground,
    /// By the call of the agent whose turn it is, if it is one's, and its number.
    pub(crate) turns: HashMap<(Option<Uuid>, usize), Uuid>,
    /// The calls that agents work on, by the id of the `turn` of theirs.
    pub(crate) agents: HashMap<Uuid, Uuid>,
    /// What models answered, by the agent's call and the turn.
    pub(crate) heard: HashMap<(Uuid, usize), Heard>,
    pub(crate) calls: Vec<Entry>,
    /// Which call that is, by the id of its `tool_call`.
    ids: HashMap<Uuid, usize>,
    /// The same by its place.
    pub(crate) places: HashMap<Place, usize>,
    pub(crate) answers: Answers,
    /// Where bodies are read again.
    pub(crate) source: Option<(PathBuf, File)>,
}

/// What decides, beside its input, what a call does.
#[derive(Debug, Clone, Default)]
struct Ground {
    /// The tools file: SHA-256 of its bytes.
    tools_sha256: String,
    /// The folder in which commands run.
    root: Option<String>,
}

impl History {
    /// Takes the next record, which ends before the byte `end` of the file.
    ///
    /// # Errors
    /// Its metadata is not that of its type.
    pub(crate) fn take(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        match &record.kind {
            Kind::Session => self.session(record)?,
            Kind::SessionEnd => self.unfinished = None,
            Kind::Turn => self.begin_turn(record)?,
            Kind::ModelResponse => self.hear(record, end)?,
            Kind::ToolCall => self.call(record, end)?,
            kind => {
                if *kind == Kind::ToolStart {
                    self.ground.clone_from(&self.last_ground);
                }
                let call = record.parent.and_then(|id| self.ids.get(&id));
                if let Some(call) = call {
                    let entry = &mut self.calls[*call];
                    entry.take(record, end)?;
                    let answers = [entry.answer.map(|answer| answer.at), entry.rejected];
                    if answers
                        .iter()
                        .flatten()
                        .any(|at| at.offset == record.offset)
                    {
                        self.answers.keep(record);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a session begins another task.
    pub(crate) fn is_over_by(&self, session: &metadata::SessionStart) -> bool {
        session.resumes.is_none() || session.resumes != self.task
    }

    fn session(&mut self, record: &Record) -> Result<(), Damage> {
        let session: metadata::SessionStart = record.metadata()?;
        if self.is_over_by(&session) {
            *self = Self {
                task: Some(session.resumes.unwrap_or(record.id)),
                ..Self::default()
            };
        }
        self.forget_unheard();
        self.epoch += 1;
        self.unfinished = Some(session.process());
        self.last_ground = Ground {
            tools_sha256: session.tools.sha256,
            root: session.root,
        };
        if self.epoch == 1 {
            self.ground.clone_from(&self.last_ground);
        }
        Ok(())
    }

    fn call(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        let call: metadata::Call = record.metadata()?;
        let agent = record.parent.and_then(|turn| self.agents.get(&turn));
        let place = Place {
            within: agent.copied(),
            turn: call.turn,
            position: call.position,
        };
        if self.turns.get(&(place.within, place.turn)).copied() != record.parent {
            return Ok(());
        }
        let number = *self.ids.entry(record.id).or_insert(self.calls.len());
        self.places.insert(place, number);
        let entry = Entry::new(record, call, place.within, end);
        match self.calls.get_mut(number) {
            Some(same) => *same = entry,
            None => self.calls.push(entry),
        }
        Ok(())
    }

    /// Nobody will ask it for an answer.
    pub(crate) fn forget_answers(&mut self) {
        self.answers = Answers::default();
    }

    /// From here on bodies can be had: from `file`, which is the log at `path`.
    pub(crate) fn read_from(&mut self, path: PathBuf, file: File) {
        self.source = Some((path, file));
    }

    /// The id of the session that began the task; none in an empty log.
    pub fn task(&self) -> Option<Uuid> {
        self.task
    }

    /// How many sessions have worked on it.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Who was working on it when its last session broke off; none where that came to its end.
    pub fn unfinished(&self) -> Option<&Process> {
        self.unfinished.as_ref()
    }

    /// The digest of the tools file by which calls ran last.
    pub fn tools_sha256(&self) -> &str {
        &self.ground.tools_sha256
    }

    /// The folder in which commands ran last, where the log says it.
    pub fn root(&self) -> Option<&str> {
        self.ground.root.as_deref()
    }

    /// How many calls of the input it has.
    pub fn len(&self) -> usize {
        let places = self.places.keys();
        places.filter(|place| place.within.is_none()).count()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The record of a turn, of the input or of the agent that works on a call.
    pub(crate) fn turn(&self, within: Option<Uuid>, turn: usize) -> Option<Uuid> {
        let known = self.is_settled(within, turn);
        known
            .then(|| self.turns.get(&(within, turn)).copied())
            .flatten()
    }

    pub(crate) fn entry(&self, place: Place) -> Option<&Entry> {
        if !self.is_settled(place.within, place.turn) {
            return None;
        }
        self.calls.get(*self.places.get(&place)?)
    }

    /// The call whose `tool_call` has this id.
    pub(crate) fn call_of(&self, record: Uuid) -> Option<&Entry> {
        self.calls.get(*self.ids.get(&record)?)
    }

    /// Every call, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Place, &Entry)> {
        let entries = self.places.iter();
        entries.filter_map(|(place, call)| Some((*place, self.calls.get(*call)?)))
    }
}
