//! The answers of turns: published by workers, and read in the order in which the turns were submitted.

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;

use crate::queue::names::TurnName;
use crate::queue::record_publisher::{PublishRefusal, publish_after};
use crate::queue::turn_queue::TurnQueue;

/// The header with the number of calls in doubt.
const IN_DOUBT: &str = "Toolq-In-Doubt";

/// The answer of a turn.
#[derive(Debug)]
pub(super) struct Answer {
    /// One line in the dialect of the turn, without its line break.
    pub line: Bytes,
    /// Number of calls that are in doubt.
    pub in_doubt: usize,
}

impl Answer {
    /// Publishes it in place of the answer `last`, or as the first one if that is 0.
    ///
    /// # Errors
    /// There is another answer by now, or nobody knows.
    pub(super) async fn publish(
        &self,
        queue: &TurnQueue,
        turn: &TurnName,
        last: u64,
        gives_up: impl FnMut() -> bool,
    ) -> Result<u64, PublishRefusal> {
        let mut headers = HeaderMap::new();
        if self.in_doubt > 0 {
            headers.insert(IN_DOUBT, self.in_doubt.to_string());
        }
        let subject = turn.answer_subject(&queue.name);
        let message = (headers, self.line.clone());
        publish_after(queue, &subject, message, last, gives_up).await
    }
}

impl From<StreamMessage> for Answer {
    fn from(message: StreamMessage) -> Self {
        let in_doubt = message.headers.get(IN_DOUBT);
        Self {
            in_doubt: in_doubt
                .and_then(|count| count.as_str().parse().ok())
                .unwrap_or_default(),
            line: message.payload,
        }
    }
}
