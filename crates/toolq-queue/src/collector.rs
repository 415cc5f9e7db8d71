//! Writes answers in the order in which their turns were submitted, and remembers how far it came.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use crate::connection::{QueueSession, StopSignal};
use crate::consumer::call_roll;
use crate::messages::{ASKS_AGAIN, CollectedAnswer};
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, limit_repeats, publish_after};
use crate::queue_error;
use crate::turn_log::TurnList;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::{CommandError, Exit};

/// How many answers, and how many bytes of them, are written before the position is kept.
const MAX_BUFFERED_ANSWERS: usize = 256;
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// What `collect` does.
#[derive(Debug, Clone, Copy)]
pub struct CollectSettings {
    /// End when all turns that were submitted are answered.
    pub until_empty: bool,
    /// Begin with the first turn, wherever an earlier `collect` ended.
    pub from_start: bool,
}

/// How far the answers were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CollectPosition {
    /// The sequence from which on the next list of turns is sought.
    list: u64,
    /// How many of its turns were written.
    turns: usize,
}

impl CollectPosition {
    const START: Self = Self { list: 1, turns: 0 };

    fn parse(text: &str) -> Option<Self> {
        let (list, turns) = text.split_once('.')?;
        Some(Self {
            list: list.parse().ok()?,
            turns: turns.parse().ok()?,
        })
    }
}

/// Writes whole lines for the command.
pub type WriteLines = fn(&[u8]) -> Result<(), CommandError>;

/// Answers on their way out.
struct Collector<'a> {
    queue: &'a TurnQueue,
    waiter: AnswerWaiter<'a>,
    stop: &'a StopSignal,
    write_lines: WriteLines,
    /// The message that says how far the answers were collected, or 0.
    position_message: u64,
    position: CollectPosition,
    lines: Vec<u8>,
    buffered: usize,
    /// How many calls are in doubt, by turn. A later answer of a turn takes the place of an earlier one.
    in_doubt: HashMap<TurnName, usize>,
}

impl QueueSession {
    /// Writes answers in the order in which the turns were submitted, until one of these signals, or as the settings say. Returns
    /// how the command ends.
    ///
    /// # Errors
    /// The queue can't be read, another `collect` reads it, or the answers can't be written.
    pub fn collect(
        self,
        settings: CollectSettings,
        signals: &[i32],
        write_lines: WriteLines,
    ) -> Result<Exit, CommandError> {
        self.run(async |queue, session| {
            let stop = StopSignal::install(signals)?;
            let waiter = AnswerWaiter::listen(queue, &session.client, &stop).await;
            let source = (queue, waiter.map_err(lost)?, &stop);
            let mut collector = Collector::begin(source, write_lines, settings.from_start).await?;
            collector.follow(settings.until_empty).await?;
            collector.flush().await?;
            Ok(match stop.first() {
                Some(signal) => Exit::Signal(signal),
                None if !collector.in_doubt.is_empty() => Exit::Incomplete,
                None => Exit::Ok,
            })
        })
    }
}

impl<'a> Collector<'a> {
    async fn begin(
        (queue, waiter, stop): (&'a TurnQueue, AnswerWaiter<'a>, &'a StopSignal),
        write_lines: WriteLines,
        from_start: bool,
    ) -> Result<Self, CommandError> {
        let position = queue.last_message(&queue.name.position()).await;
        let position = position.map_err(lost)?;
        let stored = position.as_ref().filter(|_| !from_start);
        let stored = stored
            .and_then(|message| CollectPosition::parse(str::from_utf8(&message.payload).ok()?));
        Ok(Self {
            queue,
            waiter,
            stop,
            write_lines,
            position_message: position.map_or(0, |message| message.sequence),
            position: stored.unwrap_or(CollectPosition::START),
            lines: Vec::new(),
            buffered: 0,
            in_doubt: HashMap::new(),
        })
    }

    /// Writes one answer after another, until a signal; with `until_empty`, until all turns are answered.
    async fn follow(&mut self, until_empty: bool) -> Result<(), CommandError> {
        while self.stop.first().is_none() {
            let lists = self.queue.name.order("*");
            let read = || self.queue.next_message(&lists, self.position.list);
            let Some(list) = self.waiter.read_until_stop(read).await.map_err(lost)? else {
                self.flush().await?;
                if until_empty {
                    break;
                }
                self.waiter.wait().await.map_err(interrupted)?;
                continue;
            };
            let input = list.subject.rsplit('.').next().unwrap_or_default();
            let turns: TurnList = serde_json::from_slice(&list.payload).map_err(lost)?;
            if !self.write_answers(input, &turns).await? {
                break;
            }
            self.position = CollectPosition {
                list: list.sequence + 1,
                turns: 0,
            };
        }
        Ok(())
    }

    /// Writes the answers of these turns of an input. Returns `false` after a signal.
    async fn write_answers(&mut self, input: &str, list: &TurnList) -> Result<bool, CommandError> {
        let names = list.turns.iter().map(|number| TurnName {
            input: input.to_owned(),
            number: *number,
        });
        let mut names: VecDeque<TurnName> = names.skip(self.position.turns).collect();
        while let Some(name) = names.pop_front() {
            let Some(answer) = self.next_answer(&name, list.after).await? else {
                return Ok(false);
            };
            match answer.in_doubt {
                0 => self.in_doubt.remove(&name),
                in_doubt => self.in_doubt.insert(name, in_doubt),
            };
            self.lines.extend_from_slice(&answer.line);
            self.lines.push(b'\n');
            self.buffered += 1;
            self.position.turns += 1;
            if self.buffered >= MAX_BUFFERED_ANSWERS || self.lines.len() >= MAX_BUFFERED_BYTES {
                self.flush().await?;
            }
        }
        Ok(true)
    }

    /// Waits for the answer of a turn. Returns `None` after a signal.
    async fn next_answer(
        &mut self,
        turn: &TurnName,
        after: u64,
    ) -> Result<Option<CollectedAnswer>, CommandError> {
        let found = self.waiter.find_answer(turn, after).await;
        if let Some(answer) = found.map_err(lost)? {
            return Ok(Some(answer));
        }
        // Write the answers that are there before waiting for this one.
        self.flush().await?;
        let answer = self.waiter.next_answer(turn, after).await;
        answer.map_err(interrupted)
    }

    /// Writes what is buffered, and then remembers it. Killed in between, or stopped while the server doesn't answer, the next
    /// `collect` writes these lines again.
    async fn flush(&mut self) -> Result<(), CommandError> {
        if self.buffered == 0 {
            return Ok(());
        }
        (self.write_lines)(&self.lines)?;
        self.lines.clear();
        let subject = self.queue.name.position();
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        let CollectPosition { list, turns } = self.position;
        let message = (headers, format!("{list}.{turns}").into());
        let (last, is_stopped) = (self.position_message, || self.stop.first().is_some());
        let mut repeats = limit_repeats();
        let gives_up = || is_stopped() || repeats();
        match publish_after(self.queue, &subject, message, last, gives_up).await {
            Ok(sequence) => self.position_message = sequence,
            Err(PublishRefusal::Unconfirmed(_)) if is_stopped() => {}
            Err(PublishRefusal::Outdated) => return Err(self.overtaken()),
            Err(refusal) => return Err(lost(refusal.to_string())),
        }
        self.buffered = 0;
        Ok(())
    }

    fn overtaken(&self) -> CommandError {
        CommandError::usage(format!(
            "another `toolq queue collect` of the queue {} has continued from here",
            self.queue.name
        ))
        .with_hint("let only one of them run; the lines that both have written are the same")
    }
}

fn interrupted(error: WaitError) -> CommandError {
    let purged = matches!(error, WaitError::Purged);
    let error = lost(error);
    if purged {
        return error.with_hint("run the same command again to collect what was submitted since");
    }
    error
}

fn lost(why: impl std::fmt::Display) -> CommandError {
    queue_error("the answers can't be collected", why)
        .with_hint("run the same command again to continue where this one ended")
}

// Waits for answers of turns, and asks for those again that the server has handed out and forgotten. Some versions of it do so when
// the server that leads a consumer is killed.

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
enum WaitError {
    #[error("{0}")]
    Unreadable(String),
    /// What is waited for isn't there, and what was submitted since is in another queue.
    #[error("the queue was purged")]
    Purged,
}

struct AnswerWaiter<'a> {
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
    async fn listen(
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
    pub(crate) async fn wait(&mut self) -> Result<(), WaitError> {
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
    async fn next_answer(
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
            if begin.elapsed() > MIN_PATIENCE
                && let Some(patience) = patience(self.queue).await
                && begin.elapsed() > patience
            {
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
    async fn find_answer(
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
    async fn read_until_stop<T, F>(&self, read: impl Fn() -> F) -> Result<Option<T>, WaitError>
    where
        F: Future<Output = Result<Option<T>, String>>,
    {
        tokio::select! {
            biased;
            found = read_patiently(read) => found.map_err(WaitError::Unreadable),
            _ = self.stop.wait() => Ok(None),
        }
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
    let taken = call_roll(client, &queue.name).await?;
    if taken.contains(&turn.short()) {
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
