//! What is known of a queue.

use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;

use crate::output::CommandError;
use crate::queue::doubts::{CallInDoubt, list_dead_turns, list_doubts};
use crate::queue::presence::{WorkerReport, call_roll};
use crate::queue::queue_error;
use crate::queue::server_sync::{SyncMode, find_sync_mode};
use crate::queue::turn_queue::TurnQueue;

/// A queue at a moment.
#[derive(Debug, serde::Serialize)]
pub(crate) struct QueueStatus {
    pub queue: String,
    /// Turns that no worker has taken yet.
    pub waiting: u64,
    /// Turns that are with workers.
    pub running: usize,
    /// Turns that were given to another worker and have no answer yet.
    pub redelivered: usize,
    /// The workers that answer the roll call.
    pub workers: Vec<WorkerReport>,
    /// Calls in doubt, with their turns.
    pub in_doubt: Vec<CallOfTurn>,
    /// Number of turns that aren't run anymore.
    pub dead: usize,
    /// Messages and bytes that the stream keeps.
    pub messages: u64,
    pub bytes: u64,
    /// Bytes of what is too large for messages.
    pub object_bytes: u64,
    /// Copies of the stream.
    pub replicas: usize,
    /// When the server writes to its disk.
    pub sync: SyncMode,
}

/// A call in doubt and its turn.
#[derive(Debug, serde::Serialize)]
pub(crate) struct CallOfTurn {
    pub turn: String,
    #[serde(flatten)]
    pub call: CallInDoubt,
}

impl QueueStatus {
    /// Returns how many turns all workers answer in a second, over the last minute.
    pub(crate) fn rate(&self) -> f64 {
        let rates = self.workers.iter().map(WorkerReport::rate);
        // The sum of nothing would be -0.
        rates.fold(0.0, |sum, rate| sum + rate)
    }
}

/// Asks the server, and the workers.
///
/// # Errors
/// The server doesn't answer.
pub(crate) async fn read_status(
    queue: &TurnQueue,
    client: &Client,
) -> Result<QueueStatus, CommandError> {
    let unreadable =
        |why: String| queue_error(&format!("the queue {} can't be read", queue.name), why);
    let info = queue.stream.get_info().await;
    let info = info.map_err(|error| unreadable(error.to_string()))?;
    let consumer = queue.existing_workers().await?;
    let consumer = consumer.as_ref().map(PullConsumer::cached_info);
    let waiting = match consumer {
        Some(consumer) => consumer.num_pending,
        None => queue.count_turns().await.map_err(unreadable)?,
    };
    let doubts = list_doubts(queue).await.map_err(unreadable)?;
    let in_doubt = doubts.into_iter().flat_map(|(turn, doubts)| {
        let turn = turn.short();
        let calls = doubts.calls.into_iter();
        calls.map(move |call| CallOfTurn {
            turn: turn.clone(),
            call,
        })
    });
    Ok(QueueStatus {
        queue: queue.name.to_string(),
        waiting,
        running: consumer.map_or(0, |consumer| consumer.num_ack_pending),
        redelivered: consumer.map_or(0, |consumer| consumer.num_redelivered),
        workers: call_roll(client, &queue.name).await.map_err(unreadable)?,
        in_doubt: in_doubt.collect(),
        dead: list_dead_turns(queue).await.map_err(unreadable)?.len(),
        messages: info.state.messages,
        bytes: info.state.bytes,
        object_bytes: queue.object_bytes().await.map_err(unreadable)?,
        replicas: info.config.num_replicas,
        sync: find_sync_mode(client).await,
    })
}
