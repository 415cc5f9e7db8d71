//! Waits for answers of turns, and asks for those again that the server has forgotten.

use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use crate::answers::CollectedAnswer;
use crate::forgotten_turns::{ask_again_if_forgotten, patience};
use crate::names::TurnName;
use crate::stop::StopSignal;
use crate::turn_queue::TurnQueue;

/// How long to wait for word of an answer before looking for it anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the server may say nothing.
const MAX_SILENCE: Duration = Duration::from_mins(1);
/// Shortest time for which an answer is waited for before its turn is looked for.
const MIN_PATIENCE: Duration = Duration::from_secs(5);

/// Why no answer can be waited for.
#[derive(Debug, thiserror::Error)]
pub(super) enum WaitError {
    #[error("{0}")]
    Unreadable(String),
    /// What is waited for isn't there, and what was submitted since is in another queue.
    #[error("the queue was purged")]
    Purged,
}

pub(super) struct AnswerWaiter<'a> {
    queue: &'a TurnQueue,
    client: &'a Client,
    /// Receives a notification when answers are published.
    news: Subscriber,
    stop: &'a StopSignal,
}

impl<'a> AnswerWaiter<'a> {
    /// Listens from now on.
    ///
    /// # Errors
    /// The connection is closed.
    pub(super) async fn listen(
        queue: &'a TurnQueue,
        client: &'a Client,
        stop: &'a StopSignal,
    ) -> Result<Self, String> {
        let news = client.subscribe(queue.name.news()).await;
        Ok(Self {
            queue,
            client,
            news: news.map_err(|error| error.to_string())?,
            stop,
        })
    }

    /// Waits for a notification or a signal, but only for a moment, because answers from before the subscription cause no
    /// notification.
    ///
    /// # Errors
    /// The queue was purged.
    pub(super) async fn wait(&mut self) -> Result<(), WaitError> {
        tokio::select! {
            _ = timeout(POLL_INTERVAL, self.news.next()) => {}
            _ = self.stop.wait() => {}
        }
        // Several notifications mean no more than one.
        while self.news.next().now_or_never().is_some() {}
        if self.queue.is_gone().await {
            return Err(WaitError::Purged);
        }
        Ok(())
    }

    /// Waits for the first answer of a turn after this sequence. If that takes long, the turn may have been forgotten, and
    /// another run of it is requested. Returns `None` after a signal.
    ///
    /// # Errors
    /// The queue was purged, or the server says nothing for too long.
    pub(super) async fn next_answer(
        &mut self,
        turn: &TurnName,
        after: u64,
    ) -> Result<Option<CollectedAnswer>, WaitError> {
        let mut begin = Instant::now();
        loop {
            if let Some(answer) = self.find_answer(turn, after).await? {
                return Ok(Some(answer));
            }
            if self.stop.first().is_some() {
                return Ok(None);
            }
            self.wait().await?;
            if begin.elapsed() > MIN_PATIENCE && self.is_impatient(begin).await {
                // Check again after the same time, whether or not it was forgotten, and also if the server doesn't answer.
                let _ = ask_again_if_forgotten(self.queue, self.client, turn).await;
                begin = Instant::now();
            }
        }
    }

    /// Reads the first answer of a turn after this sequence. Returns `None` if there is none yet, or after a signal.
    ///
    /// # Errors
    /// The server says nothing for too long.
    pub(super) async fn find_answer(
        &self,
        turn: &TurnName,
        after: u64,
    ) -> Result<Option<CollectedAnswer>, WaitError> {
        self.read_until_stop(|| CollectedAnswer::read(self.queue, turn, after))
            .await
    }

    /// Reads, for a while also from a server that doesn't answer. Returns `None` if there is nothing, or after a signal.
    ///
    /// # Errors
    /// The server says nothing for too long.
    pub(super) async fn read_until_stop<T, F>(
        &self,
        read: impl Fn() -> F,
    ) -> Result<Option<T>, WaitError>
    where
        F: Future<Output = Result<Option<T>, String>>,
    {
        tokio::select! {
            biased;
            found = read_patiently(read) => found.map_err(WaitError::Unreadable),
            _ = self.stop.wait() => Ok(None),
        }
    }

    async fn is_impatient(&self, begin: Instant) -> bool {
        let patience = patience(self.queue).await;
        patience.is_some_and(|patience| begin.elapsed() > patience)
    }
}

/// Reads again for a while if the server doesn't answer: servers are replaced, and choose new leaders.
///
/// # Errors
/// The server says nothing for too long.
async fn read_patiently<T, F>(read: impl Fn() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, String>>,
{
    let begin = Instant::now();
    loop {
        match read().await {
            Err(_) if begin.elapsed() < MAX_SILENCE => sleep(POLL_INTERVAL).await,
            read => return read,
        }
    }
}
