//! Publishes messages behind those that the sender knows, and nowhere else: whoever doesn't know the last one is refused.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::queue::lease::Lease;
use crate::queue::turn_queue::TurnQueue;
use toolq_log::LogReplica;

/// Time between two attempts to publish a message of which the server said nothing.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Largest message of records. A server takes 1 MiB unless it is configured otherwise.
const MAX_MESSAGE_BYTES: usize = 512 << 10;

/// Why a message isn't in the stream, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PublishRefusal {
    /// Somebody else has published on the subject.
    #[error("another worker has taken over this turn")]
    TakenOver,
    /// The server takes no message of this size.
    #[error("the message is larger than the server takes")]
    TooLarge,
    /// Nobody knows whether it was stored.
    #[error("NATS doesn't confirm that a record was stored: {0}")]
    Unconfirmed(String),
}

/// Publishes `payload` as the message after `last`, the sequence of the last message of `subject`, or 0 if there is none.
/// Returns its own sequence. Tries again, whenever the server says nothing, until `gives_up`.
pub(super) async fn publish_after(
    queue: &TurnQueue,
    subject: &str,
    (headers, payload): (HeaderMap, Bytes),
    last: u64,
    mut gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    let mut is_repeated = false;
    loop {
        let message = PublishMessage::build()
            .headers(headers.clone())
            .payload(payload.clone())
            .expected_last_subject_sequence(last);
        let why = match send(queue, subject, message).await {
            Ok(sequence) => return Ok(sequence),
            Err(error) => error,
        };
        if why.kind() == PublishErrorKind::MaxPayloadExceeded {
            return Err(PublishRefusal::TooLarge);
        }
        if is_behind(&why) {
            if !is_repeated {
                return Err(PublishRefusal::TakenOver);
            }
            // An earlier attempt may have been stored although nobody heard of it.
            match queue.last_message(subject).await {
                Ok(Some(stored)) if stored.sequence > last && stored.payload == payload => {
                    return Ok(stored.sequence);
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

/// The log of a turn in the stream. Its records are stored there before what they promise happens.
pub(super) struct RecordPublisher {
    queue: TurnQueue,
    subject: String,
    /// The last message of the subject that this worker knows.
    last: u64,
    lease: Lease,
    /// The runtime of the connection.
    runtime: Handle,
    /// Why nothing more may be published, once that is so.
    refusal: watch::Sender<Option<PublishRefusal>>,
}

impl RecordPublisher {
    /// Publishes behind `last`. The first refusal is sent to `refusal`.
    pub(super) fn new(
        queue: TurnQueue,
        (subject, last): (String, u64),
        lease: Lease,
        runtime: Handle,
        refusal: watch::Sender<Option<PublishRefusal>>,
    ) -> Self {
        Self {
            queue,
            subject,
            last,
            lease,
            runtime,
            refusal,
        }
    }

    /// Blocks until the server has stored the lines.
    fn publish(&mut self, lines: &[u8]) -> Result<(), PublishRefusal> {
        let (sender, receiver) = mpsc::channel();
        let (queue, subject, last) = (self.queue.clone(), self.subject.clone(), self.last);
        let (lease, payload) = (self.lease.clone(), Bytes::copy_from_slice(lines));
        self.runtime.spawn(async move {
            let message = (HeaderMap::new(), payload);
            let is_over = || lease.is_over();
            let published = publish_after(&queue, &subject, message, last, is_over).await;
            // Only a caller that is gone doesn't receive it.
            let _ = sender.send(published);
        });
        let published = receiver.recv();
        let lost = |_| PublishRefusal::Unconfirmed("the connection was closed".to_owned());
        self.last = published.map_err(lost)??;
        Ok(())
    }
}

impl LogReplica for RecordPublisher {
    fn store(&mut self, lines: &[u8]) -> io::Result<()> {
        for message in split_lines(lines, MAX_MESSAGE_BYTES) {
            if let Err(refusal) = self.publish(message) {
                let error = io::Error::other(refusal.to_string());
                self.refusal.send_replace(Some(refusal));
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
