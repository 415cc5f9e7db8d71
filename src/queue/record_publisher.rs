//! Publishes messages only after those that the sender knows: a sender that doesn't know the last message of a subject is
//! refused.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::queue::large_bodies::MAX_BODY_BYTES;
use crate::queue::planted_bug::{PlantedBug, has_planted};
use crate::queue::submitter::limit_repeats;
use crate::queue::turn_holder::TurnHolder;
use crate::queue::turn_log::{LogFiles, name_files};
use crate::queue::turn_queue::TurnQueue;
use toolq_log::LogReplica;

/// Time between two attempts to publish a message of which the server said nothing.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The header that names the hold of the worker that published records.
pub(super) const RECORDED_BY: &str = "Toolq-Worker";
/// The header with the length of that worker's lease, in milliseconds.
pub(super) const LEASE_MS: &str = "Toolq-Lease-Ms";

/// Why a message isn't in the stream, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PublishRefusal {
    /// Another process has published on the subject.
    #[error("another worker has taken over this turn")]
    TakenOver,
    /// The server takes no message of this size.
    #[error("the message is larger than the server takes")]
    TooLarge,
    /// It isn't known whether it was stored.
    #[error("NATS doesn't confirm that a record was stored: {0}")]
    Unconfirmed(String),
}

/// Publishes `message` after `last`, the sequence of the last message of `subject`, or 0 if the subject is empty. Returns
/// its own sequence. Retries until `gives_up` returns true, unless the server refuses the message for good.
pub(super) async fn publish_after(
    queue: &TurnQueue,
    subject: &str,
    message: (HeaderMap, Bytes),
    last: u64,
    gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    publish_behind(queue, subject, message, Some(last), gives_up).await
}

/// Publishes a message in place of all others of its subject.
pub(super) async fn publish_only(
    queue: &TurnQueue,
    subject: &str,
    payload: Bytes,
    gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Rollup", "sub");
    publish_behind(queue, subject, (headers, payload), None, gives_up).await
}

/// Like [`publish_after`]. `None` publishes after any message.
async fn publish_behind(
    queue: &TurnQueue,
    subject: &str,
    (headers, payload): (HeaderMap, Bytes),
    last: Option<u64>,
    mut gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    let mut is_repeated = false;
    loop {
        // Clusters of servers before 2.9.21 can lose count when they refuse the first message of a subject.
        if is_repeated && last == Some(0) && queue.is_replicated() {
            match queue.last_message(subject).await {
                Ok(Some(stored)) if stored.payload == payload => return Ok(stored.sequence),
                Ok(Some(_)) => return Err(PublishRefusal::TakenOver),
                Ok(None) | Err(_) => {}
            }
        }
        let mut message = PublishMessage::build()
            .headers(headers.clone())
            .payload(payload.clone());
        if let Some(last) = last {
            message = message.expected_last_subject_sequence(last);
        }
        let why = match send(queue, subject, message).await {
            Ok(sequence) => match last.filter(|last| *last > 0 && queue.is_replicated()) {
                Some(last) => {
                    return confirm_place(queue, subject, (last, sequence), &payload, gives_up)
                        .await;
                }
                None => return Ok(sequence),
            },
            Err(error) => error,
        };
        if why.kind() == PublishErrorKind::MaxPayloadExceeded {
            return Err(PublishRefusal::TooLarge);
        }
        if is_behind(&why) {
            if !is_repeated {
                return Err(PublishRefusal::TakenOver);
            }
            // An earlier attempt may have been stored although its confirmation was lost.
            let last = last.unwrap_or_default();
            match queue.last_message(subject).await {
                Ok(Some(stored)) if stored.sequence > last && stored.payload == payload => {
                    let place = (last, stored.sequence);
                    return confirm_place(queue, subject, place, &payload, gives_up).await;
                }
                Ok(_) => return Err(PublishRefusal::TakenOver),
                Err(_) => {}
            }
        }
        is_repeated = true;
        if gives_up() {
            return Err(PublishRefusal::Unconfirmed(why.to_string()));
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Makes sure that a message that was stored at `sequence` is the first one after `last`. In the fault test, with a cluster
/// of nats-server 2.9.10, logs looked as if two messages had been stored after the same one. The first one counts, and all
/// readers skip the other.
async fn confirm_place(
    queue: &TurnQueue,
    subject: &str,
    (last, sequence): (u64, u64),
    payload: &Bytes,
    mut gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    loop {
        let why = match queue.next_message(subject, last + 1).await {
            Ok(Some(first)) if first.sequence == sequence => return Ok(sequence),
            // The same message was stored twice.
            Ok(Some(first)) if first.sequence < sequence && first.payload == *payload => {
                return Ok(sequence);
            }
            Ok(Some(_)) => return Err(PublishRefusal::TakenOver),
            // A new leader doesn't have it yet.
            Ok(None) => "the message isn't there yet".to_owned(),
            Err(why) => why,
        };
        if gives_up() {
            return Err(PublishRefusal::Unconfirmed(why));
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Returns whether the subject has a message that the sender doesn't know.
pub(super) fn is_behind(error: &PublishError) -> bool {
    let code = || {
        let source = std::error::Error::source(error)?;
        Some(source.downcast_ref::<jetstream::Error>()?.error_code())
    };
    error.kind() == PublishErrorKind::WrongLastSequence
        || code() == Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

async fn send(
    queue: &TurnQueue,
    subject: &str,
    message: PublishMessage,
) -> Result<u64, PublishError> {
    let sent = queue
        .jetstream
        .send_publish(subject.to_owned(), message)
        .await?;
    Ok(sent.await?.sequence)
}

/// The log of a turn in the stream. Its records are stored there before the actions that they announce.
pub(super) struct RecordPublisher {
    queue: TurnQueue,
    subject: String,
    /// The last message of the subject that this worker knows.
    last: Arc<Mutex<u64>>,
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
            last: Arc::new(Mutex::new(last)),
            holder,
            files,
            runtime,
        }
    }

    /// Blocks until the server has stored the lines, and before them the files that they name.
    fn publish(&mut self, lines: &[u8]) -> Result<(), PublishRefusal> {
        let (sender, receiver) = mpsc::channel();
        let (queue, subject) = (self.queue.clone(), self.subject.clone());
        let (holder, last) = (Arc::clone(&self.holder), Arc::clone(&self.last));
        let payload = Bytes::copy_from_slice(lines);
        let new_files = self.files.take_new();
        self.runtime.spawn(async move {
            let is_over = || holder.lease.is_over();
            let published = async {
                let mut headers = record_headers(&holder.id, holder.lease.duration());
                for file in &new_files {
                    queue.store_file(file, is_over).await?;
                }
                name_files(&mut headers, &new_files);
                let mut last = last.lock().await;
                let expected = (!has_planted(PlantedBug::NoExpectedSequence)).then_some(*last);
                let message = (headers, payload);
                *last = publish_behind(&queue, &subject, message, expected, is_over).await?;
                Ok(())
            };
            // Only a caller that is gone doesn't receive it.
            let _ = sender.send(published.await);
        });
        if has_planted(PlantedBug::StartBeforeYes) {
            return Ok(());
        }
        let lost = |_| PublishRefusal::Unconfirmed("the connection was closed".to_owned());
        receiver.recv().map_err(lost)?
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
