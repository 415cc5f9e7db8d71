//! The calls that wait for an approval, and what people decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::LogError;
use crate::memory::claims::{ClaimsDir, Decided, EntryName, Made};
use crate::memory::store::{MemoryStore, RememberedIn, entries_error};

/// A call that waits for an approval, or was denied one and didn't run.
#[derive(Debug, Clone)]
pub struct WaitingCall {
    /// What it is approved or denied by.
    pub id: String,
    /// Its id, as recorded. Empty if its log is gone.
    pub tool_use_id: String,
    /// Its tool. Empty if its log is gone.
    pub tool: String,
    /// Its input as JSON, if that is there.
    pub input: Option<String>,
    /// When it was asked for, in milliseconds since 1970.
    pub asked_ms: Option<u64>,
    /// The log of the run that asked.
    pub log: PathBuf,
    /// Whether somebody has said no.
    pub is_denied: bool,
    name: EntryName,
    /// The number of the question, counted from 1.
    number: u32,
}

/// A call as its record says it.
#[derive(Debug, Clone)]
pub(crate) struct AskedCall {
    pub(crate) tool_use_id: String,
    pub(crate) tool: String,
    pub(crate) input: Option<String>,
    pub(crate) timestamp: u64,
}

/// Returns the calls of a memory that wait for an approval or were denied one, the latest last. `log` is the one that is the memory, if one is.
///
/// # Errors
/// The memory can't be read.
pub fn waiting_calls(place: &RememberedIn, log: &Path) -> Result<Vec<WaitingCall>, LogError> {
    let store = MemoryStore::for_people(place.clone(), log);
    let dir = store.entries_dir();
    let fail = |error| entries_error(dir, error);
    let Some(entries) = ClaimsDir::open(dir).map_err(fail)? else {
        return Ok(Vec::new());
    };
    // The last question is about what would run today.
    let mut asked: BTreeMap<String, (EntryName, u32)> = BTreeMap::new();
    for entry in entries.list().map_err(fail)? {
        let Some((name, suffix)) = EntryName::parse(&entry) else {
            continue;
        };
        let number = suffix.strip_prefix(".q").and_then(|text| text.parse().ok());
        if let Some(number) = number {
            let latest = asked.entry(name.to_string()).or_insert((name, number));
            latest.1 = latest.1.max(number);
        }
    }
    let mut waiting = Vec::new();
    for (name, number) in asked.into_values() {
        let decided = entries.read_decision(&name, number).map_err(fail)?;
        let is_approved = decided.as_ref().is_some_and(|decided| decided.approved);
        if !is_approved && !store.has_started(&name)? {
            let call = store.describe_question(&entries, name, number)?;
            let is_denied = decided.is_some();
            waiting.extend(call.map(|call| WaitingCall { is_denied, ..call }));
        }
    }
    waiting.sort_by_key(|call| call.asked_ms);
    Ok(waiting)
}

/// Records the decision about a call that waits. Only the first one counts, but a no can be followed by a yes.
///
/// # Errors
/// It can't be recorded.
pub fn decide_call(
    place: &RememberedIn,
    call: &WaitingCall,
    decided: &Decided,
) -> Result<Made<Decided>, LogError> {
    let store = MemoryStore::for_people(place.clone(), &call.log);
    let dir = store.entries_dir();
    let made = ClaimsDir::create(dir).and_then(|entries| {
        // What is said about a question must not outlive it.
        entries.sync()?;
        let number = match entries.read_question(&call.name, call.number)? {
            Some(question) if call.is_denied => entries.ask_again(&call.name, &question)?,
            _ => call.number,
        };
        let made = entries.decide(&call.name, number, decided)?;
        entries.sync()?;
        Ok(made)
    });
    made.map_err(|source| LogError::Io {
        path: dir.to_owned(),
        action: "written",
        source,
    })
}

impl MemoryStore {
    /// Returns whether an attempt was started, so that nobody waits for an approval any more.
    fn has_started(&self, name: &EntryName) -> Result<bool, LogError> {
        let known = self.known_calls(&name.key)?;
        let mut same = known.iter().filter(|call| call.instance == name.instance);
        Ok(same.any(|call| call.attempt >= name.attempt))
    }

    fn describe_question(
        &self,
        entries: &ClaimsDir,
        name: EntryName,
        number: u32,
    ) -> Result<Option<WaitingCall>, LogError> {
        let question = entries.read_question(&name, number);
        let Some(question) = question.map_err(|error| entries_error(entries.path(), error))? else {
            return Ok(None);
        };
        let read = self.with_index(&question.log, |index| Ok(index.read_call(question.offset)))?;
        let call = read.flatten();
        let (tool_use_id, tool, input, asked_ms) = match call {
            Some(call) => (
                call.tool_use_id,
                call.tool,
                call.input,
                Some(call.timestamp),
            ),
            None => Default::default(),
        };
        Ok(Some(WaitingCall {
            id: name.settle_id(&tool_use_id),
            tool_use_id,
            tool,
            input,
            asked_ms,
            log: self.log_path(&question.log),
            is_denied: false,
            name,
            number,
        }))
    }
}
