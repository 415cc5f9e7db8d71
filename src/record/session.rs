use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::model::{Clock, Mask, Refused};

use super::fields::{AttemptFields, EndFields, SessionFields};
use super::file;
use super::journal::Journal;
use super::{Kind, LogError};

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
        let mut journal = Journal::open(path, clock)?;
        let begun = journal.now();
        let fields = SessionFields::of(session, &mask);
        let record = journal.write(&Kind::Session, None, &(), &fields);
        let record = record.map_err(|source| LogError::Io {
            path: path.to_owned(),
            doing: "written",
            source,
        })?;
        Ok(Self {
            journal,
            mask,
            session: record,
            turns: HashMap::new(),
            calls: HashMap::new(),
            counts: EndFields::default(),
            begun,
            refused: None,
        })
    }

    /// The same at a place of toolq's own choice (see [`super::default_path`]), whose folders are made.
    ///
    /// # Errors
    /// Why there can be no log there.
    pub fn create_default(
        path: &Path,
        session: &Session,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<Self, LogError> {
        file::make_folder(path)?;
        Self::create(path, session, mask, clock)
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
