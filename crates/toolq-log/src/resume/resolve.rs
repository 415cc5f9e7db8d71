//! Resolves a call in doubt: records what a user found out about it, so that the next resume knows.

use std::path::Path;

use crate::call_log::LoggedCallState;
use crate::error::LogError;
use crate::open::LockedLog;
use crate::open::lock;
use crate::read::Corruption;
use crate::records::{
    Record, RecordKind, RecoveredRecord, ResolveRecord, SessionRecord, recorded_text,
};
use crate::resume::history::{CallPosition, TaskHistory};
use crate::resume::logged_call::LoggedCall;
use crate::write::Durability;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::text::truncate_to_columns;

/// How many calls a message lists as candidates.
const MAX_LISTED_CALLS: usize = 5;
/// Width of an id or a name in that list, in columns.
const MAX_NAME_COLUMNS: usize = 60;

/// What a user found out about a call in doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The call did its work, and this is its result from now on.
    Done {
        /// What the model reads.
        result: String,
        /// Whether the result is an error.
        is_error: bool,
    },
    /// The call had no effect: the next resume runs it.
    NotDone,
}

impl Resolution {
    /// Returns it as it is recorded, with secrets masked.
    #[must_use]
    pub fn masked(&self, mask: &Mask) -> Self {
        match self {
            Self::Done { result, is_error } => Self::Done {
                result: mask.apply(result).into_owned(),
                is_error: *is_error,
            },
            Self::NotDone => Self::NotDone,
        }
    }
}

/// A call that was resolved.
#[derive(Debug)]
pub struct ResolvedCall {
    /// The tool of the call.
    pub tool_name: String,
    /// Torn ends of the log that were set aside first.
    pub recovered: Vec<RecoveredRecord>,
    /// Whether `--resume` continues the run of the call. It can't if another run was begun after it.
    pub can_resume: bool,
}

/// Why a call can't be resolved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages document the variants")]
pub enum ResolveError {
    #[error(transparent)]
    Log(#[from] LogError),
    /// With the calls that can be resolved.
    #[error("no call of the input has the id {0} in the session log")]
    UnknownCall(String, Vec<String>),
    /// With the calls that have the id, by the ids of their records.
    #[error("more than one call has the id {0}")]
    AmbiguousId(String, Vec<String>),
    #[error("the call {0} {1}, so there is nothing to resolve")]
    NotInDoubt(String, &'static str),
}

/// Records in the log at `path` what happened to the call `id`, which is its `tool_use_id` or the id of its record.
/// `note` is the user's reason.
///
/// # Errors
/// No call has the id, several do, or the call isn't in doubt; or the log can't be used.
pub fn resolve_call(
    path: &Path,
    id: &str,
    resolution: &Resolution,
    note: Option<&str>,
    mask: &Mask,
    clock: Clock,
) -> Result<ResolvedCall, ResolveError> {
    // If the log doesn't exist, fail instead of creating an empty one.
    drop(lock::open_owned(path)?);
    let mut tasks = TaskHistories(vec![TaskHistory::default()]);
    let log = LockedLog::open(path, |record, end| tasks.apply_record(record, end))?;
    let call = tasks.find_resolvable_call(id, mask)?;
    let (result, is_error) = match resolution {
        Resolution::Done { result, is_error } => (Some(mask.apply(result)), Some(*is_error)),
        Resolution::NotDone => (None, None),
    };
    let note = note.map(|note| mask.apply(note));
    let fields = ResolveRecord {
        tool_use_id: (&*call.tool_use_id).into(),
        tool_name: (&*call.tool_name).into(),
        done: result.is_some(),
        is_error,
        note,
    };
    let (mut journal, recovered) = log.into_journal(clock)?;
    let written = journal
        .append(&RecordKind::Resolve, Some(call.record_id), &result, &fields)
        .and_then(|_| journal.commit(Durability::Immediate));
    written.map_err(|source| LogError::Io {
        path: path.to_owned(),
        action: "written",
        source,
    })?;
    Ok(ResolvedCall {
        tool_name: call.tool_name.to_string(),
        recovered,
        can_resume: tasks.is_resumable(call),
    })
}

/// The history of each task in a log.
struct TaskHistories(Vec<TaskHistory>);

impl TaskHistories {
    fn apply_record(&mut self, record: &Record, end: u64) -> Result<(), Corruption> {
        if record.kind == RecordKind::Session {
            let session: SessionRecord = record.parse_metadata()?;
            let is_superseded =
                |task: &TaskHistory| !task.is_empty() && task.is_superseded_by(&session);
            if self.0.last().is_some_and(is_superseded) {
                self.0
                    .last_mut()
                    .into_iter()
                    .for_each(TaskHistory::clear_answer_cache);
                self.0.push(TaskHistory::default());
            }
        }
        // Only a `resolve` may still affect a task before the last one.
        let first_affected = match record.kind {
            RecordKind::Resolve => 0,
            _ => self.0.len() - 1,
        };
        let mut affected = self.0[first_affected..].iter_mut();
        affected.try_for_each(|task| task.apply_record(record, end))
    }

    /// Returns whether a call belongs to the last task, the only one that can be resumed.
    fn is_resumable(&self, call: &LoggedCall) -> bool {
        let last = self.0.last();
        last.is_some_and(|task| {
            task.positions()
                .any(|(_, other)| other.record_id == call.record_id)
        })
    }

    /// Lists the calls that can be resolved, in order, each as `toolu_01 (pay)`, or by [`call_label`] if it shares its
    /// id with another.
    fn list_resolvable_calls(&self) -> Vec<String> {
        let calls = self.0.iter().flat_map(TaskHistory::positions);
        let mut resolvable: Vec<_> = calls
            .filter(|(_, entry)| entry.log.is_resolvable())
            .collect();
        resolvable.sort_by_key(|(position, entry)| (*position, entry.record_id));
        let label = |call: &(CallPosition, &LoggedCall)| {
            let entry = call.1;
            let has_same_id = |other: &LoggedCall| {
                other.tool_use_id == entry.tool_use_id && other.record_id != entry.record_id
            };
            if resolvable.iter().any(|(_, other)| has_same_id(other)) {
                return call_label(call);
            }
            let (id, tool) = (
                truncate_to_columns(&entry.tool_use_id, MAX_NAME_COLUMNS),
                truncate_to_columns(&entry.tool_name, MAX_NAME_COLUMNS),
            );
            format!("{id} ({tool})")
        };
        limit_labels(resolvable.iter().map(label))
    }

    /// Returns the one call with this id that can be resolved.
    fn find_resolvable_call(&self, id: &str, mask: &Mask) -> Result<&LoggedCall, ResolveError> {
        let logged_id = recorded_text(id, mask);
        let has_id = |entry: &LoggedCall| {
            [id, &*logged_id].contains(&&*entry.tool_use_id) || entry.record_id.to_string() == id
        };
        let mut matching: Vec<(CallPosition, &LoggedCall)> = self
            .0
            .iter()
            .flat_map(TaskHistory::positions)
            .filter(|(_, entry)| has_id(entry))
            .collect();
        matching.sort_by_key(|(position, entry)| (*position, entry.record_id));
        let resolvable: Vec<_> = matching
            .iter()
            .filter(|(_, entry)| entry.log.is_resolvable())
            .collect();
        match (resolvable.as_slice(), matching.first()) {
            ([(_, entry)], _) => Ok(entry),
            ([], None) => Err(ResolveError::UnknownCall(
                id.to_owned(),
                self.list_resolvable_calls(),
            )),
            ([], Some((_, entry))) => Err(ResolveError::NotInDoubt(
                id.to_owned(),
                why_not_in_doubt(entry.log.state()),
            )),
            (several, _) => Err(ResolveError::AmbiguousId(
                id.to_owned(),
                limit_labels(several.iter().map(|choice| call_label(choice))),
            )),
        }
    }
}

fn why_not_in_doubt(state: LoggedCallState) -> &'static str {
    match state {
        LoggedCallState::Requested => "was never started",
        LoggedCallState::Done => "is already resolved",
        _ => "already has its result",
    }
}

/// Formats a call as `0193… (turn 0, call 1, pay)`.
fn call_label((call_position, call): &(CallPosition, &LoggedCall)) -> String {
    let CallPosition { turn, position } = call_position;
    let tool = truncate_to_columns(&call.tool_name, MAX_NAME_COLUMNS);
    format!("{} (turn {turn}, call {position}, {tool})", call.record_id)
}

/// Keeps the first few labels and says how many more there are.
fn limit_labels(labels: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = labels.len().saturating_sub(MAX_LISTED_CALLS);
    let mut clipped: Vec<String> = labels.take(MAX_LISTED_CALLS).collect();
    clipped.extend((more > 0).then(|| format!("{more} more")));
    clipped
}
