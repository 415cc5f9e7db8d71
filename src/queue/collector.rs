//! Writes answers in the order in which their turns were submitted, and remembers how far it came.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use async_nats::jetstream::message::StreamMessage;
use async_nats::{Client, HeaderMap, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{sleep, timeout};

use crate::output::{CommandError, Exit, stdout};
use crate::queue::answers::CollectedAnswer;
use crate::queue::forgotten_turns::{ask_again_if_forgotten, patience};
use crate::queue::names::TurnName;
use crate::queue::planted_bug::{PlantedBug, has_planted};
use crate::queue::queue_error;
use crate::queue::record_publisher::{PublishRefusal, expected_previous, publish_after};
use crate::queue::stop::StopSignal;
use crate::queue::submitter::limit_repeats;
use crate::queue::turn_order::TurnList;
use crate::queue::turn_queue::TurnQueue;

/// How long to wait for word of an answer before looking for it anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the server may say nothing.
const MAX_SILENCE: Duration = Duration::from_mins(1);
/// Shortest time for which an answer is waited for before its turn is looked for.
const MIN_PATIENCE: Duration = Duration::from_secs(5);
/// How many answers, and how many bytes of them, are written before the position is kept.
const MAX_BUFFERED_ANSWERS: usize = 256;
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// What `collect` does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectSettings {
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

/// Answers on their way to stdout.
struct Collector<'a> {
    queue: &'a TurnQueue,
    client: &'a Client,
    /// Hears of answers when they are published.
    news: Subscriber,
    stop: &'a StopSignal,
    /// The message that says how far the answers were collected, or 0.
    position_message: u64,
    position: CollectPosition,
    lines: Vec<u8>,
    buffered: usize,
    /// How many calls are in doubt, by turn. A later answer of a turn takes the place of an earlier one.
    in_doubt: HashMap<TurnName, usize>,
}

/// Writes answers until `stop`, or as the settings say. Returns how the command ends.
///
/// # Errors
/// The queue can't be read, another `collect` reads it, or stdout can't be written.
pub(crate) async fn collect_answers(
    queue: &TurnQueue,
    client: &Client,
    settings: CollectSettings,
    stop: &StopSignal,
) -> Result<Exit, CommandError> {
    let news = client.subscribe(queue.name.news()).await.map_err(lost)?;
    let mut collector = Collector::begin((queue, client), news, stop, settings.from_start).await?;
    collector.follow(settings.until_empty).await?;
    collector.flush().await?;
    Ok(match stop.first() {
        Some(signal) => Exit::Signal(signal),
        None if !collector.in_doubt.is_empty() => Exit::Incomplete,
        None => Exit::Ok,
    })
}

impl<'a> Collector<'a> {
    async fn begin(
        (queue, client): (&'a TurnQueue, &'a Client),
        news: Subscriber,
        stop: &'a StopSignal,
        from_start: bool,
    ) -> Result<Self, CommandError> {
        let position = queue.last_message(&queue.name.position()).await;
        let position = position.map_err(lost)?;
        let stored = position.as_ref().filter(|_| !from_start);
        let stored = stored
            .and_then(|message| CollectPosition::parse(str::from_utf8(&message.payload).ok()?));
        Ok(Self {
            queue,
            client,
            news,
            stop,
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
            let Some(list) = read_patiently(read).await? else {
                self.flush().await?;
                if until_empty {
                    break;
                }
                self.wait().await;
                continue;
            };
            let input = list.subject.rsplit('.').next().unwrap_or_default();
            let turns: TurnList = serde_json::from_slice(&list.payload).map_err(lost)?;
            if self.is_first(&list).await? && !self.write_answers(input, &turns).await? {
                break;
            }
            self.position = CollectPosition {
                list: list.sequence + 1,
                turns: 0,
            };
        }
        Ok(())
    }

    /// Returns whether a list is the first one after that which its sender knew. Another one says the same, or is void.
    async fn is_first(&self, list: &StreamMessage) -> Result<bool, CommandError> {
        let Some(previous) = expected_previous(list).filter(|_| self.queue.is_replicated()) else {
            return Ok(true);
        };
        let read = || self.queue.next_message(&list.subject, previous + 1);
        let first = read_patiently(read).await?;
        Ok(first.is_none_or(|first| first.sequence == list.sequence))
    }

    /// Writes the answers of these turns of an input. Returns `false` after a signal.
    async fn write_answers(&mut self, input: &str, list: &TurnList) -> Result<bool, CommandError> {
        let names = list.turns.iter().map(|number| TurnName {
            input: input.to_owned(),
            number: *number,
        });
        let mut names: VecDeque<TurnName> = names.skip(self.position.turns).collect();
        while let Some(name) = names.pop_front() {
            if has_planted(PlantedBug::CollectOutOfOrder) && !names.is_empty() {
                let answer = CollectedAnswer::read(self.queue, &name, list.after).await;
                if answer.map_err(lost)?.is_none() {
                    names.push_back(name);
                    tokio::task::yield_now().await;
                    continue;
                }
            }
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
        let mut begin = Instant::now();
        loop {
            let read = || CollectedAnswer::read(self.queue, turn, after);
            if let Some(answer) = read_patiently(read).await? {
                return Ok(Some(answer));
            }
            self.flush().await?;
            if self.stop.first().is_some() {
                return Ok(None);
            }
            self.wait().await;
            if begin.elapsed() > MIN_PATIENCE && self.is_impatient(begin).await {
                // Whether it was or not, and also if the server doesn't say, it is looked for again after the same time.
                let _ = ask_again_if_forgotten(self.queue, self.client, turn).await;
                begin = Instant::now();
            }
        }
    }

    /// Returns whether an answer is waited for for so long that its turn may be forgotten.
    async fn is_impatient(&self, begin: Instant) -> bool {
        let patience = patience(self.queue).await;
        patience.is_some_and(|patience| begin.elapsed() > patience)
    }

    /// Waits for news, a signal, or a moment: what came before anybody listened is no news.
    async fn wait(&mut self) {
        tokio::select! {
            _ = timeout(POLL_INTERVAL, self.news.next()) => {}
            _ = self.stop.wait() => {}
        }
        // More of them say no more than one.
        while self.news.next().now_or_never().is_some() {}
    }

    fn write_lines(&mut self) -> Result<(), CommandError> {
        stdout::write_lines(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    /// Writes what is buffered, and then remembers it. Killed in between, the next `collect` writes these lines again.
    async fn flush(&mut self) -> Result<(), CommandError> {
        if self.buffered == 0 {
            return Ok(());
        }
        self.write_lines()?;
        let subject = self.queue.name.position();
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "sub");
        let CollectPosition { list, turns } = self.position;
        let message = (headers, format!("{list}.{turns}").into());
        let kept = publish_after(
            self.queue,
            &subject,
            message,
            self.position_message,
            limit_repeats(),
        );
        self.position_message = kept.await.map_err(|refusal| match refusal {
            PublishRefusal::TakenOver => CommandError::usage(format!(
                "another `toolq collect` of the queue {} has gone on from here",
                self.queue.name
            ))
            .with_hint("let only one of them run; the lines that both have written are the same"),
            refusal => lost(refusal.to_string()),
        })?;
        self.buffered = 0;
        Ok(())
    }
}

/// Reads again for a while if the server doesn't answer: servers are replaced, and choose new leaders.
async fn read_patiently<T, F>(read: impl Fn() -> F) -> Result<T, CommandError>
where
    F: Future<Output = Result<T, String>>,
{
    let begin = Instant::now();
    loop {
        match read().await {
            Err(_) if begin.elapsed() < MAX_SILENCE => sleep(POLL_INTERVAL).await,
            read => return read.map_err(lost),
        }
    }
}

fn lost(why: impl std::fmt::Display) -> CommandError {
    queue_error("the answers can't be collected", why)
        .with_hint("the same command goes on where this one ended")
}
