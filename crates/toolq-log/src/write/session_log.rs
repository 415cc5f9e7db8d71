use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::error::LogError;
use crate::open::{Log, RecoveredFields};
use crate::records::{AttemptFields, EndFields, Kind, SessionFields};
use crate::resume::History;
use crate::write::journal::{Durable, Journal};
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{CallKey, CallRef, Effect, Refused};

/// What a session runs with.
#[derive(Debug, Clone)]
pub struct Session {
    /// The tools file.
    pub tools_path: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub tools_sha256: String,
    /// SHA-256 of the input's bytes, in hexadecimal, where it is known before anything runs.
    pub input_sha256: Option<String>,
    /// The current directory.
    pub cwd: String,
    /// The folder in which commands run.
    pub root: String,
    /// Calls running at once.
    pub jobs: NonZeroUsize,
    /// What of its log survives a loss of power.
    pub sync: Sync,
}

/// What of a log is made to survive a loss of power, before toolq goes on. A death of toolq alone loses nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sync {
    /// That a call started which isn't `read`, before it starts, and its result before it is printed.
    #[default]
    Auto,
    /// The same of every call.
    All,
}

impl Sync {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::All => "all",
        }
    }
}

/// The log of one session. Every event that it takes is in the file when [`Sink::tell`] returns.
///
/// [`Sink::tell`]: crate::model::Sink::tell
pub struct SessionLog {
    pub(crate) journal: Journal,
    pub(crate) mask: Arc<Mask>,
    pub(crate) sync: Sync,
    /// The record of the session itself.
    pub(crate) session: Uuid,
    /// The session that began the task.
    task: Uuid,
    /// What earlier sessions made of the task.
    pub(crate) earlier: Option<Arc<History>>,
    /// Of tools by name.
    pub(crate) digests: HashMap<String, String>,
    /// The records of turns that have not ended.
    pub(crate) turns: HashMap<(usize, Option<Arc<CallRef>>), Uuid>,
    pub(crate) calls: HashMap<CallKey, OpenCall>,
    /// Tools that are being asked what they take: their `describe_start`.
    pub(crate) asked: HashMap<String, Uuid>,
    /// The input is another task's from some call on, which a stream shows only then: of what stands there nothing is
    /// on record, and nothing runs.
    pub(crate) conflicts: bool,
    pub(crate) counts: EndFields,
    /// Torn ends that were set aside when it was opened.
    recovered: Vec<RecoveredFields>,
    /// Milliseconds since 1970.
    begun: u64,
    refused: Option<Refused>,
}

/// A call whose result is not there yet.
pub(crate) struct OpenCall {
    /// Its `tool_call`.
    pub(crate) record: Uuid,
    /// The attempt that failed last, for the record of the next start.
    pub(crate) failed: Option<AttemptFields>,
    /// What its tool does to the world, once it was started.
    pub(crate) effect: Option<Effect>,
}

impl SessionLog {
    /// Begins a session in a new file, or behind the last session of a log, which must have ended. `path` is where
    /// somebody wants it; its folder must exist.
    ///
    /// # Errors
    /// Why there can be no log there. What the file held is untouched then.
    pub fn create(
        path: &Path,
        session: &Session,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<Self, LogError> {
        let log = Log::open(path, |_, _| Ok(()))?;
        if log.is_unfinished() {
            return Err(LogError::Unfinished(path.to_owned()));
        }
        log.begin(session, None, mask, clock)
    }

    /// Writes the record of the beginning, with what is known of the task that it resumes.
    pub(crate) fn begin(
        mut journal: Journal,
        session: &Session,
        earlier: Option<Arc<History>>,
        mask: Arc<Mask>,
    ) -> io::Result<Self> {
        let begun = journal.now();
        let resumed = earlier.as_ref();
        let resumed = resumed.and_then(|earlier| Some((earlier.task()?, earlier.epoch())));
        let fields = SessionFields::of(session, resumed, &mask);
        let record = journal.add(&Kind::Session, None, &(), &fields)?;
        journal.commit(Durable::Now)?;
        Ok(Self {
            journal,
            mask,
            sync: session.sync,
            session: record,
            task: resumed.map_or(record, |(task, _)| task),
            earlier,
            digests: HashMap::new(),
            turns: HashMap::new(),
            calls: HashMap::new(),
            asked: HashMap::new(),
            conflicts: false,
            counts: EndFields::default(),
            recovered: Vec::new(),
            begun,
            refused: None,
        })
    }

    /// The same, behind torn ends that were set aside.
    pub(crate) fn behind(self, recovered: Vec<RecoveredFields>) -> Self {
        Self { recovered, ..self }
    }

    /// What was set aside of the log when it was opened.
    pub fn recovered(&self) -> &[RecoveredFields] {
        &self.recovered
    }

    /// Writes the record of the end. A log without it holds an unfinished session.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn finish(&mut self, exit_code: u8) -> Result<(), Refused> {
        let end = EndFields {
            duration_ms: self.journal.now().saturating_sub(self.begun),
            exit_code,
            ..self.counts
        };
        let session = Some(self.session);
        self.heed(|log| {
            log.journal.add(&Kind::SessionEnd, session, &(), &end)?;
            log.journal.commit(Durable::Now)
        })
    }

    /// What idempotency keys are made of: the id of the session that began the task.
    pub fn task(&self) -> String {
        self.task.to_string()
    }

    /// What is known of the task from before; none where this session begins one.
    pub fn earlier(&self) -> Option<Arc<History>> {
        self.earlier.clone()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.journal.path()
    }

    /// The folder beside it for what is too large for a record. It need not exist.
    pub fn folder(&self) -> &Path {
        self.journal.folder()
    }

    /// Why it takes no more records, if it doesn't.
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// Does what `write` says unless an earlier write failed; the first failure is the last attempt.
    pub(crate) fn heed(
        &mut self,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> Result<(), Refused> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        write(self).map_err(|error| {
            let path = self.path().display();
            let refused = Refused(format!("the session log {path} can't be written: {error}"));
            self.refused.insert(refused).clone()
        })
    }
}
