//! A call in doubt, and what somebody found out about it: one record more, and the next resume knows.

use std::path::Path;

use crate::model::{Clock, Mask, cut};

use super::decide::State;
use super::fields::{Brief, ResolveFields};
use super::history::{Entry, History, Place};
use super::journal::Durable;
use super::recovery::RecoveredFields;
use super::{Kind, Log, LogError, claim};

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

/// What was resolved.
#[derive(Debug)]
pub struct Resolved {
    /// The tool of the call.
    pub tool: String,
    /// Torn ends of the log that were set aside before.
    pub recovered: Vec<RecoveredFields>,
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
    drop(claim::open_own(path)?);
    let mut history = History::default();
    let log = Log::open(path, |record, end| history.take(record, end))?;
    let entry = find(&history, id, mask)?;
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
    })
}

/// The one call in doubt that is meant.
fn find<'h>(history: &'h History, id: &str, mask: &Mask) -> Result<&'h Entry, ResolveError> {
    let in_log = Brief(id, mask);
    let is_meant = |entry: &Entry| {
        [id, &in_log.text()].contains(&&*entry.tool_use_id) || entry.record.to_string() == id
    };
    let mut meant: Vec<(Place, &Entry)> = history
        .entries()
        .filter(|(_, entry)| is_meant(entry))
        .collect();
    meant.sort_by_key(|(place, _)| *place);
    let open: Vec<_> = meant.iter().filter(|(_, entry)| entry.is_open()).collect();
    match (open.as_slice(), meant.first()) {
        ([(_, entry)], _) => Ok(entry),
        ([], None) => Err(ResolveError::Unknown(id.to_owned(), open_calls(history))),
        ([], Some((_, entry))) => Err(ResolveError::Settled(id.to_owned(), settled(entry.state))),
        (several, _) => Err(ResolveError::Ambiguous(
            id.to_owned(),
            clipped(several.iter().map(|choice| described(choice))),
        )),
    }
}

fn settled(state: State) -> &'static str {
    match state {
        State::Asked => "was never started",
        State::Done => "was resolved already",
        _ => "has its result",
    }
}

/// `0193… (turn 0, call 1, pay)`
fn described(((turn, position), entry): &(Place, &Entry)) -> String {
    let tool = cut(&entry.tool, SHOWN);
    format!("{} (turn {turn}, call {position}, {tool})", entry.record)
}

/// `toolu_01 (pay)` of each call that may be resolved, in their order; where several have that id, that of the record.
fn open_calls(history: &History) -> Vec<String> {
    let entries = history.entries();
    let mut open: Vec<_> = entries.filter(|(_, entry)| entry.is_open()).collect();
    open.sort_by_key(|(place, _)| *place);
    let is_other = |one: &Entry, other: &Entry| one.record != other.record;
    let words = |call: &(Place, &Entry)| {
        let entry = call.1;
        let mut others = open.iter().filter(|(_, other)| is_other(entry, other));
        if others.any(|(_, other)| other.tool_use_id == entry.tool_use_id) {
            return described(call);
        }
        let (id, tool) = (cut(&entry.tool_use_id, SHOWN), cut(&entry.tool, SHOWN));
        format!("{id} ({tool})")
    };
    clipped(open.iter().map(words))
}

/// The first few, and how many more there are.
fn clipped(words: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = words.len().saturating_sub(LISTED);
    let mut clipped: Vec<String> = words.take(LISTED).collect();
    clipped.extend((more > 0).then(|| format!("{more} more")));
    clipped
}
