//! Which turns workers have: each tells its turn when it receives the roll call.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, StatusCode};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::names::{QueueName, TurnName};
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;

/// How long to wait for workers that answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// A worker that answers the roll call until this is dropped.
pub(super) struct Presence {
    /// The short name of the turn that it has. Empty if it has none.
    turn: Arc<Mutex<String>>,
    answering: JoinHandle<()>,
}

impl Presence {
    /// Answers from now on, on this runtime.
    ///
    /// # Errors
    /// The connection is closed.
    pub(super) async fn announce(
        queue: &TurnQueue,
        runtime: &Handle,
    ) -> Result<Self, CommandError> {
        let turn = Arc::<Mutex<String>>::default();
        let client = queue.jetstream.client();
        let questions = client.subscribe(queue.name.roll_call()).await;
        let mut questions =
            questions.map_err(|error| queue_error("workers can't be asked about turns", error))?;
        let answer = Arc::clone(&turn);
        let answering = runtime.spawn(async move {
            while let Some(question) = questions.next().await {
                let turn = answer.lock().clone();
                if let Some(reply) = question.reply {
                    let _ = client.publish(reply, turn.into()).await;
                }
            }
        });
        Ok(Self { turn, answering })
    }

    /// Tells of this turn from now on, or that there is none.
    pub(super) fn set_turn(&self, turn: Option<&TurnName>) {
        let turn = turn.map(TurnName::short).unwrap_or_default();
        *self.turn.lock() = turn;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

/// Asks the workers of a queue for their turns. A worker without a turn answers with an empty text. Those that are stopped or cut off
/// don't answer.
///
/// # Errors
/// The connection is closed.
pub(super) async fn call_roll(client: &Client, queue: &QueueName) -> Result<Vec<String>, String> {
    let inbox = client.new_inbox();
    let mut answers = client
        .subscribe(inbox.clone())
        .await
        .map_err(|error| error.to_string())?;
    let asked = client.publish_with_reply(queue.roll_call(), inbox, bytes::Bytes::new());
    asked.await.map_err(|error| error.to_string())?;
    let mut turns = Vec::new();
    let _ = timeout(ANSWER_TIME, async {
        while let Some(answer) = answers.next().await {
            // A server that knows of no workers says so.
            if answer.status == Some(StatusCode::NO_RESPONDERS) {
                break;
            }
            turns.push(String::from_utf8_lossy(&answer.payload).into_owned());
        }
    })
    .await;
    turns.sort();
    Ok(turns)
}
