//! Writes answers in the order in which their turns were submitted, and remembers how far it came.

use std::time::Duration;

use async_nats::{Client, HeaderMap, Subscriber};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::output::{CommandError, Exit, stdout};
use crate::queue::answers::Answer;
use crate::queue::names::TurnName;
use crate::queue::queue_error;
use crate::queue::record_publisher::{PublishRefusal, publish_after};
use crate::queue::stop::StopSignal;
use crate::queue::turn_answering::ASKS_AGAIN;
use crate::queue::turn_queue::TurnQueue;

/// How long to wait for word of an answer before looking for it anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many answers, and how many bytes of them, are written before the position is kept.
const MAX_BUFFERED_ANSWERS: usize = 256;
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// How often the position is sent again if the server says nothing.
const MAX_REPEATS: usize = 50;

/// What `collect` does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectSettings {
    /// End when all turns that were submitted are answered.
    pub until_empty: bool,
    /// Begin with the first turn, wherever an earlier `collect` ended.
    pub from_start: bool,
}

/// Answers on their way to stdout.
struct Collector<'a> {
    queue: &'a TurnQueue,
    /// Hears of answers when they are published.
    news: Subscriber,
    stop: &'a StopSignal,
    /// The message that says how far the answers were collected, or 0.
    position_message: u64,
    /// The sequence from which on the next turn is sought.
    next: u64,
    lines: Vec<u8>,
    buffered: usize,
    in_doubt: usize,
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
    let news = client.subscribe(queue.name.answers()).await.map_err(lost)?;
    let mut collector = Collector::begin(queue, news, stop, settings.from_start).await?;
    collector.follow(settings.until_empty).await?;
    collector.flush().await?;
    Ok(match stop.first() {
        Some(signal) => Exit::Signal(signal),
        None if collector.in_doubt > 0 => Exit::Incomplete,
        None => Exit::Ok,
    })
}

impl<'a> Collector<'a> {
    async fn begin(
        queue: &'a TurnQueue,
        news: Subscriber,
        stop: &'a StopSignal,
        from_start: bool,
    ) -> Result<Self, CommandError> {
        let position = queue.last_message(&queue.name.position()).await;
        let position = position.map_err(lost)?;
        let stored = position.as_ref().filter(|_| !from_start);
        let next = stored.and_then(|message| str::from_utf8(&message.payload).ok()?.parse().ok());
        Ok(Self {
            queue,
            news,
            stop,
            position_message: position.map_or(0, |message| message.sequence),
            next: next.unwrap_or(1),
            lines: Vec::new(),
            buffered: 0,
            in_doubt: 0,
        })
    }

    /// Writes one answer after another, until a signal; with `until_empty`, until all turns are answered.
    async fn follow(&mut self, until_empty: bool) -> Result<(), CommandError> {
        while self.stop.first().is_none() {
            let turns = self.queue.name.turns();
            let turn = self.queue.next_message(&turns, self.next).await;
            let Some(turn) = turn.map_err(lost)? else {
                self.flush().await?;
                if until_empty {
                    break;
                }
                self.wait().await;
                continue;
            };
            let is_first = turn.headers.get(ASKS_AGAIN).is_none();
            if let Some(name) = TurnName::of_subject(&turn.subject).filter(|_| is_first) {
                let Some(answer) = self.next_answer(&name).await? else {
                    break;
                };
                self.in_doubt += answer.in_doubt;
                self.lines.extend_from_slice(&answer.line);
                self.lines.push(b'\n');
                self.buffered += 1;
            }
            self.next = turn.sequence + 1;
            if self.buffered >= MAX_BUFFERED_ANSWERS || self.lines.len() >= MAX_BUFFERED_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Waits for the answer of a turn. Returns `None` after a signal.
    async fn next_answer(&mut self, turn: &TurnName) -> Result<Option<Answer>, CommandError> {
        let subject = turn.answer_subject(&self.queue.name);
        loop {
            if let Some(message) = self.queue.last_message(&subject).await.map_err(lost)? {
                return Ok(Some(message.into()));
            }
            self.flush().await?;
            if self.stop.first().is_some() {
                return Ok(None);
            }
            self.wait().await;
        }
    }

    /// Waits for an answer, a signal, or a moment: what came before anybody listened is no news.
    async fn wait(&mut self) {
        tokio::select! {
            _ = timeout(POLL_INTERVAL, self.news.next()) => {}
            _ = self.stop.wait() => {}
        }
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
        let message = (headers, self.next.to_string().into());
        let mut repeats = 0;
        let gives_up = || {
            repeats += 1;
            repeats > MAX_REPEATS
        };
        let kept = publish_after(
            self.queue,
            &subject,
            message,
            self.position_message,
            gives_up,
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

fn lost(why: impl std::fmt::Display) -> CommandError {
    queue_error("the answers can't be collected", why)
        .with_hint("the same command goes on where this one ended")
}
