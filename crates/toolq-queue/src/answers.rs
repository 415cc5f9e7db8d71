//! The answers of turns: published by workers, and read in the order in which the turns were submitted.

use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;

use crate::names::TurnName;
use crate::publishing::{PublishRefusal, publish_after};
use crate::status::CallInDoubt;
use crate::turn_queue::TurnQueue;

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
    pub(super) fn without_doubts(line: String) -> Self {
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

/// The header of a message that asks for another run of a turn.
pub(super) const ASKS_AGAIN: &str = "Toolq-Again";
