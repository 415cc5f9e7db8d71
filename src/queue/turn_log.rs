//! The log of a turn: read from the stream into a file, where it is resumed like any other.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use futures_util::StreamExt as _;
use serde::Deserialize;
use tempfile::TempDir;
use toolq_core::os::create_private_dir;

use crate::queue::message_chain::MessageChain;
use crate::queue::names::TurnName;
use crate::queue::planted_bug::{PlantedBug, has_planted};
use crate::queue::record_publisher::LEASE_MS;
use crate::queue::turn_queue::TurnQueue;

/// The header that names the files that records refer to, except those that were named before.
const FILES: &str = "Toolq-Files";
/// The header of a message without records that cancels the turn. From then on, the records of any worker on it are refused.
pub(super) const CANCELS: &str = "Toolq-Cancel";
/// Length of a digest in hexadecimal, with which the names of these files begin.
const DIGEST_CHARS: usize = 64;

/// The records of a turn that the stream has.
#[derive(Debug, Default)]
pub(super) struct StoredRecords {
    pub lines: Vec<u8>,
    /// The names of the files that they refer to.
    files: Vec<String>,
    /// The sequence of the last message, or 0 if there is no message.
    pub last: u64,
    /// The longest lease of all workers that have recorded something.
    pub longest_lease: Duration,
    /// Whether the turn was canceled.
    pub is_canceled: bool,
    /// When the last worker began, by the server's clock, in nanoseconds since 1970.
    pub last_begin: i128,
}

impl StoredRecords {
    /// Reads the log of a turn.
    pub(super) async fn read(queue: &TurnQueue, turn: &TurnName) -> Result<Self, String> {
        let subject = turn.log_subject(&queue.name);
        let mut records = Self::default();
        let mut chain = MessageChain::default();
        while let Some(message) = queue.next_message(&subject, chain.last + 1).await? {
            if chain.add(&message.headers, message.sequence) {
                records.add(&message);
            }
        }
        records.last = chain.last;
        if has_planted(PlantedBug::ResumeWithoutRecords) {
            records.lines.clear();
        }
        Ok(records)
    }

    fn add(&mut self, message: &StreamMessage) {
        let header = |name| Some(message.headers.get(name)?.as_str());
        let lease = header(LEASE_MS).and_then(|lease| lease.parse().ok());
        let lease = Duration::from_millis(lease.unwrap_or_default());
        self.longest_lease = self.longest_lease.max(lease);
        self.files.extend(named_files(&message.headers));
        self.is_canceled |= header(CANCELS).is_some();
        if count_records(&message.payload).0 > 0 {
            self.last_begin = message.time.unix_timestamp_nanos();
        }
        self.lines.extend_from_slice(&message.payload);
    }

    /// Returns how many workers began this turn and didn't come to an end: they were killed, or lost the turn.
    pub(super) fn unfinished_runs(&self) -> usize {
        let (begun, ended) = count_records(&self.lines);
        begun - ended.min(begun)
    }
}

/// Returns the log of the turn that people call `turn`, or `None` if no worker has begun such a turn.
pub(crate) async fn read_log(queue: &TurnQueue, turn: &str) -> Result<Option<Vec<u8>>, String> {
    let logs = find_turn(queue, "log", turn).await?;
    let Some(name) = logs else {
        return Ok(None);
    };
    let lines = StoredRecords::read(queue, &name).await?.lines;
    Ok((!lines.is_empty()).then_some(lines))
}

/// Returns the turn that people call `turn`, if it has messages of this kind.
pub(super) async fn find_turn(
    queue: &TurnQueue,
    kind: &str,
    turn: &str,
) -> Result<Option<TurnName>, String> {
    let number = turn.rsplit('.').next().unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let subjects = queue.name.all_of_number(kind, number);
    let subjects = queue.stream.info_with_subjects(subjects).await;
    let mut subjects = subjects.map_err(|error| error.to_string())?;
    while let Some(subject) = subjects.next().await {
        let (subject, _) = subject.map_err(|error| error.to_string())?;
        let name = TurnName::of_subject(&subject);
        if let Some(name) = name.filter(|name| name.is_called(turn)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns how many sessions begin and end in these lines.
fn count_records(lines: &[u8]) -> (usize, usize) {
    let (mut begun, mut ended) = (0, 0);
    for line in lines.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(RecordType { kind: "session" }) => begun += 1,
            Ok(RecordType {
                kind: "session_end",
            }) => ended += 1,
            _ => {}
        }
    }
    (begun, ended)
}

#[derive(Deserialize)]
struct RecordType<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
}

/// Why a log can't be read from the stream into a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreFailure {
    /// Another worker, or a later moment, may have more luck.
    #[error("{0}")]
    Passing(String),
    /// A file that a record refers to isn't there anymore.
    #[error("the file {0} of its log is gone")]
    Gone(String),
}

/// A log in a directory of its own, which is removed with it.
pub(super) struct LogFile {
    dir: TempDir,
    files: LogFiles,
}

impl LogFile {
    /// Writes the records, and the files that they refer to, so that only this user can read them.
    pub(super) async fn restore(
        queue: &TurnQueue,
        records: &StoredRecords,
    ) -> Result<Self, RestoreFailure> {
        let unwritten = |error: io::Error| {
            RestoreFailure::Passing(format!("its log can't be written: {error}"))
        };
        let mut file = Self::create(records).map_err(unwritten)?;
        for name in &records.files {
            let body = queue
                .read_file(name)
                .await
                .map_err(RestoreFailure::Passing)?;
            let body = body.ok_or_else(|| RestoreFailure::Gone(name.clone()))?;
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

    fn add(&mut self, name: &str, body: &[u8]) -> io::Result<()> {
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

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
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
