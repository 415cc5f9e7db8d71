use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::model::{Mask, Refused};

use super::fields::{AttemptFields, EndFields, SessionFields};
use super::journal::Journal;
use super::{History, Kind, LogError};

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
    /// Calls running at once.
    pub jobs: NonZeroUsize,
}

/// The log of one session. Every event that it takes is in the file when [`Sink::tell`] returns.
///
/// [`Sink::tell`]: crate::model::Sink::tell
pub struct SessionLog {
    pub(super) journal: Journal,
    pub(super) mask: Arc<Mask>,
    /// The record of the session itself.
    pub(super) session: Uuid,
    /// The session that began the task.
    task: Uuid,
    /// What earlier sessions made of the task.
    pub(super) earlier: Option<Arc<History>>,
    /// Of tools by name.
    pub(super) digests: HashMap<String, String>,
    /// The records of turns that have not ended.
    pub(super) turns: HashMap<usize, Uuid>,
    /// By turn and position.
    pub(super) calls: HashMap<(usize, usize), OpenCall>,
    pub(super) counts: EndFields,
    /// Milliseconds since 1970.
    begun: u64,
    refused: Option<Refused>,
}

/// A call whose result is not there yet.
pub(super) struct OpenCall {
    /// Its `tool_call`.
    pub(super) record: Uuid,
    /// The attempt that failed last, for the record of the next start.
    pub(super) failed: Option<AttemptFields>,
}

impl SessionLog {
    /// Begins a session at the end of a log, with what is known of the task that it resumes.
    pub(super) fn begin(
        mut journal: Journal,
        session: &Session,
        earlier: Option<Arc<History>>,
        mask: Arc<Mask>,
    ) -> Result<Self, LogError> {
        let begun = journal.now();
        let resumed = earlier.as_ref();
        let resumed = resumed.and_then(|earlier| Some((earlier.task()?, earlier.epoch())));
        let fields = SessionFields::of(session, resumed, &mask);
        let record = journal.write(&Kind::Session, None, &(), &fields);
        let record = record.map_err(|source| LogError::Io {
            path: journal.path().to_owned(),
            doing: "written",
            source,
        })?;
        Ok(Self {
            journal,
            mask,
            session: record,
            task: resumed.map_or(record, |(task, _)| task),
            earlier,
            digests: HashMap::new(),
            turns: HashMap::new(),
            calls: HashMap::new(),
            counts: EndFields::default(),
            begun,
            refused: None,
        })
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
            log.journal
                .write(&Kind::SessionEnd, session, &(), &end)
                .map(drop)
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
    pub(super) fn heed(
        &mut self,
        write: impl FnOnce(&mut Self) -> std::io::Result<()>,
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
