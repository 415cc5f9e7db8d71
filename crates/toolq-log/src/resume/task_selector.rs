//! Chooses the task of a log that a new session continues or repeats: the latest one with the same input, else the last.

use std::mem;

use crate::read::Corruption;
use crate::records::{Record, RecordKind, SessionRecord};
use crate::resume::TaskHistory;

/// What is known of a new session before it begins, to find the task that it continues or repeats.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskKey<'a> {
    /// The digest of its input, if that is known.
    pub input_sha256: Option<&'a str>,
    /// The id of the plan that it applies. A task that applied this plan comes before those with the same input.
    pub plan: Option<&'a str>,
    /// Whether it may use results of earlier runs, regardless of their input.
    pub keeps_results: bool,
}

/// Follows the tasks of a log, record by record.
#[derive(Debug, Default)]
pub(crate) struct TaskSelector {
    /// What a session of the sought task has.
    sought: Option<SoughtTask>,
    /// The task that the records belong to.
    current: TaskHistory,
    /// A session of the current task had the same input.
    is_same_input: bool,
    /// The first records of the current task were dropped: another task came in between.
    is_partial: bool,
    /// The latest other task with the same input.
    same_input: Option<TaskHistory>,
}

#[derive(Debug)]
enum SoughtTask {
    /// An input with this digest.
    Input(String),
    /// The plan with this id.
    Plan(String),
}

impl SoughtTask {
    fn matches(&self, session: &SessionRecord) -> bool {
        match self {
            Self::Input(digest) => session.input_sha256.as_ref() == Some(digest),
            Self::Plan(id) => session.plan.as_ref() == Some(id),
        }
    }
}

/// The chosen task.
#[derive(Debug, Default)]
pub(crate) struct SelectedTask {
    pub(crate) history: TaskHistory,
    pub(crate) has_same_input: bool,
    /// What the history says isn't all that the log has.
    pub(crate) is_partial: bool,
}

impl TaskSelector {
    /// Seeks the task with the input that has this digest.
    pub(crate) fn new(input_sha256: Option<&str>) -> Self {
        Self {
            sought: input_sha256.map(|digest| SoughtTask::Input(digest.to_owned())),
            ..Self::default()
        }
    }

    /// Seeks the task that applied the plan with this id.
    pub(crate) fn of_plan(id: &str) -> Self {
        Self {
            sought: Some(SoughtTask::Plan(id.to_owned())),
            ..Self::default()
        }
    }

    /// Returns whether a sought task was found.
    pub(crate) fn has_found(&self) -> bool {
        self.is_same_input || self.same_input.is_some()
    }

    /// Applies the next record. `end` is the byte offset of its end in the file.
    ///
    /// # Errors
    /// Its metadata doesn't fit its type.
    pub(crate) fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        if record.kind == RecordKind::Session {
            let session: SessionRecord = record.parse_metadata()?;
            if self.current.is_superseded_by(&session) {
                self.switch_task(&session);
            }
            let sought = self.sought.as_ref();
            self.is_same_input |= sought.is_some_and(|sought| sought.matches(&session));
        }
        self.current.apply_record(record, end)
    }

    /// Continues with the task of `session`.
    fn switch_task(&mut self, session: &SessionRecord) {
        let previous = mem::take(&mut self.current);
        if self.is_same_input && !self.is_partial {
            self.same_input = Some(previous);
        }
        let is_kept =
            |kept: &TaskHistory| session.resumes.is_some() && kept.task_id() == session.resumes;
        self.is_same_input = self.same_input.as_ref().is_some_and(is_kept);
        self.is_partial = session.resumes.is_some() && !self.is_same_input;
        if self.is_same_input {
            self.current = self.same_input.take().unwrap_or_default();
        }
    }

    /// Returns the latest task with the same input, else the last one.
    pub(crate) fn select_same_input(self) -> SelectedTask {
        match self.same_input {
            Some(history) if !self.is_same_input => SelectedTask {
                history,
                has_same_input: true,
                is_partial: false,
            },
            _ => self.select_last(),
        }
    }

    /// Returns the last task.
    pub(crate) fn select_last(self) -> SelectedTask {
        SelectedTask {
            history: self.current,
            has_same_input: self.is_same_input,
            is_partial: self.is_partial,
        }
    }
}
