//! What a log knows about the task that its last run worked on: the state of each call, and where its result is.
//!
//! A task is a run together with the runs that resume it. Records are applied in order. A run that resumes nothing
//! begins a new task, and the previous one is forgotten. For each call, only its place in the file is kept: content is
//! read again when it is needed, except small results, which go into a cache of limited size. This module writes
//! nothing.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use uuid::Uuid;

use crate::agent_calls::AgentCalls;
use crate::read::Corruption;
use crate::records::{
    CallRecord, Record, RecordKind, SessionRecord, StartRecord, ToolMeaning, TurnRecord,
};
use crate::resume::answer_cache::AnswerCache;
use crate::resume::logged_call::LoggedCall;
use toolq_core::os::ProcessIdentity;

/// The position of a call of the input within its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallPosition {
    pub(crate) turn: usize,
    pub(crate) position: usize,
}

/// What is known about a task.
#[derive(Debug, Default)]
pub struct TaskHistory {
    /// The session that began it.
    task_id: Option<Uuid>,
    /// How many sessions have worked on it.
    epoch: u32,
    /// The process of the last session, if that has no end.
    unfinished_process: Option<ProcessIdentity>,
    /// The context in which calls last ran.
    run_context: RunContext,
    /// The context of the last session, in which possibly nothing ran.
    session_context: RunContext,
    /// The `turn` records of the input by turn number.
    turns: HashMap<usize, Uuid>,
    /// The calls that the input requested.
    calls: Vec<LoggedCall>,
    /// The other calls: those that agents made.
    agent_calls: AgentCalls,
    /// Indexes into `calls`, by the id of the `tool_call`.
    index_by_id: HashMap<Uuid, usize>,
    /// Indexes into `calls`, by position.
    index_by_position: HashMap<CallPosition, usize>,
    pub(crate) answer_cache: AnswerCache,
    /// What tools meant when they were last called, by name; `None` if an older toolq recorded the call, whose digests
    /// can't be compared.
    pub(crate) tool_meanings: HashMap<Box<str>, Option<ToolMeaning>>,
    /// The path and the file from which content is read again.
    pub(crate) source: Option<(PathBuf, File)>,
}

/// What determines the effect of a call, apart from its input.
#[derive(Debug, Clone, Default)]
struct RunContext {
    /// SHA-256 of the tools file.
    tools_sha256: String,
    /// The directory in which commands run.
    root: Option<String>,
}

impl TaskHistory {
    /// Applies the next record. `end` is the byte offset of its end in the file.
    ///
    /// # Errors
    /// Its metadata doesn't fit its type.
    pub(crate) fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        match &record.kind {
            RecordKind::Session => self.apply_session(record)?,
            RecordKind::SessionEnd => self.unfinished_process = None,
            RecordKind::Turn => self.apply_turn(record)?,
            RecordKind::ToolCall => self.apply_call(record, end)?,
            kind => {
                if *kind == RecordKind::ToolStart {
                    self.run_context.clone_from(&self.session_context);
                    self.apply_agents_start(record)?;
                }
                let index = record.parent.and_then(|id| self.index_by_id.get(&id));
                if let Some(index) = index {
                    let logged_call = &mut self.calls[*index];
                    logged_call.apply_record(record, end)?;
                    let extents = [
                        logged_call.answer.as_ref().map(|answer| answer.extent),
                        logged_call.last_rejection,
                    ];
                    if extents
                        .iter()
                        .flatten()
                        .any(|extent| extent.offset == record.offset)
                    {
                        self.answer_cache.insert(record);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a session begins another task.
    pub(crate) fn is_superseded_by(&self, session: &SessionRecord) -> bool {
        session.resumes.is_none() || session.resumes != self.task_id
    }

    fn apply_session(&mut self, record: &Record) -> Result<(), Corruption> {
        let session: SessionRecord = record.parse_metadata()?;
        if self.is_superseded_by(&session) {
            *self = Self {
                task_id: Some(session.resumes.unwrap_or(record.id)),
                ..Self::default()
            };
        }
        self.epoch += 1;
        self.unfinished_process = Some(session.process());
        self.session_context = RunContext {
            tools_sha256: session.tools.sha256,
            root: session.root,
        };
        if self.epoch == 1 {
            self.run_context.clone_from(&self.session_context);
        }
        Ok(())
    }

    fn apply_turn(&mut self, record: &Record) -> Result<(), Corruption> {
        let turn: TurnRecord = record.parse_metadata()?;
        match record.parent.filter(|_| turn.agent.is_some()) {
            Some(call) => self.agent_calls.add_turn(record.id, call),
            None => drop(self.turns.insert(turn.turn, record.id)),
        }
        Ok(())
    }

    /// If an agent starts a call, notes its effect at the calls of all agents that led to it.
    fn apply_agents_start(&mut self, record: &Record) -> Result<(), Corruption> {
        let Some(call) = record.parent.filter(|id| self.agent_calls.is_of_agent(*id)) else {
            return Ok(());
        };
        let start: StartRecord<'_> = record.parse_metadata()?;
        if start.agent.is_none() {
            for agent in self.agent_calls.agents_above(call) {
                if let Some(index) = self.index_by_id.get(&agent) {
                    self.calls[*index].log.note_inner_start(start.effect);
                }
            }
        }
        Ok(())
    }

    fn apply_call(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        let call: CallRecord<'_> = record.parse_metadata()?;
        let position = CallPosition {
            turn: call.turn,
            position: call.position,
        };
        if call.batch.is_some() {
            let meaning = call.tool_meaning.as_ref().map(ToolMeaning::from_record);
            self.tool_meanings
                .insert((&*call.tool_name).into(), meaning);
        }
        let is_of_agent = self.agent_calls.add_call(record.id, record.parent);
        if is_of_agent || self.turns.get(&position.turn).copied() != record.parent {
            return Ok(());
        }
        let index = *self
            .index_by_id
            .entry(record.id)
            .or_insert(self.calls.len());
        self.index_by_position.insert(position, index);
        let logged_call = LoggedCall::new(record, &call, end);
        match self.calls.get_mut(index) {
            Some(existing) => *existing = logged_call,
            None => self.calls.push(logged_call),
        }
        Ok(())
    }

    /// Drops the cached results, which won't be needed any more.
    pub(crate) fn clear_answer_cache(&mut self) {
        self.answer_cache = AnswerCache::default();
    }

    /// Makes content available, which is read from `file`, the log at `path`.
    pub(crate) fn set_source(&mut self, path: PathBuf, file: File) {
        self.source = Some((path, file));
    }

    /// Returns the id of the session that began the task, or `None` for an empty log.
    pub fn task_id(&self) -> Option<Uuid> {
        self.task_id
    }

    /// Returns how many sessions have worked on the task.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the process that ran the last session, or `None` if that session has an end.
    pub fn unfinished_process(&self) -> Option<&ProcessIdentity> {
        self.unfinished_process.as_ref()
    }

    /// Returns the digest of the tools file with which calls last ran.
    pub fn tools_sha256(&self) -> &str {
        &self.run_context.tools_sha256
    }

    /// Returns the directory in which commands last ran, if the log has it.
    pub fn root(&self) -> Option<&str> {
        self.run_context.root.as_deref()
    }

    /// Returns the number of calls that the input requested.
    pub fn count_input_calls(&self) -> usize {
        self.index_by_position.len()
    }

    /// Returns whether the task has no calls.
    pub fn is_empty(&self) -> bool {
        self.index_by_position.is_empty()
    }

    /// Returns the record of a turn of the input.
    pub(crate) fn turn_record(&self, turn: usize) -> Option<Uuid> {
        self.turns.get(&turn).copied()
    }

    pub(crate) fn call_at(&self, position: CallPosition) -> Option<&LoggedCall> {
        self.calls.get(*self.index_by_position.get(&position)?)
    }

    /// Iterates over the calls of the input, in no particular order.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (CallPosition, &LoggedCall)> {
        let entries = self.index_by_position.iter();
        entries.filter_map(|(place, call)| Some((*place, self.calls.get(*call)?)))
    }
}
