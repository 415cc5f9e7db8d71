//! The calls in doubt of a memory, and what people say about them.

use std::fmt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::claims::{EntryName, Settlement};
use crate::error::LogError;
use crate::identity::MemoryKey;
use crate::memory::RememberedIn;
use crate::memory::decision::{Asker, Decision, decide};
use crate::memory::known_call::KnownCall;
use crate::memory::store::MemoryStore;
use toolq_core::text::{escape, truncate_to_columns};
use toolq_core::types::is_random_id;

/// How many digits of a key name a call for people, unless its id does.
const SHOWN_DIGITS: usize = 12;
/// How much of an earlier result a message shows, in columns.
const MAX_RESULT_COLUMNS: usize = 60;
/// How many digits of a key are the least that people may name.
const MIN_DIGITS: usize = 8;

/// A call in doubt.
#[derive(Debug, Clone)]
pub struct CallInDoubt {
    /// What it is settled by.
    pub settle_id: String,
    /// Its id, as recorded. Empty if its log is gone.
    pub tool_use_id: String,
    /// Its tool. Empty if its log is gone.
    pub tool: String,
    /// Its input as JSON, if that is there.
    pub input: Option<String>,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// The log of the run that started it.
    pub log: PathBuf,
    pub(crate) name: EntryName,
    /// Its `tool_call`, if its log is there.
    pub(crate) record: Option<Uuid>,
}

/// Why a call can't be settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The memory can't be used.
    #[error(transparent)]
    Log(Box<LogError>),
    /// No call has this id. With those that are in doubt.
    #[error("no call {0} is in doubt")]
    Unknown(String, Vec<String>),
    /// Several calls in doubt have it. With what tells them apart.
    #[error("several calls {0} are in doubt")]
    Ambiguous(String, Vec<String>),
    /// A run is at it.
    #[error("{0} isn't in doubt: a run is at it")]
    Running(String),
    /// It has a result, or it surely did nothing.
    #[error("{0} isn't in doubt: its log says what became of it")]
    NotInDoubt(String),
    /// Somebody has settled it before.
    #[error("{id} was settled already, as {earlier}")]
    Settled {
        /// What was asked for.
        id: String,
        /// What was said before.
        earlier: Box<Settlement>,
    },
}

impl From<LogError> for SettleError {
    fn from(error: LogError) -> Self {
        Self::Log(Box::new(error))
    }
}

impl fmt::Display for Settlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.done, &self.result) {
            (false, _) => f.write_str("not done")?,
            (true, None) => f.write_str("done")?,
            (true, Some(result)) => {
                let text = result
                    .as_str()
                    .map_or_else(|| result.to_string(), str::to_owned);
                let result = truncate_to_columns(&text, MAX_RESULT_COLUMNS);
                write!(f, "done with the result {:?}", escape(&result))?;
            }
        }
        if self.by == "probe" {
            f.write_str(", by its probe")?;
        }
        match &self.note {
            Some(note) => write!(f, " ({})", escape(note)),
            None => Ok(()),
        }
    }
}

/// Returns the calls in doubt that runs in a log started.
///
/// # Errors
/// The log or the memory can't be read.
pub fn calls_in_doubt(log: &Path, place: &RememberedIn) -> Result<Vec<CallInDoubt>, LogError> {
    let store = MemoryStore::for_people(place.clone(), log);
    let mut found = Vec::new();
    for key in store.keys_in_log(log, |_| true)? {
        let calls = store.known_calls(&key)?.into_iter();
        let of_log = calls.filter(|call| store.log_path(&call.log) == log && is_in_doubt(call));
        found.extend(of_log.map(|call| store.describe(&key, &call)));
    }
    found.sort_by_key(|call| call.started_ms);
    Ok(found)
}

/// A call of a log that was in doubt, and what was said about it since.
#[derive(Debug)]
pub struct SettledCall {
    /// Its tool.
    pub tool: String,
    /// Its id, as recorded.
    pub tool_use_id: String,
    /// What was said.
    pub settlement: Settlement,
}

/// Returns the calls of a log that were in doubt and about which something was said since, in that order. A log that is its own
/// memory has records of that, so it has none here.
///
/// # Errors
/// The log or the memory can't be read.
pub fn settled_calls(log: &Path, place: &RememberedIn) -> Result<Vec<SettledCall>, LogError> {
    let store = MemoryStore::for_people(place.clone(), log);
    let entries = store.open_entries()?.filter(|_| !store.is_own_log());
    let Some(entries) = entries else {
        return Ok(Vec::new());
    };
    let settled = store.with_index(&store.log_name(log), |index| {
        let mut settled = Vec::new();
        for (key, call) in index.update()?.doubts() {
            let read = entries.read_only_settlement(key);
            let read = read.map_err(LogError::io(entries.path(), "read"))?;
            settled.extend(read.map(|settlement| SettledCall {
                tool: call.facts.tool.clone(),
                tool_use_id: call.facts.tool_use_id.clone(),
                settlement,
            }));
        }
        Ok(settled)
    })?;
    let mut settled = settled.unwrap_or_default();
    settled.sort_by_key(|call| call.settlement.timestamp);
    Ok(settled)
}

/// Finds the call in doubt that `id` names.
pub(crate) fn find_call(
    id: &str,
    logs: &[PathBuf],
    place: &RememberedIn,
) -> Result<(MemoryStore, CallInDoubt), SettleError> {
    let log = logs.first().map_or(Path::new(""), PathBuf::as_path);
    let store = MemoryStore::for_people(place.clone(), log);
    if store.is_own_log() {
        // A log that is the memory has to be there, and whole.
        let read = store.with_index(&store.own_log, |index| index.update().map(drop))?;
        read.ok_or_else(|| LogError::NotFound(log.to_owned()))?;
    }
    let mut candidates = store.calls_by_key(id)?;
    if candidates.is_empty() {
        candidates = store.calls_by_id(id, logs);
    }
    let mut refusal = None;
    let mut in_doubt = Vec::new();
    for (key, call) in &candidates {
        match settleable(call, id) {
            Ok(()) => in_doubt.push(store.describe(key, call)),
            Err(why) => refusal = Some(why),
        }
    }
    in_doubt.sort_by_key(|call| call.started_ms);
    match (in_doubt.len(), in_doubt.pop()) {
        (1, Some(call)) => Ok((store, call)),
        (0, _) | (_, None) => Err(match refusal {
            Some(refusal) => refusal,
            None => SettleError::Unknown(id.to_owned(), store.settle_ids(logs)),
        }),
        (_, Some(last)) => {
            let ids = in_doubt
                .into_iter()
                .chain([last])
                .map(|call| call.name.shown());
            Err(SettleError::Ambiguous(id.to_owned(), ids.collect()))
        }
    }
}

fn is_in_doubt(call: &KnownCall) -> bool {
    decision_about(call, false) == Decision::InDoubt
}

/// Without a settlement, a call that timed out may run again where its tool is `once`, so people may settle it.
fn settleable(call: &KnownCall, id: &str) -> Result<(), SettleError> {
    let id = id.to_owned();
    match (decision_about(call, true), &call.settlement) {
        (_, Some(settlement)) => Err(SettleError::Settled {
            id,
            earlier: Box::new(settlement.clone()),
        }),
        (Decision::InDoubt, None) => Ok(()),
        (Decision::Wait | Decision::IsRunning, None) => Err(SettleError::Running(id)),
        _ => Err(SettleError::NotInDoubt(id)),
    }
}

fn decision_about(call: &KnownCall, is_once: bool) -> Decision {
    let asker = Asker {
        is_once,
        ..Asker::default()
    };
    decide(call.latest_attempt().as_ref(), asker)
}

impl EntryName {
    /// Returns what names the call for people.
    pub(crate) fn shown(&self) -> String {
        let digits = &self.key.to_string()[..SHOWN_DIGITS];
        match self.instance {
            1 => digits.to_owned(),
            instance => format!("{digits}.{instance}"),
        }
    }

    /// Returns what names the call for people whose id is this: the id, if no other call can have it.
    pub(crate) fn settle_id(&self, tool_use_id: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let names_call = self.instance == 1
            && self.key == MemoryKey::of_random_id(tool_use_id)
            && !tool_use_id.starts_with('-')
            && tool_use_id.chars().all(is_word);
        if names_call {
            tool_use_id.to_owned()
        } else {
            self.shown()
        }
    }
}

impl MemoryStore {
    /// Returns the keys of the calls in a log that were started under an id which `is_asked`.
    fn keys_in_log(
        &self,
        log: &Path,
        is_asked: impl Fn(&str) -> bool,
    ) -> Result<Vec<MemoryKey>, LogError> {
        let name = self.log_name(log);
        let keys = self.with_index(&name, |index| Ok(index.update()?.keys_of(&is_asked)))?;
        Ok(keys.unwrap_or_default())
    }

    /// Returns the calls whose key begins with these digits, or is that of this random id.
    fn calls_by_key(&self, id: &str) -> Result<Vec<(MemoryKey, KnownCall)>, LogError> {
        let (digits, instance) = match id.split_once('.') {
            Some((digits, instance)) => (digits, instance.parse().ok()),
            None => (id, None),
        };
        let is_key =
            digits.len() >= MIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let prefix = match is_key {
            true => digits.to_ascii_lowercase(),
            false if is_random_id(id, "") => MemoryKey::of_random_id(id).to_string(),
            false => return Ok(Vec::new()),
        };
        let instance = instance.or(is_key.then_some(1));
        let mut found = Vec::new();
        for key in self.keys_with_prefix(&prefix)? {
            let calls = self.known_calls(&key)?.into_iter();
            let asked =
                calls.filter(|call| instance.is_none_or(|instance| instance == call.instance));
            found.extend(asked.map(|call| (key.clone(), call)));
        }
        Ok(found)
    }

    fn keys_with_prefix(&self, prefix: &str) -> Result<Vec<MemoryKey>, LogError> {
        if let RememberedIn::Log { .. } = &self.place {
            let index =
                |index: &mut crate::memory::LogIndex| Ok(index.update()?.keys_of(&|_| true));
            let mut keys = self.with_index(&self.own_log, index)?.unwrap_or_default();
            keys.retain(|key| key.to_string().starts_with(prefix));
            return Ok(keys);
        }
        if let Some(key) = MemoryKey::parse(prefix) {
            return Ok(vec![key]);
        }
        let Some(entries) = self.open_entries()? else {
            return Ok(Vec::new());
        };
        let names = entries
            .list()
            .map_err(LogError::io(entries.path(), "read"))?;
        let names = names.into_iter();
        let named = names.filter(|name| name.starts_with(prefix));
        let keys = named.filter_map(|name| Some(EntryName::parse(&name)?.0.key));
        let mut keys: Vec<MemoryKey> = keys.collect();
        keys.dedup();
        Ok(keys)
    }

    /// Returns the calls of these logs that were started under this id. What can't be read has none.
    fn calls_by_id(&self, id: &str, logs: &[PathBuf]) -> Vec<(MemoryKey, KnownCall)> {
        let mut found: Vec<(MemoryKey, KnownCall)> = Vec::new();
        for log in logs {
            for key in self
                .keys_in_log(log, |other| other == id)
                .unwrap_or_default()
            {
                let calls = self.known_calls(&key).unwrap_or_default().into_iter();
                let asked = calls.filter(|call| call.tool_use_id() == Some(id));
                let new = asked.filter(|call| {
                    let is_known = |(other, known): &(MemoryKey, KnownCall)| {
                        *other == key && known.instance == call.instance
                    };
                    !found.iter().any(is_known)
                });
                let new: Vec<_> = new.map(|call| (key.clone(), call)).collect();
                found.extend(new);
            }
        }
        found
    }

    fn settle_ids(&self, logs: &[PathBuf]) -> Vec<String> {
        let in_logs = logs
            .iter()
            .flat_map(|log| calls_in_doubt(log, &self.place).unwrap_or_default());
        in_logs.map(|call| call.settle_id).collect()
    }

    fn describe(&self, key: &MemoryKey, call: &KnownCall) -> CallInDoubt {
        let name = EntryName {
            key: key.clone(),
            instance: call.instance,
            attempt: call.attempt,
        };
        let facts = call.facts.as_ref();
        let tool_use_id = call.tool_use_id().unwrap_or_default().to_owned();
        let input =
            facts.map(|facts| self.with_index(&call.log, |index| Ok(index.read_input(facts.call))));
        CallInDoubt {
            settle_id: name.settle_id(&tool_use_id),
            tool: facts.map(|facts| facts.tool.clone()).unwrap_or_default(),
            input: input.and_then(|read| read.ok().flatten().flatten()),
            started_ms: facts.map(|facts| facts.started_ms),
            log: self.log_path(&call.log),
            record: facts.map(|facts| facts.record),
            tool_use_id,
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_id_only_if_no_other_can_have_it() {
        let id = "toolu_01A09q90qw90lq917835lq9";
        let of_id = EntryName {
            key: MemoryKey::of_random_id(id),
            instance: 1,
            attempt: 1,
        };
        assert_eq!(of_id.settle_id(id), id);
        let digits = of_id.key.to_string()[..12].to_owned();
        assert_eq!(of_id.settle_id("call_1"), digits);
        let second = EntryName {
            instance: 2,
            ..of_id
        };
        assert_eq!(second.settle_id(id), format!("{digits}.2"));
    }
}
