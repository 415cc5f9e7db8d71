//! Answers one turn that a worker was given: reads what the stream has of it, runs it, and publishes the answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::names::TurnName;
use crate::record_publisher::{
    PublishRefusal, StoredRecords, StoredTurn, publish_after, publish_only,
};
use crate::resolver::{CallInDoubt, DeadTurn, TurnDoubts};
use crate::turn_log::TurnHolder;
use crate::turn_message::{TurnMessage, UnreadableTurn};
use crate::turn_queue::TurnQueue;
use crate::turn_session::{TakenTurn, TurnEnd, answer_unrun, run_turn};
use crate::worker::Worker;
use toolq_core::exit::CommandError;
use toolq_core::json::expect_json;
use toolq_core::types::{HaltCause, Turn};
use toolq_log::LogError;

/// The header of a message that asks for another run of a turn.
pub(super) const ASKS_AGAIN: &str = "Toolq-Again";

impl Worker<'_> {
    /// Runs a turn with what the stream has of it, and publishes its answer.
    pub(super) async fn answer(
        &mut self,
        name: &TurnName,
        message: &Message,
        holder: &Arc<TurnHolder>,
    ) -> Result<(), TurnNotAnswered> {
        let lost = |why: String| TurnNotAnswered::Lost(format!("{}: {why}", name.short()));
        let info = message.info().map_err(|error| lost(error.to_string()))?;
        let (sequence, delivered) = (info.stream_sequence, info.delivered);
        let asks_again = message.headers.as_ref();
        let asks_again = asks_again.is_some_and(|headers| headers.get(ASKS_AGAIN).is_some());
        let mut stored = StoredTurn::default();
        // A turn that is delivered for the first time has no log. If it has one after all, the first record is refused.
        if delivered > 1 || asks_again {
            let read = StoredTurn::read(self.queue, name).await;
            stored = read.map_err(|why| hand_back(name, &why))?;
            if stored.answer > sequence {
                return Ok(());
            }
        }
        holder.set_read_up_to(stored.records.last);
        let (headers, payload) = if asks_again {
            let subject = name.turn_subject(&self.queue.name);
            let first = self.queue.next_message(&subject, 1).await;
            let first = first.map_err(|why| hand_back(name, &why))?;
            let first = first.ok_or_else(|| lost("its first message is gone".to_owned()))?;
            (Some(first.headers), first.payload)
        } else {
            (message.headers.clone(), message.payload.clone())
        };
        let payload = self.queue.unpack(headers.as_ref(), payload).await;
        let payload = payload.map_err(|why| hand_back(name, &why))?;
        let (turn, tools_sha256) = TurnMessage::read(&payload)
            .map_err(|unreadable| not_read(name, unreadable, delivered))?;
        self.require_tools(&tools_sha256, delivered)?;
        let last = stored.answer;
        let answer = self.run(name, &turn, stored.records, holder, delivered);
        let answer = answer.await?;
        let is_over = || holder.lease.is_over();
        if !answer.doubts.is_empty() || asks_again {
            let doubts = TurnDoubts {
                calls: answer.doubts.clone(),
            };
            let payload = expect_json(serde_json::to_vec(&doubts));
            let subject = name.doubt_subject(&self.queue.name);
            let published = publish_only(self.queue, &subject, payload.into(), is_over).await;
            published.map_err(|refusal| lost(refusal.to_string()))?;
        }
        match answer.publish(self.queue, name, last, is_over).await {
            // Another worker that had the same results has answered.
            Ok(_) | Err(PublishRefusal::Outdated) => {}
            Err(refusal) => return Err(lost(refusal.to_string())),
        }
        self.queue.tell_news().await;
        Ok(())
    }

    /// Hands back what was submitted with other tools.
    fn require_tools(&mut self, tools_sha256: &str, delivered: i64) -> Result<(), TurnNotAnswered> {
        if tools_sha256 == self.turns.calls.engine.tools.digest {
            return Ok(());
        }
        let is_new = self.foreign_tools.insert(tools_sha256.to_owned());
        let path = self.turns.calls.tools_path.display();
        let why = is_new.then(|| {
            format!(
                "turns that were submitted with other tools than those of {path} are handed back: their digest is {}, this one's is {}",
                shorten(tools_sha256),
                shorten(&self.turns.calls.engine.tools.digest)
            )
        });
        Err(TurnNotAnswered::Foreign { why, delivered })
    }

    /// Runs a turn that was delivered this many times.
    async fn run(
        &self,
        name: &TurnName,
        turn: &Turn,
        records: StoredRecords,
        holder: &Arc<TurnHolder>,
        delivered: i64,
    ) -> Result<Answer, TurnNotAnswered> {
        if turn.calls.is_empty() {
            return Ok(Answer::without_doubts("[]".to_owned()));
        }
        let lost_workers = records.unfinished_runs();
        let halted_by = match lost_workers >= self.settings.max_deliveries {
            _ if records.is_canceled => Some(HaltCause::ClientCanceled),
            true => Some(HaltCause::WorkersLost),
            false => None,
        };
        if halted_by == Some(HaltCause::WorkersLost) {
            let reason = format!("{lost_workers} workers were lost over it");
            self.declare_dead(name, turn, reason, holder).await?;
        }
        let taken = TakenTurn {
            name: name.clone(),
            records,
            holder: Arc::clone(holder),
            halted_by,
        };
        let forced = stop_after_drain(self.turns.stop.clone(), self.settings.drain);
        match run_turn(&self.turns, self.queue, taken, turn.clone(), forced).await {
            TurnEnd::Answered(answer) => Ok(answer),
            TurnEnd::Stopped => Err(TurnNotAnswered::HandedBack(Some(format!(
                "{} was stopped and handed back",
                name.short()
            )))),
            TurnEnd::Lost(why) => Err(TurnNotAnswered::Lost(format!("{}: {why}", name.short()))),
            TurnEnd::Failed(TurnFailure::NeedsNewer(why)) => {
                let why = Some(format!("{} is handed back: {why}", name.short()));
                Err(TurnNotAnswered::Foreign { why, delivered })
            }
            TurnEnd::Failed(TurnFailure::Permanent(why)) if self.gives_up_after(delivered) => {
                let reason = format!("what is known of it can't be continued: {why}");
                self.declare_dead(name, turn, reason, holder).await?;
                let answer = answer_unrun(&self.turns, turn.clone()).await;
                answer.ok_or_else(|| hand_back(name, &why))
            }
            TurnEnd::Failed(failure) => Err(hand_back(name, &failure.to_string())),
        }
    }

    /// Returns whether a turn that no worker can continue is given up after so many deliveries.
    fn gives_up_after(&self, delivered: i64) -> bool {
        usize::try_from(delivered).is_ok_and(|delivered| delivered >= self.settings.max_deliveries)
    }

    /// Says of a turn, here and in the stream, that it isn't run anymore.
    async fn declare_dead(
        &self,
        name: &TurnName,
        turn: &Turn,
        reason: String,
        holder: &Arc<TurnHolder>,
    ) -> Result<(), TurnNotAnswered> {
        self.warn(&format!("{} isn't run anymore: {reason}", name.short()));
        let dead = DeadTurn {
            reason,
            input: turn.origin.input.clone(),
        };
        let is_over = || holder.lease.is_over();
        let payload = expect_json(serde_json::to_vec(&dead));
        let subject = name.dead_subject(&self.queue.name);
        let published = publish_only(self.queue, &subject, payload.into(), is_over).await;
        published
            .map(drop)
            .map_err(|refusal| TurnNotAnswered::Lost(format!("{}: {refusal}", name.short())))
    }
}

fn not_read(name: &TurnName, unreadable: UnreadableTurn, delivered: i64) -> TurnNotAnswered {
    let name = name.short();
    match unreadable {
        UnreadableTurn::Newer => TurnNotAnswered::Foreign {
            why: Some(format!("{name} was submitted by a newer toolq")),
            delivered,
        },
        UnreadableTurn::Invalid(why) => {
            TurnNotAnswered::HandedBack(Some(format!("{name} can't be read: {why}")))
        }
    }
}

fn hand_back(name: &TurnName, why: &str) -> TurnNotAnswered {
    TurnNotAnswered::HandedBack(Some(format!("{} is handed back: {why}", name.short())))
}

/// Why a turn has no answer yet.
pub(super) enum TurnNotAnswered {
    /// Another worker may take it. With what there is to say.
    HandedBack(Option<String>),
    /// Only a worker with other tools, or a newer toolq, can take it. With what there is to say, and how often it was delivered.
    Foreign { why: Option<String>, delivered: i64 },
    /// It is or will be another worker's.
    Lost(String),
}

/// Waits until a turn has to be stopped: some time after the first signal, or at the second.
async fn stop_after_drain(stop: StopSignal, drain: Duration) -> u8 {
    let signal = stop.wait().await;
    tokio::select! {
        () = sleep(drain) => {}
        _ = stop.wait_for_second() => {}
    }
    signal
}

fn shorten(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

// The answers of turns: published by workers, and read in the order in which the turns were submitted.

/// The header with the number of calls in doubt.
const IN_DOUBT: &str = "Toolq-In-Doubt";

/// The answer of a turn.
#[derive(Debug)]
pub(super) struct Answer {
    /// One line in the dialect of the turn, without its line break.
    pub line: Bytes,
    /// The calls that are in doubt.
    pub doubts: Vec<CallInDoubt>,
}

impl Answer {
    fn without_doubts(line: String) -> Self {
        Self {
            line: line.into(),
            doubts: Vec::new(),
        }
    }

    /// Publishes it in place of the answer `last`, or as the first one if that is 0.
    ///
    /// # Errors
    /// Another answer was published meanwhile, or it isn't known whether this one was stored.
    pub(super) async fn publish(
        &self,
        queue: &TurnQueue,
        turn: &TurnName,
        last: u64,
        mut gives_up: impl FnMut() -> bool,
    ) -> Result<u64, PublishRefusal> {
        let packed = queue.pack("answer", self.line.clone(), &mut gives_up).await;
        let (mut headers, payload) = packed?;
        if !self.doubts.is_empty() {
            headers.insert(IN_DOUBT, self.doubts.len().to_string());
        }
        let subject = turn.answer_subject(&queue.name);
        publish_after(queue, &subject, (headers, payload), last, gives_up).await
    }
}

/// An answer as it is collected.
#[derive(Debug)]
pub(super) struct CollectedAnswer {
    pub line: Bytes,
    /// Number of calls that are in doubt.
    pub in_doubt: usize,
}

impl CollectedAnswer {
    /// Reads the first answer of a turn after this sequence, if there is one yet.
    pub(super) async fn read(
        queue: &TurnQueue,
        turn: &TurnName,
        after: u64,
    ) -> Result<Option<Self>, String> {
        let subject = turn.answer_subject(&queue.name);
        match queue.next_message(&subject, after + 1).await? {
            Some(message) => Self::of_message(queue, message).await.map(Some),
            None => Ok(None),
        }
    }

    async fn of_message(queue: &TurnQueue, message: StreamMessage) -> Result<Self, String> {
        let in_doubt = message.headers.get(IN_DOUBT);
        let in_doubt = in_doubt.and_then(|count| count.as_str().parse().ok());
        let line = queue.unpack(Some(&message.headers), message.payload);
        Ok(Self {
            in_doubt: in_doubt.unwrap_or_default(),
            line: line.await?,
        })
    }
}

// Why a worker can't run a turn, which decides what becomes of the turn.

/// Why a turn can't be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TurnFailure {
    /// Another worker, or a later moment, may have more luck: the disk is full, or the server doesn't answer.
    #[error("{0}")]
    Passing(String),
    /// Only a newer toolq knows what the stream has of it.
    #[error("{0}")]
    NeedsNewer(String),
    /// No worker can continue what the stream has of it.
    #[error("{0}")]
    Permanent(String),
}

/// Files of a turn are on this machine alone.
impl From<io::Error> for TurnFailure {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

impl From<LogError> for TurnFailure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io { .. } => Self::Passing(error.to_string()),
            LogError::NewerFormat { .. } => Self::NeedsNewer(error.to_string()),
            _ => Self::Permanent(error.to_string()),
        }
    }
}

// The signals that end a command that would otherwise run forever.

/// What signals have asked for so far.
#[derive(Debug, Clone, Copy, Default)]
struct Stops {
    /// The first signal, which decides about the exit code.
    first: Option<u8>,
    count: usize,
}

/// Waits for signals. Clones wait for the same.
#[derive(Debug, Clone)]
pub(crate) struct StopSignal(watch::Receiver<Stops>);

impl StopSignal {
    /// Listens to the signals with these numbers from now on, on the runtime that is entered.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn install(numbers: &[i32]) -> Result<Self, CommandError> {
        let (sender, receiver) = watch::channel(Stops::default());
        for number in numbers {
            let signals = signal(SignalKind::from_raw(*number));
            let mut signals = signals.map_err(|error| {
                let message = format!("failed to install signal handlers: {error}; nothing ran");
                CommandError::resources(message)
            })?;
            let number = u8::try_from(*number).unwrap_or_default();
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    sender.send_modify(|stops| {
                        stops.first.get_or_insert(number);
                        stops.count += 1;
                    });
                }
            });
        }
        Ok(Self(receiver))
    }

    /// Waits for the first signal, and returns its number.
    pub(crate) async fn wait(&self) -> u8 {
        self.wait_for_count(1).await
    }

    /// Waits for the second signal, whose sender doesn't want to wait until the first takes effect.
    async fn wait_for_second(&self) -> u8 {
        self.wait_for_count(2).await
    }

    /// Returns the first signal, if there was one.
    pub(crate) fn first(&self) -> Option<u8> {
        self.0.borrow().first
    }

    async fn wait_for_count(&self, count: usize) -> u8 {
        let mut receiver = self.0.clone();
        let waited = receiver.wait_for(|stops| stops.count >= count).await;
        match waited.map(|stops| stops.first) {
            Ok(Some(first)) => first,
            // The listeners live as long as the runtime.
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_full_disk_says_nothing_about_a_turn() {
        let path = PathBuf::from("turn.jsonl");
        let full = LogError::Io {
            path: path.clone(),
            action: "written",
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(matches!(full.into(), TurnFailure::Passing(_)));
        let newer = LogError::NewerFormat {
            path: path.clone(),
            major: 9,
            minor: 0,
        };
        assert!(matches!(newer.into(), TurnFailure::NeedsNewer(_)));
        let damaged = LogError::NotALog(path);
        assert!(matches!(damaged.into(), TurnFailure::Permanent(_)));
    }
}
