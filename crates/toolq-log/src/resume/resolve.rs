//! A call in doubt, and what somebody found out about it: one record more, and the next resume knows.

use std::path::Path;

use crate::error::LogError;
use crate::open::lock;
use crate::open::{Log, RecoveredFields};
use crate::read::Damage;
use crate::records::{Brief, Kind, Record, ResolveFields};
use crate::resume::history::{History, Place};
use crate::resume::logged_call::Entry;
use crate::resume::policy::State;
use crate::write::Durable;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::text::cut;

/// Calls that are named where one of them is meant.
const LISTED: usize = 5;
/// Columns of an id or a name there.
const SHOWN: usize = 60;

/// What somebody found out.
#[derive(Debug, Clone)]
pub enum Resolution {
    /// The call did its work, and this is its result from now on.
    Done {
        /// What the model reads.
        result: String,
        /// Whether it is told of an error.
        is_error: bool,
    },
    /// The call did nothing: the next resume runs it.
    NotDone,
}

/// A call that was resolved.
#[derive(Debug)]
pub struct Resolved {
    /// Its tool.
    pub tool: String,
    /// Torn ends of the log that were set aside before.
    pub recovered: Vec<RecoveredFields>,
    /// It is one of the run that `--resume` goes on with; behind others another run was begun.
    pub can_resume: bool,
}

/// Why a call can't be resolved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ResolveError {
    #[error(transparent)]
    Log(#[from] LogError),
    /// With what may be resolved.
    #[error("the session log has no call {0}")]
    Unknown(String, Vec<String>),
    /// With those that are meant, by the ids of their records.
    #[error("more than one call has the id {0}")]
    Ambiguous(String, Vec<String>),
    #[error("the call {0} {1}, so there is nothing to resolve")]
    Settled(String, &'static str),
}

/// Writes into the log at `path` what became of the call `id`: its `tool_use_id`, or the id of its record. `note` says
/// why somebody thinks so.
///
/// # Errors
/// There is no such call, more than one, or none that is in doubt; or the log can't be used.
pub fn resolve(
    path: &Path,
    id: &str,
    resolution: &Resolution,
    note: Option<&str>,
    mask: &Mask,
    clock: Clock,
) -> Result<Resolved, ResolveError> {
    // Who names no log wants to hear so, and no empty one.
    drop(lock::open_own(path)?);
    let mut tasks = Tasks(vec![History::default()]);
    let log = Log::open(path, |record, end| tasks.take(record, end))?;
    let entry = tasks.find(id, mask)?;
    let (result, is_error) = match resolution {
        Resolution::Done { result, is_error } => (Some(mask.text(result)), Some(*is_error)),
        Resolution::NotDone => (None, None),
    };
    let note = note.map(|note| mask.text(note));
    let fields = ResolveFields {
        tool_use_id: &entry.tool_use_id,
        tool_name: &entry.tool,
        done: result.is_some(),
        is_error,
        note: note.as_deref(),
    };
    let (mut journal, recovered) = log.journal(clock)?;
    let written = journal
        .add(&Kind::Resolve, Some(entry.record), &result, &fields)
        .and_then(|_| journal.commit(Durable::Now));
    written.map_err(|source| LogError::Io {
        path: path.to_owned(),
        doing: "written",
        source,
    })?;
    Ok(Resolved {
        tool: entry.tool.to_string(),
        recovered,
        can_resume: tasks.can_resume(entry),
    })
}

/// What a log says of each of its tasks.
struct Tasks(Vec<History>);

impl Tasks {
    fn take(&mut self, record: &Record, end: u64) -> Result<(), Damage> {
        if record.kind == Kind::Session {
            let session = record.metadata()?;
            let is_over = |task: &History| !task.is_empty() && task.is_over_by(&session);
            if self.0.last().is_some_and(is_over) {
                self.0
                    .last_mut()
                    .into_iter()
                    .for_each(History::forget_answers);
                self.0.push(History::default());
            }
        }
        // Of a task before the last nothing else comes any more.
        let first = match record.kind {
            Kind::Resolve => 0,
            _ => self.0.len() - 1,
        };
        let mut told = self.0[first..].iter_mut();
        told.try_for_each(|task| task.take(record, end))
    }

    /// Whether a call is one of the last task, the one that can be resumed.
    fn can_resume(&self, entry: &Entry) -> bool {
        let last = self.0.last();
        last.is_some_and(|task| {
            task.entries()
                .any(|(_, other)| other.record == entry.record)
        })
    }

    /// `toolu_01 (pay)` of each call that may be resolved, in their order; where several have that id, that of the record.
    fn open_calls(&self) -> Vec<String> {
        let entries = self.0.iter().flat_map(History::entries);
        let mut open: Vec<_> = entries.filter(|(_, entry)| entry.is_open()).collect();
        open.sort_by_key(|(place, entry)| (*place, entry.record));
        let words = |call: &(Place, &Entry)| {
            let entry = call.1;
            let is_twin = |other: &Entry| {
                other.tool_use_id == entry.tool_use_id && other.record != entry.record
            };
            if open.iter().any(|(_, other)| is_twin(other)) {
                return described(call);
            }
            let (id, tool) = (cut(&entry.tool_use_id, SHOWN), cut(&entry.tool, SHOWN));
            format!("{id} ({tool})")
        };
        clipped(open.iter().map(words))
    }

    /// The one call in doubt that is meant.
    fn find(&self, id: &str, mask: &Mask) -> Result<&Entry, ResolveError> {
        let in_log = Brief(id, mask);
        let is_meant = |entry: &Entry| {
            [id, &in_log.text()].contains(&&*entry.tool_use_id) || entry.record.to_string() == id
        };
        let mut meant: Vec<(Place, &Entry)> = self
            .0
            .iter()
            .flat_map(History::entries)
            .filter(|(_, entry)| is_meant(entry))
            .collect();
        meant.sort_by_key(|(place, entry)| (*place, entry.record));
        let open: Vec<_> = meant.iter().filter(|(_, entry)| entry.is_open()).collect();
        match (open.as_slice(), meant.first()) {
            ([(_, entry)], _) => Ok(entry),
            ([], None) => Err(ResolveError::Unknown(id.to_owned(), self.open_calls())),
            ([], Some((_, entry))) => {
                Err(ResolveError::Settled(id.to_owned(), settled(entry.state)))
            }
            (several, _) => Err(ResolveError::Ambiguous(
                id.to_owned(),
                clipped(several.iter().map(|choice| described(choice))),
            )),
        }
    }
}

fn settled(state: State) -> &'static str {
    match state {
        State::Asked => "was never started",
        State::Done => "was resolved already",
        _ => "has its result",
    }
}

/// `0193… (turn 0, call 1, pay)`; of an agent's call `0193… (turn 0, call 1 of the agent of 0192…, pay)`
fn described((place, entry): &(Place, &Entry)) -> String {
    let Place {
        within,
        turn,
        position,
    } = place;
    let agent = within.map_or_else(String::new, |agent| format!(" of the agent of {agent}"));
    let tool = cut(&entry.tool, SHOWN);
    format!(
        "{} (turn {turn}, call {position}{agent}, {tool})",
        entry.record
    )
}

/// The first few, and how many more there are.
fn clipped(words: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = words.len().saturating_sub(LISTED);
    let mut clipped: Vec<String> = words.take(LISTED).collect();
    clipped.extend((more > 0).then(|| format!("{more} more")));
    clipped
}
