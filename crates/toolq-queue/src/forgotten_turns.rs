//! Turns that the server has handed out and forgotten. Some versions of it do so when the server that leads a consumer is killed.

use std::time::Duration;

use async_nats::{Client, HeaderMap};
use bytes::Bytes;

use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, publish_after};
use crate::presence::call_roll;
use crate::submitter::limit_repeats;
use crate::turn_answering::ASKS_AGAIN;
use crate::turn_queue::TurnQueue;

/// After this many leases without an answer, it is checked whether a turn was forgotten.
const LEASES_TO_WAIT: u32 = 3;

/// Returns how long to wait for an answer before checking whether its turn was forgotten, or `None` if no worker has ever
/// used this queue or the server doesn't answer.
pub(super) async fn patience(queue: &TurnQueue) -> Option<Duration> {
    Some(queue.ack_wait().await.ok()?? * LEASES_TO_WAIT)
}

/// Requests another run of a turn that was handed out, but that no worker has. If it wasn't forgotten after all, that is
/// harmless: the second worker finds the answer, or the records of the first.
///
/// # Errors
/// The server doesn't answer.
pub(super) async fn ask_again_if_forgotten(
    queue: &TurnQueue,
    client: &Client,
    turn: &TurnName,
) -> Result<bool, String> {
    let consumer = queue.existing_workers().await;
    let Some(consumer) = consumer.map_err(|error| error.message)? else {
        return Ok(false);
    };
    let handed_out = consumer.cached_info().delivered.stream_sequence;
    let subject = turn.turn_subject(&queue.name);
    let Some(last) = queue.last_message(&subject).await? else {
        return Ok(false);
    };
    if last.sequence > handed_out {
        return Ok(false);
    }
    let workers = call_roll(client, &queue.name).await?;
    let short = turn.short();
    if workers
        .iter()
        .any(|worker| worker.turn.as_ref() == Some(&short))
    {
        return Ok(false);
    }
    let mut headers = HeaderMap::new();
    headers.insert(ASKS_AGAIN, "0");
    let message = (headers, Bytes::new());
    match publish_after(queue, &subject, message, last.sequence, limit_repeats()).await {
        Ok(_) => Ok(true),
        // Another process has requested it.
        Err(PublishRefusal::Outdated) => Ok(false),
        Err(refusal) => Err(refusal.to_string()),
    }
}
