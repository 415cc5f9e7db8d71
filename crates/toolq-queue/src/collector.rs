//! Writes answers in the order in which their turns were submitted, and remembers how far it came.

use std::collections::{HashMap, VecDeque};

use async_nats::HeaderMap;

use crate::answer_waiter::{AnswerWaiter, WaitError};
use crate::answers::CollectedAnswer;
use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, publish_after};
use crate::queue_error;
use crate::session::QueueSession;
use crate::stop::StopSignal;
use crate::submitter::limit_repeats;
use crate::turn_order::TurnList;
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
