//! What a log says of the task that its last run worked on: where each call stands, and where its answer is.
//!
//! A task is a run and the runs that resume it. Records come in, in their order; a run that resumes nothing begins another
//! task, and what was before it is forgotten. Kept is a place in the file for each call, never a body: bodies are read
//! again when they are asked for. Nothing is written here.

mod call;
mod recall;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use uuid::Uuid;

use super::damage::Damage;
use super::metadata::{self, Process};
use super::{Kind, Record};
pub(super) use call::Entry;
pub use recall::{Conflict, RecallError};

/// A call's turn and position.
pub(super) type Place = (usize, usize);

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
    turns: HashMap<usize, Uuid>,
    /// By the id of the `tool_call`.
    calls: HashMap<Uuid, Entry>,
    places: HashMap<Place, Uuid>,
    /// Where bodies are read again.
    source: Option<(PathBuf, File)>,
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
    pub(super) fn take(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        match &record.kind {
            Kind::Session => self.session(record)?,
            Kind::SessionEnd => self.unfinished = None,
            Kind::Turn => {
                let turn: metadata::Turn = record.metadata()?;
                // A turn of an agent is none of the input.
                if turn.agent.is_none() {
                    self.turns.insert(turn.turn, record.id);
                }
            }
            Kind::ToolCall => self.call(record, end)?,
            kind => {
                if *kind == Kind::ToolStart {
                    self.ground.clone_from(&self.last_ground);
                }
                if let Some(entry) = record.parent.and_then(|call| self.calls.get_mut(&call)) {
                    entry.take(record, end)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a session begins another task.
    pub(super) fn is_over_by(&self, session: &metadata::SessionStart) -> bool {
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

    /// An agent's own calls are its own: their turn is no turn of the input.
    fn call(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        let call: metadata::Call = record.metadata()?;
        if self.turns.get(&call.turn).copied() != record.parent {
            return Ok(());
        }
        self.places.insert((call.turn, call.position), record.id);
        self.calls.insert(record.id, Entry::new(record, call, end));
        Ok(())
    }

    /// From here on bodies can be had: from `file`, which is the log at `path`.
    pub(super) fn read_from(&mut self, path: PathBuf, file: File) {
        self.source = Some((path, file));
    }

    /// The id of the session that began the task; none in an empty log.
    pub fn task(&self) -> Option<Uuid> {
        self.task
    }

    /// How many sessions have worked on it.
    pub(super) fn epoch(&self) -> u32 {
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

    /// How many calls it has.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The record of a turn.
    pub(super) fn turn(&self, turn: usize) -> Option<Uuid> {
        self.turns.get(&turn).copied()
    }

    pub(super) fn entry(&self, place: Place) -> Option<&Entry> {
        self.calls.get(self.places.get(&place)?)
    }

    /// Every call, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Place, &Entry)> {
        let entries = self.places.iter();
        entries.filter_map(|(place, id)| Some((*place, self.calls.get(id)?)))
    }
}
