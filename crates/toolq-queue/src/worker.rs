//! Pulls turns from a queue and answers them, one after another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::hand_back_pace::HandBackPace;
use crate::lease;
use crate::names::TurnName;
use crate::presence::Presence;
use crate::queue_error;
use crate::session::QueueSession;
use crate::stop::StopSignal;
use crate::turn_answering::TurnNotAnswered;
use crate::turn_holder::TurnHolder;
use crate::turn_queue::TurnQueue;
use crate::turn_run::{CallSettings, TurnSettings};
use toolq_core::exit::{CommandError, Exit};

/// How long a turn stays with a worker that gives no sign of life.
pub(crate) const DEFAULT_ACK_WAIT: Duration = Duration::from_secs(30);
/// Longest time to wait for the next turn with one request.
const MAX_PULL_WAIT: Duration = Duration::from_secs(5);
/// Time between attempts while the server doesn't answer.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How a worker works.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// Copies of the stream of the queue, if it is created.
    pub replicas: usize,
    /// After this time without a sign of life, a turn goes to another worker. `None` keeps what the queue has.
    pub ack_wait: Option<Duration>,
    /// How long to finish the current turn after a signal.
    pub drain: Duration,
    /// How many workers may be lost over a turn, or how often a turn with an unusable log may be delivered, before it isn't run
    /// anymore.
    pub max_deliveries: usize,
    /// End when no turn is left.
    pub until_empty: bool,
}

impl QueueSession {
    /// Answers turns, whose calls run on `runtime`, until one of these signals or, if the settings say so, until no turn is left.
    /// The queue is created if there is none. Returns how the command ends.
    ///
    /// # Errors
    /// The queue can't be used, or is gone.
    pub fn work(
        self,
        settings: WorkerSettings,
        calls: CallSettings,
        runtime: Runtime,
        signals: &[i32],
    ) -> Result<Exit, CommandError> {
        let exit = runtime.block_on(async {
            let stop = StopSignal::install(signals)?;
            let queue =
                TurnQueue::open_or_create(&self.client, &self.name, settings.replicas).await?;
            let turns = TurnSettings {
                calls,
                nats_runtime: self.runtime.handle().clone(),
                stop,
                notices: self.notices.clone(),
            };
            Worker::open(&queue, settings, turns).await?.work().await
        })?;
        runtime.shutdown_background();
        self.end();
        Ok(exit)
    }
}

/// A worker of one queue.
pub(crate) struct Worker<'a> {
    pub(super) queue: &'a TurnQueue,
    consumer: PullConsumer,
    ack_wait: Duration,
    pub(super) settings: WorkerSettings,
    pub(super) turns: TurnSettings,
    /// The digests of tools that turns asked for and this worker doesn't have.
    pub(super) foreign_tools: HashSet<String>,
    pace: HandBackPace,
    /// Tells those who ask about it.
    presence: Presence,
}

impl<'a> Worker<'a> {
    /// Opens the consumer that all workers share.
    ///
    /// # Errors
    /// The server refuses it.
    async fn open(
        queue: &'a TurnQueue,
        settings: WorkerSettings,
        turns: TurnSettings,
    ) -> Result<Self, CommandError> {
        let consumer = queue.open_workers(settings.ack_wait).await?;
        let presence = Presence::announce(queue, &turns.nats_runtime).await?;
        Ok(Self {
            queue,
            ack_wait: consumer.cached_info().config.ack_wait,
            consumer,
            settings,
            turns,
            foreign_tools: HashSet::new(),
            pace: HandBackPace::default(),
            presence,
        })
    }

    /// Answers turns until a signal. Returns how the command ends.
    ///
    /// # Errors
    /// The queue is gone.
    async fn work(&mut self) -> Result<Exit, CommandError> {
        let stop = self.turns.stop.clone();
        loop {
            if let Some(signal) = stop.first() {
                return Ok(Exit::Signal(signal));
            }
            let asked = lease::now();
            let message = tokio::select! {
                message = self.pull() => message,
                _ = stop.wait() => continue,
            };
            match message {
                Ok(Some(message)) => {
                    self.take(message, asked).await;
                    self.rest().await;
                }
                Ok(None) if self.settings.until_empty && self.is_empty().await => {
                    return Ok(Exit::Ok);
                }
                Ok(None) => {}
                Err(why) => {
                    self.warn(&format!("no turns can be pulled: {why}"));
                    tokio::select! {
                        is_there = self.require_queue() => is_there?,
                        _ = stop.wait() => continue,
                    }
                    tokio::select! {
                        () = sleep(RETRY_INTERVAL) => {}
                        _ = stop.wait() => {}
                    }
                }
            }
        }
    }

    /// Waits a moment for the next turn.
    async fn pull(&self) -> Result<Option<Message>, String> {
        // A lease begins when the turn is requested, so some of it must be left when the turn arrives.
        let mut wait = (self.ack_wait / 3).min(MAX_PULL_WAIT);
        if self.settings.until_empty {
            wait = wait.min(RETRY_INTERVAL);
        }
        let wait = self.pace.pull_wait(wait);
        let batch = self.consumer.batch().max_messages(1).expires(wait);
        let mut messages = batch.messages().await.map_err(|error| error.to_string())?;
        let message = messages.next().await.transpose();
        message.map_err(|error| error.to_string())
    }

    async fn is_empty(&self) -> bool {
        let info = self.consumer.get_info().await;
        info.is_ok_and(|info| info.num_pending == 0 && info.num_ack_pending == 0)
    }

    /// Returns an error if the queue was removed: no turn will ever come.
    async fn require_queue(&self) -> Result<(), CommandError> {
        if !self.queue.is_gone().await {
            return Ok(());
        }
        let what = format!("the queue {} is gone", self.queue.name);
        Err(queue_error(&what, "it was purged"))
    }

    /// Leaves turns to others for a while after handing one back.
    async fn rest(&self) {
        let Some(rest) = self.pace.rest() else {
            return;
        };
        let stop = self.turns.stop.clone();
        tokio::select! {
            () = sleep(rest) => {}
            _ = stop.wait() => {}
        }
    }

    /// Answers a turn, or hands it back.
    async fn take(&mut self, message: Message, asked: Duration) {
        let holder = Arc::new(TurnHolder::new(asked, self.ack_wait));
        let message = Arc::new(message);
        let end = match TurnName::of_subject(&message.subject) {
            Some(name) => {
                self.presence.begin_turn(&name);
                // On the runtime of the connection, so that no call delays it.
                let keeping = Arc::clone(&holder).keep(
                    self.queue.clone(),
                    name.clone(),
                    Arc::clone(&message),
                );
                let keeping = self.turns.nats_runtime.spawn(keeping);
                let end = self.answer(&name, &message, &holder).await;
                keeping.abort();
                self.presence.end_turn(end.is_ok());
                end
            }
            // It isn't a turn, so another program has published it.
            None => Ok(()),
        };
        let kind = match end {
            Ok(()) => {
                self.pace.note_answer();
                AckKind::Ack
            }
            Err(TurnNotAnswered::HandedBack(why)) => {
                let delay = self.pace.note_hand_back(self.ack_wait);
                if let Some(why) = why {
                    self.warn(&why);
                }
                if holder.lease.is_over() {
                    // It may be another worker's, which is not to lose it by this.
                    return;
                }
                AckKind::Nak(Some(delay))
            }
            Err(TurnNotAnswered::Foreign { why, delivered }) => {
                if let Some(why) = why {
                    self.warn(&why);
                }
                AckKind::Nak(Some(self.pace.note_foreign_hand_back(delivered)))
            }
            Err(TurnNotAnswered::Lost(why)) => {
                self.warn(&why);
                return;
            }
        };
        // Without an acknowledgment, another worker finds the answer there.
        if let Err(error) = message.double_ack_with(kind).await {
            self.warn(&format!("a turn can't be acknowledged: {error}"));
        }
    }

    pub(super) fn warn(&self, message: &str) {
        self.turns.notices.warn(message);
    }
}
