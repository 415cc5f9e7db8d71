//! Answers one turn that a worker was given: reads what the stream has of it, runs it, and publishes the answer.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use tokio::time::sleep;

use crate::connection::StopSignal;
use crate::lease::TurnHolder;
use crate::messages::{ASKS_AGAIN, Answer, TurnMessage};
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, publish_only};
use crate::record_publisher::StoredRecords;
use crate::status::DeadTurn;
use crate::turn_log::TurnNotAnswered;
use crate::turn_session::{TakenTurn, answer_unrun, run_turn};
use crate::worker::Worker;
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
        let info = message.info();
        let info = info.map_err(|error| TurnNotAnswered::Lost(error.to_string()))?;
        let (sequence, delivered) = (info.stream_sequence, info.delivered);
        let asks_again = message.headers.as_ref();
        let asks_again = asks_again.is_some_and(|headers| headers.get(ASKS_AGAIN).is_some());
        let mut records = StoredRecords::default();
        // A turn that is delivered for the first time has no log. If it has one after all, the first record is refused.
        if delivered > 1 || asks_again {
            records = StoredRecords::read(self.queue, name).await?;
            if records.answer > sequence {
                return Ok(());
            }
        }
        holder.set_read_up_to(records.last);
        let (headers, payload) = if asks_again {
            let subject = name.turn_subject(&self.queue.name);
            let first = self
                .queue
                .next_message(&subject, 1)
                .await?
                .ok_or_else(|| TurnNotAnswered::Lost("its first message is gone".to_owned()))?;
            (Some(first.headers), first.payload)
        } else {
            (message.headers.clone(), message.payload.clone())
        };
        let payload = self.queue.unpack(headers.as_ref(), payload).await?;
        let TurnMessage {
            turn, tools_sha256, ..
        } = TurnMessage::read(&payload)?;
        self.require_tools(&tools_sha256)?;
        let last = records.answer;
        let answer = self.run(name, &turn, records, holder, delivered).await?;
        let is_over = || holder.is_over();
        if !answer.doubts.is_empty() || asks_again {
            let payload = expect_json(serde_json::to_vec(&answer.doubts));
            let subject = name.doubt_subject(&self.queue.name);
            publish_only(self.queue, &subject, payload.into(), is_over).await?;
        }
        match answer.publish(self.queue, name, last, is_over).await {
            // Another worker that had the same results has answered.
            Ok(_) | Err(PublishRefusal::Outdated) => {}
            Err(refusal) => return Err(refusal.into()),
        }
        self.queue.tell_news().await;
        Ok(())
    }

    /// Hands back what was submitted with other tools.
    fn require_tools(&self, tools_sha256: &str) -> Result<(), TurnNotAnswered> {
        if tools_sha256 == self.turns.calls.engine.tools.digest {
            return Ok(());
        }
        let path = self.turns.calls.tools_path.display();
        Err(TurnNotAnswered::Foreign(format!(
            "turns that were submitted with other tools than those of {path} are handed back: their digest is {}, this one's is {}",
            shorten(tools_sha256),
            shorten(&self.turns.calls.engine.tools.digest)
        )))
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
            Err(TurnNotAnswered::Permanent(why)) if self.gives_up_after(delivered) => {
                let reason = format!("what is known of it can't be continued: {why}");
                self.declare_dead(name, turn, reason, holder).await?;
                answer_unrun(&self.turns, turn.clone()).await
            }
            end => end,
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
        let is_over = || holder.is_over();
        let payload = expect_json(serde_json::to_vec(&dead));
        let subject = name.dead_subject(&self.queue.name);
        publish_only(self.queue, &subject, payload.into(), is_over).await?;
        Ok(())
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
