use std::path::Path;
use std::sync::Arc;

use crate::error::LogError;
use crate::open::log::Log;
use crate::read::Damage;
use crate::records::Record;
use crate::resume::{Doubts, History};
use crate::write::{Session, SessionLog};
use redact::Mask;
use toolq_core::os::Clock;

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

/// A log that is about to be continued, and what it says of the task that is resumed. Nothing was written to it yet.
pub struct OpenLog {
    log: Log,
    begin: Begin,
    history: History,
    /// Of earlier runs, where another begins behind them.
    doubts: Doubts,
}

impl OpenLog {
    /// Opens a log where somebody wants it, new or not; its folder must exist.
    ///
    /// # Errors
    /// There can be no log there, or no session may begin so. What the file held is untouched then.
    pub fn open(path: &Path, begin: Begin) -> Result<Self, LogError> {
        Self::opened(begin, |visit| Log::open(path, visit))
    }

    /// The same at a place of toolq's own choice (see [`super::default_path`]), whose folders are made.
    ///
    /// # Errors
    /// The same.
    pub fn open_default(path: &Path, begin: Begin) -> Result<Self, LogError> {
        Self::opened(begin, |visit| Log::open_default(path, visit))
    }

    fn opened(
        begin: Begin,
        open: impl FnOnce(&mut dyn FnMut(&Record, u64) -> Result<(), Damage>) -> Result<Log, LogError>,
    ) -> Result<Self, LogError> {
        let (mut history, mut doubts) = (History::default(), Doubts::default());
        let log = open(&mut |record, end| match begin {
            Begin::Resume => history.take(record, end),
            Begin::Next | Begin::New => {
                doubts.take(record);
                Ok(())
            }
        })?;
        if begin == Begin::Next && log.is_unfinished() {
            return Err(LogError::Unfinished(log.path().to_owned()));
        }
        history.read_from(log.path().to_owned(), log.file()?);
        Ok(Self {
            log,
            begin,
            history,
            doubts,
        })
    }

    /// The calls that earlier runs left in doubt, and that the next leaves so; none where a run is resumed.
    pub fn doubts(&self) -> &Doubts {
        &self.doubts
    }

    /// What the log says of the task that is resumed; nothing where none is.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// What may keep the promises of a log from being kept, in words for people.
    pub fn warning(&self) -> Option<String> {
        self.log.warning()
    }

    /// Begins the session.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(
        self,
        session: &Session,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let earlier = (self.begin == Begin::Resume).then(|| Arc::new(self.history));
        self.log.begin(session, earlier, mask, clock)
    }
}
