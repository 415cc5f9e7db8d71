//! Answers one turn that a worker was given: reads what the stream has of it, runs it, and publishes the answer.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use tokio::time::sleep;

use crate::answers::{ASKS_AGAIN, Answer};
use crate::connection::StopSignal;
use crate::lease::TurnHolder;
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, publish_only};
use crate::record_publisher::{StoredRecords, StoredTurn};
use crate::status::{DeadTurn, TurnDoubts};
use crate::turn_log::TurnFailure;
use crate::turn_message::{TurnMessage, UnreadableTurn};
use crate::turn_session::{TakenTurn, TurnEnd, answer_unrun, run_turn};
use crate::worker::{TurnNotAnswered, Worker};
use toolq_core::json::expect_json;
use toolq_core::types::{HaltCause, Turn};

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
