//! The log of a turn: read from the stream into a file, where it is resumed like any other. Headers of messages name the files beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::HeaderMap;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::lease::TurnHolder;
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, RETRY_INTERVAL, publish_after};
use crate::record_publisher::{LogFiles, StoredRecords, write_private};
use crate::status::CallInDoubt;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::Exit;
use toolq_core::json::expect_json;
use toolq_core::types::{CallRef, EmitError, Event, EventSink};
use toolq_log::{LogError, SessionLog};

/// A log in a directory of its own, which is removed with it.
pub(super) struct TurnLogFile {
    dir: TempDir,
    files: LogFiles,
}

impl TurnLogFile {
    /// Writes the records, and the files that they refer to, so that only this user can read them.
    ///
    /// # Errors
    /// The log can't be written, or a file that a record refers to can't be read.
    pub(super) async fn restore(
        queue: &TurnQueue,
        records: &StoredRecords,
    ) -> Result<Self, TurnNotAnswered> {
        let unwritten = |error: io::Error| format!("its log can't be written: {error}");
        let mut file = Self::create(records).map_err(unwritten)?;
        for name in &records.files {
            let body = queue.read_file(name).await?.ok_or_else(|| {
                TurnNotAnswered::Permanent(format!("the file {name} of its log is gone"))
            })?;
            file.files.add(name, &body).map_err(unwritten)?;
        }
        Ok(file)
    }

    pub(super) fn create(records: &StoredRecords) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("toolq-turn-").tempdir()?;
        let path = dir.path().join("turn.jsonl");
        if !records.lines.is_empty() {
            write_private(&path, &records.lines)?;
        }
        let files = LogFiles::beside(&path);
        Ok(Self { dir, files })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("turn.jsonl")
    }

    /// Returns its directory.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the files beside it.
    pub(super) fn files(&self) -> LogFiles {
        self.files.clone()
    }
}

// Where the events of a turn go, and what refuses starts.

/// The events of a turn go to its log. Nothing starts without its yes, or after the lease.
pub(super) struct TurnLogSink {
    pub log: SessionLog,
    pub holder: Arc<TurnHolder>,
    /// The calls that are in doubt.
    pub doubts: Vec<CallInDoubt>,
    /// A call has no result of its own: it is in doubt, was paused, or had no approval.
    pub is_incomplete: bool,
}

impl TurnLogSink {
    pub(super) fn new(log: SessionLog, holder: Arc<TurnHolder>) -> Self {
        Self {
            log,
            holder,
            doubts: Vec::new(),
            is_incomplete: false,
        }
    }
}

impl EventSink for TurnLogSink {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.log.emit(events)?;
        let starts =
            |event: &Event<'_>| matches!(event, Event::Started { .. } | Event::Probing { .. });
        if events.iter().any(starts) {
            // The disk is gone with the worker, so what starts has to be in the stream, and the turn this worker's after that.
            self.log.wait_until_durable()();
            if let Some(error) = self.log.write_error() {
                return Err(error);
            }
            if !self.holder.allows_start() {
                let why = "the turn may be another worker's by now: its lease is over";
                return Err(EmitError(why.to_owned()));
            }
        }
        self.doubts.extend(events.iter().filter_map(new_doubt));
        let stops = |event: &Event<'_>| matches!(event, Event::Finished { outcome, .. } if Exit::of_outcome(outcome) != Exit::Ok);
        self.is_incomplete |= !self.doubts.is_empty() || events.iter().any(stops);
        Ok(())
    }

    fn shows_progress(&self, _: &CallRef) -> bool {
        false
    }
}

/// Remembers calls in doubt, and refuses every start.
#[derive(Default)]
pub(super) struct DoubtCollector(pub Vec<CallInDoubt>);

impl EventSink for DoubtCollector {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        self.0.extend(events.iter().filter_map(new_doubt));
        let starts = |event: &Event<'_>| matches!(event, Event::Started { .. });
        if events.iter().any(starts) {
            return Err(EmitError("the turn isn't run anymore".to_owned()));
        }
        Ok(())
    }
}

/// Returns the call of the input whose end leaves it in doubt. One of an agent leaves the agent in doubt.
fn new_doubt(event: &Event<'_>) -> Option<CallInDoubt> {
    match event {
        Event::Finished { call, outcome, .. } if outcome.is_in_doubt() && call.parent.is_none() => {
            Some(CallInDoubt {
                id: call.tool_use_id.clone(),
                tool: call.tool_name.to_string(),
            })
        }
        _ => None,
    }
}

// The order of turns: each input lists its turns once they are stored, so that neither an interrupted `submit` nor a turn that had
// to be sent twice changes the order of answers.

/// How many turns one message lists.
pub(super) const MAX_LISTED_TURNS: usize = 256;

/// Turns whose answers are to be collected, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnList {
    /// The numbers of the turns in their input.
    pub turns: Vec<usize>,
    /// The sequence after which their answers come. More than 0 if they are run again.
    pub after: u64,
    /// The turns of the input before this number are listed by now.
    pub listed: usize,
}

/// The last list of an input, with its sequence.
#[derive(Debug, Default)]
struct LastList {
    list: TurnList,
    sequence: u64,
}

impl LastList {
    async fn read(queue: &TurnQueue, input: &str) -> Result<Self, String> {
        let subject = queue.name.order(input);
        let Some(message) = queue.last_message(&subject).await? else {
            return Ok(Self::default());
        };
        Ok(Self {
            list: serde_json::from_slice(&message.payload).map_err(|error| error.to_string())?,
            sequence: message.sequence,
        })
    }

    /// Publishes the next list. Returns `false` if another process has published one.
    async fn publish_next(
        &self,
        queue: &TurnQueue,
        input: &str,
        list: &TurnList,
        gives_up: impl FnMut() -> bool,
    ) -> Result<bool, PublishRefusal> {
        let payload = expect_json(serde_json::to_vec(list));
        let message = (HeaderMap::new(), payload.into());
        let subject = queue.name.order(input);
        match publish_after(queue, &subject, message, self.sequence, gives_up).await {
            Ok(_) => Ok(true),
            Err(PublishRefusal::Outdated) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }
}

/// Lists turns of an input in this order. Those that are listed already are left out. All of them must be stored.
pub(super) async fn list_turns(
    queue: &TurnQueue,
    input: &str,
    numbers: &[usize],
    mut gives_up: impl FnMut() -> bool,
) -> Result<(), PublishRefusal> {
    while !numbers.is_empty() {
        let last = match LastList::read(queue, input).await {
            Ok(last) => last,
            Err(why) if gives_up() => return Err(PublishRefusal::Unconfirmed(why)),
            Err(_) => {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
        };
        let new = |number: &&usize| **number >= last.list.listed;
        let turns: Vec<usize> = numbers.iter().filter(new).copied().collect();
        let Some(latest) = turns.last() else {
            return Ok(());
        };
        let list = TurnList {
            listed: latest + 1,
            turns,
            after: 0,
        };
        if last
            .publish_next(queue, input, &list, &mut gives_up)
            .await?
        {
            break;
        }
    }
    Ok(())
}

/// Lists a turn again, to be answered after the sequence `after`. Once is enough.
pub(super) async fn list_again(
    queue: &TurnQueue,
    turn: &TurnName,
    after: u64,
    mut gives_up: impl FnMut() -> bool,
) -> Result<(), PublishRefusal> {
    loop {
        let last = LastList::read(queue, &turn.input).await;
        let last = last.map_err(PublishRefusal::Unconfirmed)?;
        let list = TurnList {
            turns: vec![turn.number],
            after,
            listed: last.list.listed,
        };
        if last.list == list
            || last
                .publish_next(queue, &turn.input, &list, &mut gives_up)
                .await?
        {
            return Ok(());
        }
    }
}

/// Why a turn has no answer yet.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TurnNotAnswered {
    /// Another worker, or a later moment, may have more luck: the disk is full, or the server doesn't answer.
    #[error("{0}")]
    HandedBack(String),
    /// Only a worker with other tools, or a newer toolq, can take it and all turns like it.
    #[error("{0}")]
    Foreign(String),
    /// No worker can continue what the stream has of it.
    #[error("{0}")]
    Permanent(String),
    /// It is or will be another worker's.
    #[error("{0}")]
    Lost(String),
}

/// The server doesn't say what it has.
impl From<String> for TurnNotAnswered {
    fn from(why: String) -> Self {
        Self::HandedBack(why)
    }
}

/// Files of a turn are on this machine alone.
impl From<io::Error> for TurnNotAnswered {
    fn from(error: io::Error) -> Self {
        Self::HandedBack(error.to_string())
    }
}

impl From<LogError> for TurnNotAnswered {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io { .. } => Self::HandedBack(error.to_string()),
            LogError::NewerFormat { .. } => {
                Self::Foreign("turns with logs of a newer toolq are handed back".to_owned())
            }
            _ => Self::Permanent(error.to_string()),
        }
    }
}

impl From<PublishRefusal> for TurnNotAnswered {
    fn from(refusal: PublishRefusal) -> Self {
        Self::Lost(match refusal {
            PublishRefusal::Outdated => "another worker has taken over this turn".to_owned(),
            refusal => refusal.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_full_disk_says_nothing_about_a_turn() {
        let path = PathBuf::from("turn.jsonl");
        let full = LogError::Io {
            path: path.clone(),
            action: "written",
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(full.into(), TurnNotAnswered::HandedBack(_)));
        let newer = LogError::NewerFormat {
            path: path.clone(),
            major: 9,
            minor: 0,
        };
        assert!(matches!(newer.into(), TurnNotAnswered::Foreign(_)));
        let damaged = LogError::NotALog(path);
        assert!(matches!(damaged.into(), TurnNotAnswered::Permanent(_)));
    }
}
