//! The records of a turn that the stream has, and how the turns with such records are found.

use std::fmt::Display;
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use futures_util::StreamExt as _;
use serde::Deserialize;

use crate::names::TurnName;
use crate::queue_error;
use crate::record_publisher::LEASE_MS;
use crate::session::QueueSession;
use crate::turn_log::named_files;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;

/// The header of a message without records that cancels the turn. From then on, the records of any worker on it are refused.
pub(super) const CANCELS: &str = "Toolq-Cancel";

/// The records of a turn that the stream has.
#[derive(Debug, Default)]
pub(super) struct StoredRecords {
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
        let subject = turn.log_subject(&queue.name);
        let mut records = Self::default();
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

/// What the stream has of a turn.
#[derive(Default)]
pub(super) struct StoredTurn {
    pub records: StoredRecords,
    /// The last answer, or 0.
    pub answer: u64,
}

impl StoredTurn {
    pub(super) async fn read(queue: &TurnQueue, name: &TurnName) -> Result<Self, String> {
        let answer = queue
            .last_message(&name.answer_subject(&queue.name))
            .await?;
        Ok(Self {
            records: StoredRecords::read(queue, name).await?,
            answer: answer.map_or(0, |answer| answer.sequence),
        })
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

#[cfg(test)]
mod tests {
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
