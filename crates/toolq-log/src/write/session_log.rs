//! The log of a running session.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::error::LogError;
use crate::open::LockedLog;
use crate::records::{
    FailedAttempt, RecordKind, RecoveredRecord, SessionEndRecord, SessionHeader, SessionRecord,
    SyncPolicy, ToolMeaning,
};
use crate::resume::TaskHistory;
use crate::write::journal::{Durability, Journal};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CallKey, CallRef, Effect, EmitError};

/// The log of one session. When [`EventSink::emit`] returns, the records of the events are in the file.
///
/// [`EventSink::emit`]: toolq_core::types::EventSink::emit
pub struct SessionLog {
    pub(crate) journal: Journal,
    pub(crate) mask: Arc<Mask>,
    pub(crate) sync: SyncPolicy,
    /// The `session` record.
    pub(crate) session_id: Uuid,
    /// The session that began the task.
    task_id: Uuid,
    /// What earlier sessions recorded about the task.
    pub(crate) history: Option<Arc<TaskHistory>>,
    /// What the called tools mean, by name.
    pub(crate) tool_meanings: HashMap<String, ToolMeaning>,
    /// The records of turns that haven't ended.
    pub(crate) open_turns: HashMap<(usize, Option<Arc<CallRef>>), Uuid>,
    pub(crate) open_calls: HashMap<CallKey, OpenCall>,
    /// The `tool_call` records of the latest calls that were answered although an attempt hadn't ended, for late results.
    pub(crate) given_up_calls: VecDeque<(CallKey, Uuid)>,
    /// The `describe_start` records of tools whose `describe` is running, by tool name.
    pub(crate) open_describes: HashMap<String, Uuid>,
    /// The `list_start` records of servers whose tools are being requested, by name.
    pub(crate) open_lists: HashMap<String, Uuid>,
    /// The `server_start` records of servers that are running, by name and number of earlier starts.
    pub(crate) open_servers: HashMap<(String, u32), Uuid>,
    /// Whether the input differs from the log from some call on. With a stream, this shows only when the call arrives.
    /// From there on, nothing is recorded and nothing runs.
    pub(crate) has_conflict: bool,
    pub(crate) counts: SessionEndRecord,
    /// Torn ends that were set aside when the log was opened.
    recovered: Vec<RecoveredRecord>,
    /// When the session began, in milliseconds since 1970.
    started_ms: u64,
    write_error: Option<EmitError>,
}

/// A call that has no result yet.
pub(crate) struct OpenCall {
    /// Its `tool_call` record.
    pub(crate) record_id: Uuid,
    /// The last failed attempt, which goes into the record of the next start.
    pub(crate) failed_attempt: Option<FailedAttempt>,
    /// The effect of its tool, once the call has started.
    pub(crate) effect: Option<Effect>,
}

impl SessionLog {
    /// Begins a session in a new file, or after the last session of an existing log, which must have ended. The
    /// directory of `path` must exist.
    ///
    /// # Errors
    /// The log can't be used. The file is left unchanged.
    pub fn create(
        path: &Path,
        header: &SessionHeader,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<Self, LogError> {
        let log = LockedLog::open(path, |_, _| Ok(()))?;
        if log.is_unfinished() {
            return Err(LogError::Unfinished(path.to_owned()));
        }
        log.begin_session(header, None, mask, clock)
    }

    /// Writes the `session` record. `history` is the task that the session resumes, if any.
    pub(crate) fn begin(
        mut journal: Journal,
        header: &SessionHeader,
        history: Option<Arc<TaskHistory>>,
        mask: Arc<Mask>,
    ) -> io::Result<Self> {
        let started_ms = journal.now_ms();
        let resumed = history.as_ref();
        let resumed = resumed.and_then(|history| Some((history.task_id()?, history.epoch())));
        let fields = SessionRecord::new(header, resumed, &mask);
        let session_id = journal.append(&RecordKind::Session, None, &(), &fields)?;
        journal.commit(Durability::Immediate)?;
        Ok(Self {
            journal,
            mask,
            sync: header.sync,
            session_id,
            task_id: resumed.map_or(session_id, |(task, _)| task),
            history,
            tool_meanings: HashMap::new(),
            open_turns: HashMap::new(),
            open_calls: HashMap::new(),
            given_up_calls: VecDeque::new(),
            open_describes: HashMap::new(),
            open_lists: HashMap::new(),
            open_servers: HashMap::new(),
            has_conflict: false,
            counts: SessionEndRecord::default(),
            recovered: Vec::new(),
            started_ms,
            write_error: None,
        })
    }

    /// Adds the torn ends that were set aside before the session began.
    pub(crate) fn with_recovered(self, recovered: Vec<RecoveredRecord>) -> Self {
        Self { recovered, ..self }
    }

    /// Returns the torn ends that were set aside when the log was opened.
    pub fn recovered(&self) -> &[RecoveredRecord] {
        &self.recovered
    }

    /// Writes the `session_end` record. Without it, the session counts as unfinished.
    ///
    /// # Errors
    /// The record can't be written.
    pub fn finish(&mut self, exit_code: u8) -> Result<(), EmitError> {
        let end = SessionEndRecord {
            duration_ms: self.journal.now_ms().saturating_sub(self.started_ms),
            exit_code,
            ..self.counts
        };
        let session_id = Some(self.session_id);
        self.write_guarded(|log| {
            log.journal
                .append(&RecordKind::SessionEnd, session_id, &(), &end)?;
            log.journal.commit(Durability::Immediate)
        })
    }

    /// Returns whether the file isn't what this session wrote anymore: another process deleted, replaced or changed it.
    pub fn is_lost(&self) -> bool {
        self.write_error.is_some() && self.journal.check_file().is_err()
    }

    /// Removes the file if this session is the only one in it, and nothing has happened in it. Returns whether it did.
    ///
    /// # Errors
    /// The file can't be removed.
    pub fn remove_if_unused(&mut self) -> io::Result<bool> {
        let is_unused = self.journal.record_count() == 1 && self.write_error.is_none();
        if is_unused {
            std::fs::remove_file(self.path())?;
        }
        Ok(is_unused)
    }

    /// Returns the id of the session that began the task. Idempotency keys are derived from it.
    pub fn task_id(&self) -> String {
        self.task_id.to_string()
    }

    /// Returns the id of this session.
    pub fn session_id(&self) -> String {
        self.session_id.to_string()
    }

    /// Returns what earlier sessions recorded about the task, or `None` if this session begins a new one.
    pub fn history(&self) -> Option<Arc<TaskHistory>> {
        self.history.clone()
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        self.journal.path()
    }

    /// Returns the directory next to the log for content that is too large for a record. It may not exist yet.
    pub fn blob_dir(&self) -> &Path {
        self.journal.blob_dir()
    }

    /// Returns the error after which the log accepts no more records, if there was one.
    pub fn write_error(&self) -> Option<&EmitError> {
        self.write_error.as_ref()
    }

    /// Runs `write` unless an earlier write failed. Nothing is attempted after the first failure.
    pub(crate) fn write_guarded(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> Result<(), EmitError> {
        if let Some(emit_error) = &self.write_error {
            return Err(emit_error.clone());
        }
        write(self).map_err(|error| {
            let path = self.path().display();
            let emit_error = EmitError(format!("the session log {path} can't be written: {error}"));
            self.write_error.insert(emit_error).clone()
        })
    }
}
