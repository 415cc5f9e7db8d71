//! The log of a turn: read from the stream into a file, where it is resumed like any other. Headers of messages name the files beside it.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{AckKind, Message};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::lease::{self, Lease};
use crate::names::TurnName;
use crate::record_publisher::{
    PublishRefusal, RECORDED_BY, RETRY_INTERVAL, StoredRecords, publish_after,
};
use crate::resolver::CallInDoubt;
use crate::turn_answering::TurnFailure;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::Exit;
use toolq_core::json::expect_json;
use toolq_core::os::create_private_dir;
use toolq_core::types::{CallRef, EmitError, Event, EventSink};
use toolq_engine::random_task_id;
use toolq_log::SessionLog;

/// The header that names the files that records refer to, except those that were named before.
const FILES: &str = "Toolq-Files";
/// Length of a digest in hexadecimal, with which the names of these files begin.
const DIGEST_CHARS: usize = 64;

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
    ) -> Result<Self, TurnFailure> {
        let unwritten =
            |error: io::Error| TurnFailure::Passing(format!("its log can't be written: {error}"));
        let mut file = Self::create(records).map_err(unwritten)?;
        for name in &records.files {
            let body = queue.read_file(name).await;
            let body = body.map_err(TurnFailure::Passing)?.ok_or_else(|| {
                TurnFailure::Permanent(format!("the file {name} of its log is gone"))
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

/// The files beside a log, with what is too large for its records.
#[derive(Debug, Clone)]
pub(super) struct LogFiles {
    dir: PathBuf,
    /// Those that the stream has.
    known: HashSet<String>,
}

impl LogFiles {
    /// Returns the files beside the log at this path. The stream doesn't have any of them yet.
    pub(super) fn beside(log: &Path) -> Self {
        Self {
            dir: toolq_log::blob_dir_for(log),
            known: HashSet::new(),
        }
    }

    /// Writes a file that the stream has.
    pub(super) fn add(&mut self, name: &str, body: &[u8]) -> io::Result<()> {
        if self.known.insert(name.to_owned()) {
            create_private_dir(&self.dir)?;
            write_private(&self.dir.join(name), body)?;
        }
        Ok(())
    }

    /// Returns the files that the stream doesn't have yet. From now on, they count as stored.
    pub(super) fn take_new(&mut self) -> Vec<PathBuf> {
        // If there is no directory, there are no files.
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let new = names.filter(|name| is_file_name(name) && self.known.insert(name.clone()));
        new.map(|name| self.dir.join(name)).collect()
    }
}

/// Names files in the headers of the message that first refers to them.
pub(super) fn name_files(headers: &mut HeaderMap, files: &[PathBuf]) {
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        headers.insert(FILES, names.join(" "));
    }
}

/// Returns the names of the files that the headers of a message name.
pub(super) fn named_files(headers: &HeaderMap) -> Vec<String> {
    let names = headers.get(FILES).map_or("", |names| names.as_str());
    let names = names.split_whitespace().filter(|name| is_file_name(name));
    names.map(str::to_owned).collect()
}

/// Returns whether toolq could have given a file this name: a digest, perhaps with an extension.
fn is_file_name(name: &str) -> bool {
    let (digest, extension) = name.split_once('.').unwrap_or((name, "x"));
    let is_hex = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_word = extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    digest.len() == DIGEST_CHARS && is_hex && is_word && extension != "part"
}

/// Writes a new file that only this user can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

// Where the events of a turn go, and what refuses starts.

/// The events of a turn go to its log. Nothing starts without its yes, or after the lease.
pub(super) struct TurnLogSink {
    pub log: SessionLog,
    pub lease: Lease,
    /// The calls that are in doubt.
    pub doubts: Vec<CallInDoubt>,
    /// A call has no result of its own: it is in doubt, was paused, or had no approval.
    pub is_incomplete: bool,
}

impl TurnLogSink {
    pub(super) fn new(log: SessionLog, lease: Lease) -> Self {
        Self {
            log,
            lease,
            doubts: Vec::new(),
            is_incomplete: false,
        }
    }
}

fn refuse_late_start(lease: &Lease) -> Result<(), EmitError> {
    if lease.allows_start() {
        return Ok(());
    }
    let why = "the turn may be another worker's by now: its lease is over";
    Err(EmitError(why.to_owned()))
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
            refuse_late_start(&self.lease)?;
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

// The hold of a worker on a turn, until another worker takes the turn over.

/// Means that the log hasn't been read yet.
const UNREAD: u64 = u64::MAX;

/// The hold of a worker on a turn.
pub(super) struct TurnHolder {
    /// Names this hold in the messages with its records.
    pub id: String,
    pub lease: Lease,
    /// The sequence of the last message of the log that others have published.
    read_up_to: AtomicU64,
    /// Why nothing more may be published, once that is so.
    refusal: watch::Sender<Option<PublishRefusal>>,
}

impl TurnHolder {
    /// Holds a turn that was requested at `asked`.
    pub(super) fn new(asked: Duration, ack_wait: Duration) -> Self {
        Self {
            id: random_task_id(),
            lease: Lease::new(asked, ack_wait),
            read_up_to: AtomicU64::new(UNREAD),
            refusal: watch::Sender::default(),
        }
    }

    /// Says up to which message the log of the turn was read.
    pub(super) fn set_read_up_to(&self, sequence: u64) {
        self.read_up_to.store(sequence, Ordering::SeqCst);
    }

    /// Nothing more may be published, for this reason.
    pub(super) fn refuse(&self, refusal: PublishRefusal) {
        if refusal == PublishRefusal::Outdated {
            self.lease.end();
        }
        self.refusal.send_replace(Some(refusal));
    }

    /// Returns a receiver that is notified of a refusal.
    pub(super) fn watch_refusal(&self) -> watch::Receiver<Option<PublishRefusal>> {
        self.refusal.subscribe()
    }

    /// Renews the lease until it is over. Each time, it checks whether another process writes to the log: a confirmation by
    /// the server isn't enough, since it confirms progress on a turn to every worker that ever had it.
    pub(super) async fn keep(
        self: Arc<Self>,
        queue: TurnQueue,
        turn: TurnName,
        message: Arc<Message>,
    ) {
        let interval = self.lease.duration() / 3;
        let mut wait = interval;
        loop {
            sleep(wait).await;
            let asked = lease::now();
            if self.lease.is_over() {
                return;
            }
            let confirmed = message.double_ack_with(AckKind::Progress).await.is_ok();
            wait = match self.is_taken_over(&queue, &turn).await {
                Ok(true) => return self.refuse(PublishRefusal::Outdated),
                Ok(false) if confirmed => {
                    self.lease.renew(asked);
                    interval
                }
                _ => RETRY_INTERVAL.min(interval),
            };
        }
    }

    async fn is_taken_over(&self, queue: &TurnQueue, turn: &TurnName) -> Result<bool, String> {
        let last = queue.last_message(&turn.log_subject(&queue.name)).await?;
        Ok(last.is_some_and(|last| {
            let recorded_by = last.headers.get(RECORDED_BY);
            last.sequence > self.read_up_to.load(Ordering::SeqCst)
                && recorded_by.is_none_or(|id| id.as_str() != self.id)
        }))
    }
}

/// Says why a worker lost its turn.
pub(super) fn describe_loss(refusal: &PublishRefusal) -> String {
    match refusal {
        PublishRefusal::Outdated => "another worker has taken over this turn".to_owned(),
        refusal => refusal.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_toolq_gives_are_files_of_a_log() {
        let digest = "0a".repeat(32);
        for name in [digest.clone(), format!("{digest}.png")] {
            assert!(is_file_name(&name), "{name}");
        }
        for name in ["", "../x", &format!("{digest}.part"), &digest[1..], "a b"] {
            assert!(!is_file_name(name), "{name}");
        }
        assert!(!is_file_name(&format!("{digest}./x")));
    }
}
