//! Cancels a turn: a message in its log that no worker knows refuses every worker that has it, and tells the next one.

use async_nats::HeaderMap;
use bytes::Bytes;

use crate::names::TurnName;
use crate::ordered_publishing::{PublishRefusal, publish_after};
use crate::queue_error;
use crate::session::QueueSession;
use crate::stored_records::{CANCELS, find_turn};
use crate::submitter::limit_repeats;
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;

impl QueueSession {
    /// Cancels the turn that people call `turn`. Returns its short name.
    ///
    /// # Errors
    /// There is no such turn, or more than one, it is already answered, or the queue doesn't accept the message.
    pub fn cancel(self, turn: &str) -> Result<String, CommandError> {
        let name = self.run(async |queue, _| cancel_turn(queue, turn).await)?;
        Ok(name.short())
    }
}

/// Cancels the turn that people call `turn`.
///
/// # Errors
/// There is no such turn, or more than one, it is already answered, or the queue doesn't accept the message.
async fn cancel_turn(queue: &TurnQueue, turn: &str) -> Result<TurnName, CommandError> {
    let found = find_turn(queue, "turn", turn).await?;
    let name = found.ok_or_else(|| {
        let message = format!("the queue {} has no turn {turn}", queue.name);
        CommandError::usage(message).with_hint("`toolq queue status` names those that run")
    })?;
    let subject = name.log_subject(&queue.name);
    loop {
        require_unanswered(queue, &name).await?;
        let last = queue.last_message(&subject).await.map_err(failure)?;
        if last
            .as_ref()
            .is_some_and(|last| last.headers.get(CANCELS).is_some())
        {
            return Ok(name);
        }
        let last = last.map_or(0, |last| last.sequence);
        let mut headers = HeaderMap::new();
        headers.insert(CANCELS, "1");
        let message = (headers, Bytes::new());
        match publish_after(queue, &subject, message, last, limit_repeats()).await {
            Ok(_) => {
                // Its worker may have answered it just before.
                require_unanswered(queue, &name).await?;
                return Ok(name);
            }
            // Its worker has recorded something meanwhile, maybe the end.
            Err(PublishRefusal::Outdated) => {}
            Err(refusal) => return Err(failure(refusal.to_string())),
        }
    }
}

/// Returns an error if the turn is answered: an answer stays what it is.
async fn require_unanswered(queue: &TurnQueue, name: &TurnName) -> Result<(), CommandError> {
    if is_answered(queue, name).await.map_err(failure)? {
        let message = format!("the turn {} is answered already", name.short());
        return Err(CommandError::usage(message));
    }
    Ok(())
}

/// Returns whether the turn has an answer to its last message.
async fn is_answered(queue: &TurnQueue, name: &TurnName) -> Result<bool, String> {
    let turn = queue.last_message(&name.turn_subject(&queue.name)).await?;
    let answer = queue
        .last_message(&name.answer_subject(&queue.name))
        .await?;
    let sequence = |message: Option<async_nats::jetstream::message::StreamMessage>| {
        message.map_or(0, |message| message.sequence)
    };
    Ok(sequence(answer) > sequence(turn))
}

fn failure(why: String) -> CommandError {
    queue_error("the turn can't be canceled", why).with_hint("run the same command again")
}
