//! The consumer of a queue, from which all workers pull turns, and which turns they have.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{ConsumerInfoError, ConsumerInfoErrorKind};
use async_nats::jetstream::stream::ConsumerCreateStrictErrorKind;
use async_nats::{Client, StatusCode};
use futures_util::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::names::{QueueName, TurnName};
use crate::queue_error;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::text::format_duration;

/// How long a turn stays with a worker that gives no sign of life.
pub(crate) const DEFAULT_ACK_WAIT: Duration = Duration::from_secs(30);
/// The name of the consumer.
const WORKERS: &str = "workers";

/// How many turns may be with workers at the same time.
const MAX_TURNS_WITH_WORKERS: i64 = 20_000;

impl TurnQueue {
    /// Returns the consumer that all workers share, or `None` if no worker has ever used this queue.
    ///
    /// # Errors
    /// The server doesn't say whether there is one.
    pub(super) async fn existing_workers(&self) -> Result<Option<PullConsumer>, CommandError> {
        let consumer = self.stream.get_consumer::<pull::Config>(WORKERS).await;
        match consumer {
            Ok(consumer) => Ok(Some(consumer)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(self.unusable_workers(error)),
        }
    }

    /// Opens the consumer that all workers share, with this time until an unanswered turn goes to another worker. `None` keeps
    /// the time that it has. Creates it if there is none.
    ///
    /// # Errors
    /// The server refuses it, or doesn't say whether there is one. Or the time would be shorter while workers run.
    pub(super) async fn open_workers(
        &self,
        ack_wait: Option<Duration>,
    ) -> Result<PullConsumer, CommandError> {
        loop {
            if let Some(existing) = self.existing_workers().await? {
                let current = existing.cached_info().config.ack_wait;
                return match ack_wait {
                    Some(ack_wait) if ack_wait != current => {
                        self.refuse_shorter_wait(ack_wait, current).await?;
                        self.change_workers(ack_wait).await
                    }
                    _ => Ok(existing),
                };
            }
            self.create_workers(ack_wait.unwrap_or(DEFAULT_ACK_WAIT))
                .await?;
        }
    }

    /// Creates the consumer that all workers share, with this time until an unanswered turn goes to another worker. If another
    /// worker has just created it, it stays as it is.
    ///
    /// # Errors
    /// The server refuses it.
    async fn create_workers(&self, ack_wait: Duration) -> Result<(), CommandError> {
        let created = self
            .stream
            .create_consumer_strict(self.workers_config(ack_wait));
        match created.await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ConsumerCreateStrictErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(self.unusable_workers(error)),
        }
    }

    /// Changes the time until an unanswered turn goes to another worker.
    ///
    /// # Errors
    /// The server refuses it.
    async fn change_workers(&self, ack_wait: Duration) -> Result<PullConsumer, CommandError> {
        let changed = self.stream.create_consumer(self.workers_config(ack_wait));
        changed.await.map_err(|error| self.unusable_workers(error))
    }

    /// Refuses to shorten the time after which a turn goes to another worker while workers run that renew it less often: they
    /// would lose their turns.
    async fn refuse_shorter_wait(
        &self,
        ack_wait: Duration,
        current: Duration,
    ) -> Result<(), CommandError> {
        if ack_wait > current {
            return Ok(());
        }
        let client = self.jetstream.client();
        let workers = call_roll(&client, &self.name).await;
        let count = workers
            .map_err(|why| queue_error("workers can't be asked", why))?
            .len();
        if count == 0 {
            return Ok(());
        }
        let current = format_duration(current);
        Err(CommandError::usage(format!(
            "`--ack-wait` can't be shorter than the {current} of the queue {} while workers run ({count}): they would lose their turns",
            self.name
        ))
        .with_hint("end them first, or leave `--ack-wait` out"))
    }

    fn workers_config(&self, ack_wait: Duration) -> pull::Config {
        pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            filter_subject: self.name.turns(),
            ack_policy: AckPolicy::Explicit,
            ack_wait,
            max_ack_pending: MAX_TURNS_WITH_WORKERS,
            max_deliver: -1,
            ..pull::Config::default()
        }
    }

    /// Returns the time until an unanswered turn goes to another worker, or `None` if no worker has ever used this queue.
    ///
    /// # Errors
    /// The server doesn't say.
    pub(super) async fn ack_wait(&self) -> Result<Option<Duration>, CommandError> {
        let existing = self.existing_workers().await?;
        Ok(existing.map(|existing| existing.cached_info().config.ack_wait))
    }

    /// Counts the turns that were submitted, with each request to run one again.
    pub(super) async fn count_turns(&self) -> Result<u64, String> {
        let subjects = self.stream.info_with_subjects(self.name.turns()).await;
        let subjects = subjects.map_err(|error| error.to_string())?;
        let total = subjects.try_fold(
            0,
            |total, (_, count)| async move { Ok(total + count as u64) },
        );
        total.await.map_err(|error| error.to_string())
    }

    fn unusable_workers(&self, why: impl fmt::Display) -> CommandError {
        let what = format!("the consumer of the queue {} can't be opened", self.name);
        queue_error(&what, why)
    }
}

/// There is no consumer of this name.
pub(crate) fn is_not_found(error: &async_nats::Error) -> bool {
    let error = error.downcast_ref::<ConsumerInfoError>();
    error.is_some_and(|error| error.kind() == ConsumerInfoErrorKind::NotFound)
}

// Which turns workers have: each tells its turn when it receives the roll call.

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
