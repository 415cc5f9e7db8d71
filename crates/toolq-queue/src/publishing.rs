//! Publishes messages only after those that the sender knows: a sender that doesn't know the last message of a subject is
//! refused.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use tokio::time::sleep;

use crate::turn_queue::TurnQueue;

/// Time between two attempts to publish a message of which the server said nothing.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Why a message isn't in the stream, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PublishRefusal {
    /// Another process has published on the subject, so the sender doesn't know its last message.
    #[error("another process has published there meanwhile")]
    Outdated,
    /// The server takes no message of this size.
    #[error("the message is larger than the server takes")]
    TooLarge,
    /// A file that belongs to it can't be read here.
    #[error("{0} can't be read: {1}")]
    Unreadable(String, String),
    /// It isn't known whether it was stored.
    #[error("NATS doesn't confirm that a message was stored: {0}")]
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
    publish_at(queue, subject, message, Some(last), gives_up).await
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
    publish_at(queue, subject, (headers, payload), None, gives_up).await
}

/// Like [`publish_after`]. `None` publishes after any message.
async fn publish_at(
    queue: &TurnQueue,
    subject: &str,
    (headers, payload): (HeaderMap, Bytes),
    last: Option<u64>,
    mut gives_up: impl FnMut() -> bool,
) -> Result<u64, PublishRefusal> {
    let mut is_repeated = false;
    loop {
        let mut message = PublishMessage::build()
            .headers(headers.clone())
            .payload(payload.clone());
        if let Some(last) = last {
            message = message.expected_last_subject_sequence(last);
        }
        let why = match send(queue, subject, message).await {
            Ok(sequence) => return Ok(sequence),
            Err(error) => error,
        };
        if why.kind() == PublishErrorKind::MaxPayloadExceeded {
            return Err(PublishRefusal::TooLarge);
        }
        if has_newer_message(&why) {
            if !is_repeated {
                return Err(PublishRefusal::Outdated);
            }
            // An earlier attempt may have been stored although its confirmation was lost.
            let last = last.unwrap_or_default();
            match queue.last_message(subject).await {
                Ok(Some(stored)) if stored.sequence > last && stored.payload == payload => {
                    return Ok(stored.sequence);
                }
                Ok(_) => return Err(PublishRefusal::Outdated),
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
pub(super) fn has_newer_message(error: &PublishError) -> bool {
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

/// How often a turn is sent again if the server says nothing.
const MAX_REPEATS: usize = 50;

/// Gives up after a while.
pub(super) fn limit_repeats() -> impl FnMut() -> bool {
    let mut repeats = 0;
    move || {
        repeats += 1;
        repeats > MAX_REPEATS
    }
}
