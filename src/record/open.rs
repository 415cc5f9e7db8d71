use std::path::Path;
use std::sync::Arc;

use crate::model::{Clock, Mask};

use super::journal::Journal;
use super::{History, LogError, Session, SessionLog, file};

/// A log that is locked and was read, and to which nothing was written yet.
pub struct OpenLog {
    journal: Journal,
    history: History,
}

/// How a session begins behind what a log has already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begin {
    /// As a new task, if the last session came to its end.
    #[default]
    Next,
    /// As a new task, whatever was left unfinished.
    New,
    /// As another session of the last task. In an empty log that is a new one.
    Resume,
}

impl OpenLog {
    /// Opens a log where somebody wants it, new or not; its folder must exist.
    ///
    /// # Errors
    /// Why there can be no log there. What the file held is untouched then.
    pub fn open(path: &Path, clock: Clock) -> Result<Self, LogError> {
        let (journal, history) = Journal::open(path, clock)?;
        Ok(Self { journal, history })
    }

    /// The same at a place of toolq's own choice (see [`super::default_path`]), whose folders are made.
    ///
    /// # Errors
    /// Why there can be no log there.
    pub fn open_default(path: &Path, clock: Clock) -> Result<Self, LogError> {
        file::make_folder(path)?;
        Self::open(path, clock)
    }

    /// What the log says of its last task.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether a session may begin so.
    ///
    /// # Errors
    /// The last one is unfinished, and nobody said what is to become of it.
    pub fn admit(&self, begin: Begin) -> Result<(), LogError> {
        match self.history.unfinished() {
            Some(_) if begin == Begin::Next => {
                Err(LogError::Unfinished(self.journal.path().to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Begins a session.
    ///
    /// # Errors
    /// It may not begin so, or can't be written.
    pub fn begin(
        self,
        begin: Begin,
        session: &Session,
        mask: Arc<Mask>,
    ) -> Result<SessionLog, LogError> {
        self.admit(begin)?;
        let earlier = (begin == Begin::Resume).then(|| Arc::new(self.history));
        SessionLog::begin(self.journal, session, earlier, mask)
    }
}
