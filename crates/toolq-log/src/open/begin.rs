//! Opens a log for a session that is about to begin.

use std::path::Path;
use std::sync::Arc;

use crate::error::LogError;
use crate::open::locked_log::LockedLog;
use crate::read::Corruption;
use crate::records::Record;
use crate::records::SessionHeader;
use crate::resume::{InDoubtCalls, KeptResults, SelectedTask, TaskHistory, TaskKey, TaskSelector};
use crate::write::{LogReplica, SessionLog};
use redact::Mask;
use toolq_core::os::Clock;

/// How a session relates to what the log already contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BeginMode {
    /// It begins a new task. Nothing must be left of the last session, or of an earlier one with the same input.
    #[default]
    NewTask,
    /// It begins a new task, even if the last session is unfinished.
    ForceNewTask,
    /// It continues the last task. In an empty log, it begins a new one.
    Resume,
}

/// A log that is about to be continued, with its history of the task to resume or to repeat. Nothing has been written to
/// it yet.
pub struct PreparedLog {
    log: LockedLog,
    task: SelectedTask,
    /// Whether the new session continues the task.
    resumes: bool,
    /// The plan of the new session was applied before.
    has_applied_plan: bool,
    /// Calls that earlier runs left in doubt. Empty if a task is resumed.
    in_doubt_calls: InDoubtCalls,
    /// Results that the new session may use. Empty if it doesn't.
    kept_results: KeptResults,
}

impl PreparedLog {
    /// Opens the log at `path`, or creates it; its directory must exist. `key` is what is known of the new session.
    ///
    /// # Errors
    /// The log can't be used. The file is left unchanged.
    pub fn open(path: &Path, mode: BeginMode, key: TaskKey<'_>) -> Result<Self, LogError> {
        Self::open_with(mode, key, |visit| LockedLog::open(path, visit))
    }

    /// Like [`Self::open`], for a path that toolq chose (see [`super::default_log_path`]): creates its parent
    /// directories.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_default(path: &Path, mode: BeginMode, key: TaskKey<'_>) -> Result<Self, LogError> {
        Self::open_with(mode, key, |visit| LockedLog::open_default(path, visit))
    }

    fn open_with(
        mode: BeginMode,
        key: TaskKey<'_>,
        open: impl FnOnce(
            &mut dyn FnMut(&Record, u64) -> Result<(), Corruption>,
        ) -> Result<LockedLog, LogError>,
    ) -> Result<Self, LogError> {
        let resumes = mode == BeginMode::Resume;
        let follows_tasks = resumes || mode == BeginMode::NewTask && key.input_sha256.is_some();
        let mut tasks = TaskSelector::new(key.input_sha256);
        let mut planned = key.plan.map(TaskSelector::of_plan);
        let mut in_doubt_calls = InDoubtCalls::default();
        let mut kept_results = KeptResults::default();
        let log = open(&mut |record, end| {
            in_doubt_calls.apply_record(record)?;
            if follows_tasks {
                tasks.apply_record(record, end)?;
            }
            if key.keeps_results {
                kept_results.apply_record(record, end)?;
            }
            if let Some(planned) = &mut planned {
                planned.apply_record(record, end)?;
            }
            Ok(())
        })?;
        let planned = planned.filter(TaskSelector::has_found);
        let has_applied_plan = planned.is_some();
        let tasks = planned.unwrap_or(tasks);
        // A run that was killed is to be finished before another one is.
        let mut task = if resumes && log.is_unfinished() {
            tasks.select_last()
        } else {
            tasks.select_same_input()
        };
        task.history
            .set_source(log.path().to_owned(), log.clone_file()?);
        if key.keeps_results {
            kept_results.set_source(log.path().to_owned(), log.clone_file()?);
        }
        Ok(Self {
            log,
            task,
            resumes,
            has_applied_plan,
            in_doubt_calls,
            kept_results,
        })
    }

    /// Makes the records of the new session go to `replica`, which has the existing ones, before what they promise happens.
    /// The disk is then never waited for. Which calls that holds for is up to the session's [`SyncPolicy`].
    ///
    /// [`SyncPolicy`]: crate::SyncPolicy
    #[must_use]
    pub fn with_replica(mut self, replica: Box<dyn LogReplica>) -> Self {
        self.log.set_replica(replica);
        self
    }

    /// Returns an error if the last session has no end, for example because toolq was killed.
    ///
    /// # Errors
    /// [`LogError::Unfinished`].
    pub fn check_finished(&self) -> Result<(), LogError> {
        if self.log.is_unfinished() {
            return Err(LogError::Unfinished(self.path().to_owned()));
        }
        Ok(())
    }

    /// Returns whether a session of this log applied the plan of the new one. The history is then that of its task.
    pub fn has_applied_plan(&self) -> bool {
        self.has_applied_plan
    }

    /// Returns whether the history is that of a task with the same input.
    pub fn has_same_input(&self) -> bool {
        self.task.has_same_input
    }

    /// Returns whether the history lacks the beginning of its task, because another task came in between.
    pub fn is_history_partial(&self) -> bool {
        self.task.is_partial
    }

    /// Makes the new session begin a new task.
    pub fn begin_new_task(&mut self) {
        self.task = SelectedTask::default();
        self.resumes = false;
    }

    /// Returns the history, to repeat its results instead of beginning a session. The log stays locked.
    pub fn into_history(self) -> TaskHistory {
        self.task.history
    }

    /// Returns the calls that earlier runs left in doubt and that the new session won't settle. `None` if a task is
    /// resumed.
    pub fn in_doubt_calls(&self) -> Option<&InDoubtCalls> {
        (!self.resumes).then_some(&self.in_doubt_calls)
    }

    /// Returns what the log knows about the task to resume or to repeat: the latest with the same input, else the last one.
    pub fn history(&self) -> &TaskHistory {
        &self.task.history
    }

    /// Takes the results that the new session may use.
    pub fn take_kept_results(&mut self) -> KeptResults {
        std::mem::take(&mut self.kept_results)
    }

    /// Closes the log without a session. Its file is removed if it has no records.
    pub fn discard(self) {
        self.log.discard_if_empty();
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
        let history = self.resumes.then(|| Arc::new(self.task.history));
        self.log.begin_session(header, history, mask, clock)
    }
}
