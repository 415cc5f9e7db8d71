//! Waits for answers of turns, and asks for those again that the server has handed out and forgotten. Some versions of it do so when
//! the server that leads a consumer is killed.

use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use crate::answers::CollectedAnswer;
use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, publish_after};
use crate::presence::call_roll;
use crate::stop::StopSignal;
use crate::submitter::limit_repeats;
use crate::turn_answering::ASKS_AGAIN;
use crate::turn_queue::TurnQueue;

/// How long to wait for word of an answer before looking for it anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the server may say nothing.
const MAX_SILENCE: Duration = Duration::from_mins(1);
/// Shortest time for which an answer is waited for before its turn is looked for.
const MIN_PATIENCE: Duration = Duration::from_secs(5);

/// After this many leases without an answer, it is checked whether a turn was forgotten.
const LEASES_TO_WAIT: u32 = 3;

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

/// Returns how long to wait for an answer before checking whether its turn was forgotten, or `None` if no worker has ever
/// used this queue or the server doesn't answer.
async fn patience(queue: &TurnQueue) -> Option<Duration> {
    Some(queue.ack_wait().await.ok()?? * LEASES_TO_WAIT)
}

/// Requests another run of a turn that was handed out, but that no worker has. If it wasn't forgotten after all, that is
/// harmless: the second worker finds the answer, or the records of the first.
///
/// # Errors
/// The server doesn't answer.
async fn ask_again_if_forgotten(
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
