//! The records of a turn that the stream has, and how the turns with such records are found.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use futures_util::StreamExt as _;
use serde::Deserialize;

use crate::queue::log_files::named_files;
use crate::queue::message_chain::MessageChain;
use crate::queue::names::TurnName;
use crate::queue::planted_bug::{PlantedBug, has_planted};
use crate::queue::record_publisher::LEASE_MS;
use crate::queue::turn_queue::TurnQueue;

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
