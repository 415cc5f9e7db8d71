//! Publishes the records of a turn before the actions that they announce.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::connection::QueueSession;
use crate::large_bodies::MAX_BODY_BYTES;
use crate::lease::{RECORDED_BY, TurnHolder};
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, limit_repeats, publish_after};
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::os::create_private_dir;
use toolq_log::LogReplica;

/// The header with the length of that worker's lease, in milliseconds.
const LEASE_MS: &str = "Toolq-Lease-Ms";

/// The log of a turn in the stream. Its records are stored there before the actions that they announce.
pub(super) struct RecordPublisher {
    queue: TurnQueue,
    subject: String,
    /// The last message of the subject that this worker knows.
    last: u64,
    holder: Arc<TurnHolder>,
    /// Where the log keeps what is too large for a record.
    files: LogFiles,
    /// The runtime of the connection.
    runtime: Handle,
}

impl RecordPublisher {
    /// Publishes after `last`. The first refusal is passed to the holder.
    pub(super) fn new(
        queue: TurnQueue,
        (subject, last): (String, u64),
        holder: Arc<TurnHolder>,
        files: LogFiles,
        runtime: Handle,
    ) -> Self {
        Self {
            queue,
            subject,
            last,
            holder,
            files,
            runtime,
        }
    }

    /// Blocks until the server has stored the lines, and before them the files that they name.
    fn publish(&mut self, lines: &[u8]) -> Result<(), PublishRefusal> {
        let (queue, holder) = (&self.queue, &self.holder);
        let is_over = || holder.is_over();
        let new_files = self.files.take_new();
        let mut headers = record_headers(&holder.id, holder.ack_wait);
        name_files(&mut headers, &new_files);
        let message = (headers, Bytes::copy_from_slice(lines));
        self.last = self.runtime.block_on(async {
            for file in &new_files {
                queue.store_file(file, is_over).await?;
            }
            publish_after(queue, &self.subject, message, self.last, is_over).await
        })?;
        Ok(())
    }
}

/// Publishes records of a command that isn't a worker, after storing the files that they name.
pub(super) async fn name_and_publish(
    queue: &TurnQueue,
    subject: &str,
    (mut headers, payload): (HeaderMap, Bytes),
    new_files: &[PathBuf],
    last: u64,
) -> Result<u64, PublishRefusal> {
    for file in new_files {
        queue.store_file(file, limit_repeats()).await?;
    }
    name_files(&mut headers, new_files);
    publish_after(queue, subject, (headers, payload), last, limit_repeats()).await
}

/// Returns the headers of records: who publishes them, and how long that worker may continue without a confirmation.
fn record_headers(recorded_by: &str, lease: Duration) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(RECORDED_BY, recorded_by);
    headers.insert(LEASE_MS, lease.as_millis().to_string());
    headers
}

impl LogReplica for RecordPublisher {
    fn store(&mut self, lines: &[u8]) -> io::Result<()> {
        for message in split_lines(lines, MAX_BODY_BYTES) {
            if let Err(refusal) = self.publish(message) {
                let error = io::Error::other(refusal.to_string());
                self.holder.refuse(refusal);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Splits lines into messages of at most `max` bytes. A line is never split.
fn split_lines(lines: &[u8], max: usize) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if end > start && end - start + line.len() > max {
            messages.push(&lines[start..end]);
            start = end;
        }
        end += line.len();
    }
    if end > start {
        messages.push(&lines[start..end]);
    }
    messages
}

// The records of a turn that the stream has, and how the turns with such records are found.

/// The header of a message without records that cancels the turn. From then on, the records of any worker on it are refused.
pub(super) const CANCELS: &str = "Toolq-Cancel";

/// The records of a turn that the stream has, and where its answer is.
#[derive(Debug, Default)]
pub(super) struct StoredRecords {
    /// The sequence of the last answer, or 0.
    pub answer: u64,
    pub lines: Vec<u8>,
    /// The names of the files that they refer to.
    pub files: Vec<String>,
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
        let subject = turn.answer_subject(&queue.name);
        let answer = queue.last_message(&subject).await?;
        let mut records = Self {
            answer: answer.map_or(0, |answer| answer.sequence),
            ..Self::default()
        };
        let subject = turn.log_subject(&queue.name);
        while let Some(message) = queue.next_message(&subject, records.last + 1).await? {
            records.add(&message);
        }
        Ok(records)
    }

    fn add(&mut self, message: &StreamMessage) {
        self.last = message.sequence;
        let header = |name| Some(message.headers.get(name)?.as_str());
        let lease = header(LEASE_MS).and_then(|lease| lease.parse().ok());
        let lease = Duration::from_millis(lease.unwrap_or_default());
        self.longest_lease = self.longest_lease.max(lease);
        self.files.extend(named_files(&message.headers));
        self.is_canceled |= header(CANCELS).is_some();
        if SessionCounts::of_lines(&message.payload).begun > 0 {
            self.last_begin = message.time.unix_timestamp_nanos();
        }
        self.lines.extend_from_slice(&message.payload);
    }

    /// Returns how many workers began this turn and didn't come to an end: they were killed, or lost the turn.
    pub(super) fn unfinished_runs(&self) -> usize {
        let sessions = SessionCounts::of_lines(&self.lines);
        sessions.begun.saturating_sub(sessions.ended)
    }
}

/// Returns the log of the turn that people call `turn`, or `None` if no worker has begun such a turn.
///
/// # Errors
/// More than one turn is called so, or the queue can't be read.
async fn read_log(queue: &TurnQueue, turn: &str) -> Result<Option<Vec<u8>>, CommandError> {
    let Some(name) = find_turn(queue, "log", turn).await? else {
        return Ok(None);
    };
    let records = StoredRecords::read(queue, &name).await;
    let lines = records.map_err(|why| unreadable(queue, why))?.lines;
    Ok((!lines.is_empty()).then_some(lines))
}

/// Returns the turn that people call `turn`, if it has messages of this kind.
///
/// # Errors
/// More than one turn is called so, or the queue can't be read.
pub(super) async fn find_turn(
    queue: &TurnQueue,
    kind: &str,
    turn: &str,
) -> Result<Option<TurnName>, CommandError> {
    let number = turn.rsplit('.').next().unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let subjects = queue.name.all_of_number(kind, number);
    let subjects = queue.stream.info_with_subjects(subjects).await;
    let mut subjects = subjects.map_err(|error| unreadable(queue, error))?;
    let mut matching = Vec::new();
    while let Some(subject) = subjects.next().await {
        let (subject, _) = subject.map_err(|error| unreadable(queue, error))?;
        let name = TurnName::of_subject(&subject);
        matching.extend(name.filter(|name| name.is_called(turn)));
    }
    choose_turn(matching, turn)
}

/// Returns the only one of the turns that are called `turn`.
fn choose_turn(mut matching: Vec<TurnName>, turn: &str) -> Result<Option<TurnName>, CommandError> {
    let found = matching.pop();
    if matching.is_empty() {
        return Ok(found);
    }
    let mut names: Vec<String> = matching.iter().chain(&found).map(TurnName::short).collect();
    names.sort();
    let message = format!("more than one turn is called {turn}");
    Err(CommandError::usage(message).with_hint(format!("choose one: {}", names.join(", "))))
}

fn unreadable(queue: &TurnQueue, why: impl Display) -> CommandError {
    queue_error(&format!("the queue {} can't be read", queue.name), why)
}

/// How many sessions begin and end in some records.
#[derive(Default)]
struct SessionCounts {
    begun: usize,
    ended: usize,
}

impl SessionCounts {
    fn of_lines(lines: &[u8]) -> Self {
        let mut counts = Self::default();
        for line in lines.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(RecordType { kind: "session" }) => counts.begun += 1,
                Ok(RecordType {
                    kind: "session_end",
                }) => counts.ended += 1,
                _ => {}
            }
        }
        counts
    }
}

#[derive(Deserialize)]
struct RecordType<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
}

impl QueueSession {
    /// Returns the session log of the turn that people call `turn`.
    ///
    /// # Errors
    /// There is no such turn, or more than one, no worker has begun it, or the server doesn't answer.
    pub fn turn_log(self, turn: &str) -> Result<Vec<u8>, CommandError> {
        let lines = self.run(async |queue, _| read_log(queue, turn).await)?;
        lines.ok_or_else(|| {
            CommandError::usage(format!("no worker has begun a turn {turn}"))
                .with_hint("`toolq queue status` and `toolq queue dead` name turns")
        })
    }
}

// The files beside a log. Headers of messages name them.

/// The header that names the files that records refer to, except those that were named before.
const FILES: &str = "Toolq-Files";

/// Length of a digest in hexadecimal, with which the names of these files begin.
const DIGEST_CHARS: usize = 64;

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
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
    fn messages_have_whole_lines() {
        let split = |max| {
            let messages = split_lines(b"aa\nbbb\nc\n", max);
            let texts = messages
                .into_iter()
                .map(|message| str::from_utf8(message).unwrap());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(split(100), ["aa\nbbb\nc\n"]);
        assert_eq!(split(7), ["aa\nbbb\n", "c\n"]);
        assert_eq!(split(1), ["aa\n", "bbb\n", "c\n"]);
        assert!(split_lines(b"", 1).is_empty());
    }
}

#[cfg(test)]
mod stored_records_tests {
    use super::*;

    fn turn(input: &str) -> TurnName {
        TurnName {
            input: input.to_owned(),
            number: 0,
        }
    }

    #[test]
    fn an_ambiguous_name_of_a_turn_chooses_none() {
        let (first, second) = (turn("abcdef0"), turn("abcdef1"));
        let found = choose_turn(vec![first.clone()], "abcdef.0").unwrap();
        assert_eq!(found, Some(first.clone()));
        let refusal = choose_turn(vec![second, first], "abcdef.0").unwrap_err();
        assert!(refusal.message.contains("more than one turn"));
        let hint = refusal.hint.unwrap();
        assert!(hint.contains("abcdef0.0, abcdef1.0"), "{hint}");
    }
}

#[cfg(test)]
mod file_name_tests {
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
