//! Opens a log for a session that is about to begin.

use std::path::Path;
use std::sync::Arc;

use crate::error::LogError;
use crate::open::locked_log::LockedLog;
use crate::read::Corruption;
use crate::records::Record;
use crate::records::SessionHeader;
use crate::resume::{InDoubtCalls, TaskHistory};
use crate::write::SessionLog;
use redact::Mask;
use toolq_core::os::Clock;

/// How a session relates to what the log already contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BeginMode {
    /// It begins a new task, which requires that the last session has ended.
    #[default]
    NewTask,
    /// It begins a new task, even if the last session is unfinished.
    ForceNewTask,
    /// It continues the last task. In an empty log, it begins a new one.
    Resume,
}

/// A log that is about to be continued, with its history of the task to resume. Nothing has been written to it yet.
pub struct PreparedLog {
    log: LockedLog,
    mode: BeginMode,
    history: TaskHistory,
    /// Calls that earlier runs left in doubt. Empty if a task is resumed.
    in_doubt_calls: InDoubtCalls,
}

impl PreparedLog {
    /// Opens the log at `path`, or creates it; its directory must exist.
    ///
    /// # Errors
    /// The log can't be used, or no session may begin in this mode. The file is left unchanged.
    pub fn open(path: &Path, mode: BeginMode) -> Result<Self, LogError> {
        Self::open_with(mode, |visit| LockedLog::open(path, visit))
    }

    /// Like [`Self::open`], for a path that toolq chose (see [`super::default_log_path`]): creates its parent
    /// directories.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_default(path: &Path, mode: BeginMode) -> Result<Self, LogError> {
        Self::open_with(mode, |visit| LockedLog::open_default(path, visit))
    }

    fn open_with(
        mode: BeginMode,
        open: impl FnOnce(
            &mut dyn FnMut(&Record, u64) -> Result<(), Corruption>,
        ) -> Result<LockedLog, LogError>,
    ) -> Result<Self, LogError> {
        let (mut history, mut in_doubt_calls) = (TaskHistory::default(), InDoubtCalls::default());
        let log = open(&mut |record, end| match mode {
            BeginMode::Resume => history.apply_record(record, end),
            BeginMode::NewTask | BeginMode::ForceNewTask => {
                in_doubt_calls.apply_record(record);
                Ok(())
            }
        })?;
        if mode == BeginMode::NewTask && log.is_unfinished() {
            return Err(LogError::Unfinished(log.path().to_owned()));
        }
        history.set_source(log.path().to_owned(), log.clone_file()?);
        Ok(Self {
            log,
            mode,
            history,
            in_doubt_calls,
        })
    }

    /// Returns the calls that earlier runs left in doubt and that the new session won't settle. Empty if a task is
    /// resumed.
    pub fn in_doubt_calls(&self) -> &InDoubtCalls {
        &self.in_doubt_calls
    }

    /// Returns what the log knows about the task to resume. Empty if a new task begins.
    pub fn history(&self) -> &TaskHistory {
        &self.history
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        self.log.path()
    }

    /// Returns a message for the user if the log's file system may break its promises.
    pub fn durability_warning(&self) -> Option<String> {
        self.log.durability_warning()
    }

    /// Begins the session.
    ///
    /// # Errors
    /// The log can't be written.
    pub fn begin_session(
        self,
        header: &SessionHeader,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let history = (self.mode == BeginMode::Resume).then(|| Arc::new(self.history));
        self.log.begin_session(header, history, mask, clock)
    }
}
