//! Pulls turns from a queue and answers them, one after another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::connection::{QueueSession, StopSignal};
use crate::consumer::Presence;
use crate::lease::{self, TurnHolder};
use crate::names::TurnName;
use crate::queue_error;
use crate::turn_log::TurnNotAnswered;
use crate::turn_queue::TurnQueue;
use crate::turn_session::{CallSettings, TurnSettings};
use toolq_core::exit::{CommandError, Exit};

/// Longest time to wait for the next turn with one request.
const MAX_PULL_WAIT: Duration = Duration::from_secs(5);
/// Time between attempts while the server doesn't answer.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long a turn that was handed back waits for another worker.
const HAND_BACK_DELAY: Duration = Duration::from_millis(500);
/// The same for a turn that needs other tools. It doubles each time up to this, because as long as such a turn is due, the server
/// gives it out before all turns that came later.
const MAX_FOREIGN_DELAY: Duration = Duration::from_secs(8);
/// Longest time to wait with one request while turns that need other tools may come back. The server gives a turn to whichever
/// worker has waited longest, so with young requests, workers that have the tools go first.
const YOUNG_PULL_WAIT: Duration = Duration::from_millis(200);
/// Longest time that a worker leaves turns to others after it has handed one back.
const MAX_REST: Duration = Duration::from_secs(8);

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
    /// What was said about turns that only other workers can take.
    said_of_foreign: HashSet<String>,
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
            said_of_foreign: HashSet::new(),
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
                self.presence.set_turn(Some(&name));
                // On the runtime of the connection, so that no call delays it.
                let keeping = Arc::clone(&holder).keep(
                    self.queue.clone(),
                    name.clone(),
                    Arc::clone(&message),
                );
                let keeping = self.turns.nats_runtime.spawn(keeping);
                let end = self.answer(&name, &message, &holder).await;
                keeping.abort();
                self.presence.set_turn(None);
                end.map_err(|why| (name.short(), why))
            }
            // It isn't a turn, so another program has published it.
            None => Ok(()),
        };
        let kind = match end {
            Ok(()) => {
                self.pace.note_answer();
                AckKind::Ack
            }
            Err((name, TurnNotAnswered::HandedBack(why) | TurnNotAnswered::Permanent(why))) => {
                let delay = self.pace.note_hand_back(self.ack_wait);
                self.warn(&format!("{name} is handed back: {why}"));
                if holder.is_over() {
                    // It may be another worker's, which is not to lose it by this.
                    return;
                }
                AckKind::Nak(Some(delay))
            }
            Err((_, TurnNotAnswered::Foreign(why))) => {
                if self.said_of_foreign.insert(why.clone()) {
                    self.warn(&why);
                }
                let delivered = message.info().map_or(1, |info| info.delivered);
                AckKind::Nak(Some(self.pace.note_foreign_hand_back(delivered)))
            }
            Err((name, TurnNotAnswered::Lost(why))) => {
                self.warn(&format!("{name}: {why}"));
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

/// What a worker has handed back lately.
#[derive(Debug, Default)]
struct HandBackPace {
    /// How many turns it has handed back since it last answered one.
    handed_back: u32,
    /// Until when a turn that needs other tools may come back, by [`lease::now`].
    foreign_until: Duration,
}

impl HandBackPace {
    /// Notes that a turn was answered.
    fn note_answer(&mut self) {
        self.handed_back = 0;
    }

    /// Notes that a turn is handed back to a queue with this `ack_wait`. Returns how long the turn waits.
    fn note_hand_back(&mut self, ack_wait: Duration) -> Duration {
        self.handed_back = self.handed_back.saturating_add(1);
        HAND_BACK_DELAY.min(ack_wait)
    }

    /// Notes that a turn is handed back that needs other tools, after it was delivered this many times. Returns how long
    /// the turn waits.
    fn note_foreign_hand_back(&mut self, delivered: i64) -> Duration {
        let delay = foreign_delay(delivered);
        self.foreign_until = lease::now() + delay + MAX_FOREIGN_DELAY;
        delay
    }

    /// Returns the longest time to wait with one request, which is `wait` unless a turn that needs other tools may come back.
    fn pull_wait(&self, wait: Duration) -> Duration {
        if lease::now() < self.foreign_until {
            return wait.min(YOUNG_PULL_WAIT);
        }
        wait
    }

    /// Returns how long to leave turns to others, if the worker has just handed one back. The server gives a turn to the worker
    /// that has waited longest, so without a pause it could be the same worker each time.
    fn rest(&self) -> Option<Duration> {
        if self.handed_back == 0 {
            return None;
        }
        let exponent = self.handed_back.min(4);
        Some((HAND_BACK_DELAY * 2_u32.pow(exponent)).min(MAX_REST))
    }
}

/// Returns how long a turn that needs other tools waits after it was delivered this many times.
fn foreign_delay(delivered: i64) -> Duration {
    let exponent = u32::try_from(delivered.clamp(1, 8) - 1).unwrap_or_default();
    (HAND_BACK_DELAY * 2_u32.pow(exponent)).min(MAX_FOREIGN_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_turns_are_due_less_and_less_often() {
        let delays = [1, 2, 3, 7, 100].map(|delivered| foreign_delay(delivered).as_millis());
        assert_eq!(delays, [500, 1_000, 2_000, 8_000, 8_000]);
    }
}
