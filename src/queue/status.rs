//! What is known of a queue.

use crate::output::CommandError;
use crate::queue::queue_error;
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
    /// Messages and bytes that the stream keeps.
    pub messages: u64,
    pub bytes: u64,
    /// Copies of the stream.
    pub replicas: usize,
}

/// Asks the server.
///
/// # Errors
/// It doesn't answer.
pub(crate) async fn read_status(queue: &TurnQueue) -> Result<QueueStatus, CommandError> {
    let info = queue.stream.get_info().await;
    let info = info
        .map_err(|error| queue_error(&format!("the queue {} can't be read", queue.name), error))?;
    let workers = queue.workers(None).await?;
    let workers = workers.cached_info();
    Ok(QueueStatus {
        queue: queue.name.to_string(),
        waiting: workers.num_pending,
        running: workers.num_ack_pending,
        redelivered: workers.num_redelivered,
        messages: info.state.messages,
        bytes: info.state.bytes,
        replicas: info.config.num_replicas,
    })
}
