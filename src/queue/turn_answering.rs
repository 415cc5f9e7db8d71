//! Answers one turn that a worker was given: reads what the stream has of it, runs it, and publishes the answer.

use std::time::Duration;

use async_nats::jetstream::Message;
use tokio::time::sleep;

use crate::queue::answers::Answer;
use crate::queue::lease::Lease;
use crate::queue::names::TurnName;
use crate::queue::record_publisher::PublishRefusal;
use crate::queue::stop::StopSignal;
use crate::queue::turn_log::StoredRecords;
use crate::queue::turn_message::{MESSAGE_VERSION, TurnMessage};
use crate::queue::turn_queue::TurnQueue;
use crate::queue::turn_run::{TakenTurn, TurnEnd, run_turn};
use crate::queue::worker::Worker;
use toolq_core::types::Turn;

/// The header of a message that asks for another run of a turn.
pub(super) const ASKS_AGAIN: &str = "Toolq-Again";

impl Worker<'_> {
    /// Runs a turn with what the stream has of it, and publishes its answer.
    pub(super) async fn answer(
        &mut self,
        message: &Message,
        lease: &Lease,
    ) -> Result<(), TurnNotAnswered> {
        let lost = |why: String| TurnNotAnswered::Lost(why);
        let info = message.info().map_err(|error| lost(error.to_string()))?;
        let sequence = info.stream_sequence;
        let asks_again = message.headers.as_ref();
        let asks_again = asks_again.is_some_and(|headers| headers.get(ASKS_AGAIN).is_some());
        let Some(name) = TurnName::of_subject(&message.subject) else {
            return Ok(());
        };
        let mut taken = StoredTurn {
            records: StoredRecords::default(),
            answer: 0,
        };
        // A turn that nobody has had yet has no log. If it had, its first record would be refused.
        if info.delivered > 1 || asks_again {
            let stored = StoredTurn::read(self.queue, &name).await;
            taken = stored.map_err(|why| {
                TurnNotAnswered::HandedBack(Some(format!("{}: {why}", name.short())))
            })?;
            if taken.answer > sequence {
                return Ok(());
            }
        }
        let payload = if asks_again {
            let subject = name.turn_subject(&self.queue.name);
            let first = self.queue.next_message(&subject, 1).await.map_err(lost)?;
            first.map(|first| first.payload).unwrap_or_default()
        } else {
            message.payload.clone()
        };
        let turn = self.read_turn(&name, &payload)?;
        let answer = self.run(&name, turn, taken.records, lease).await?;
        let is_over = || lease.is_over();
        match answer
            .publish(self.queue, &name, taken.answer, is_over)
            .await
        {
            // Another worker that had the same results has answered.
            Ok(_) | Err(PublishRefusal::TakenOver) => {}
            Err(refusal) => return Err(lost(format!("{}: {refusal}", name.short()))),
        }
        Ok(())
    }

    fn read_turn(&mut self, name: &TurnName, payload: &[u8]) -> Result<Turn, TurnNotAnswered> {
        let hand_back = |why: String| TurnNotAnswered::HandedBack(Some(why));
        let message: TurnMessage = serde_json::from_slice(payload)
            .map_err(|error| hand_back(format!("{} can't be read: {error}", name.short())))?;
        if message.version > MESSAGE_VERSION {
            let why = format!("{} was submitted by a newer toolq", name.short());
            return Err(hand_back(why));
        }
        if message.tools_sha256 != self.turns.tools.digest {
            let is_new = self.foreign_tools.insert(message.tools_sha256.clone());
            let path = self.turns.context.tools_path.display();
            return Err(TurnNotAnswered::HandedBack(is_new.then(|| {
                format!(
                    "turns that were submitted with other tools than those of {path} are handed back: their digest is {}, this one's is {}",
                    shorten(&message.tools_sha256),
                    shorten(&self.turns.tools.digest)
                )
            })));
        }
        Ok(message.into_turn())
    }

    async fn run(
        &self,
        name: &TurnName,
        turn: Turn,
        records: StoredRecords,
        lease: &Lease,
    ) -> Result<Answer, TurnNotAnswered> {
        if turn.calls.is_empty() {
            return Ok(Answer {
                line: "[]".into(),
                in_doubt: 0,
            });
        }
        let is_dead = records.unfinished_runs() >= self.settings.max_deliveries;
        if is_dead {
            self.warn(&format!(
                "{}: {} workers were lost over this turn, so it isn't run anymore",
                name.short(),
                self.settings.max_deliveries
            ));
        }
        let taken = TakenTurn {
            name: name.clone(),
            turn,
            records,
            lease: lease.clone(),
            is_dead,
        };
        let forced = stop_after_drain(self.turns.stop.clone(), self.settings.drain);
        match run_turn(&self.turns, self.queue, taken, forced).await {
            TurnEnd::Answered(answer) => Ok(answer),
            TurnEnd::Stopped => Err(TurnNotAnswered::HandedBack(Some(format!(
                "{} was stopped and handed back",
                name.short()
            )))),
            TurnEnd::Lost(why) => Err(TurnNotAnswered::Lost(format!("{}: {why}", name.short()))),
        }
    }
}

/// Why a turn has no answer yet.
pub(super) enum TurnNotAnswered {
    /// Another worker may take it. With what there is to say.
    HandedBack(Option<String>),
    /// It is or will be another worker's.
    Lost(String),
}

/// What the stream has of a turn.
struct StoredTurn {
    records: StoredRecords,
    /// The last answer, or 0.
    answer: u64,
}

impl StoredTurn {
    async fn read(queue: &TurnQueue, name: &TurnName) -> Result<Self, String> {
        let answer = queue
            .last_message(&name.answer_subject(&queue.name))
            .await?;
        Ok(Self {
            records: StoredRecords::read(queue, name, 1).await?,
            answer: answer.map_or(0, |answer| answer.sequence),
        })
    }
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
