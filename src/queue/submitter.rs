//! Publishes turns, each once.

use std::collections::VecDeque;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;

use crate::output::CommandError;
use crate::queue::names::TurnName;
use crate::queue::queue_error;
use crate::queue::record_publisher::{PublishRefusal, is_behind, publish_after};
use crate::queue::turn_message::TurnMessage;
use crate::queue::turn_queue::TurnQueue;
use toolq_core::types::{AnswerForm, Turn};

/// How many turns may be on their way to the server.
const MAX_IN_FLIGHT: usize = 256;
/// How often a turn is sent again if the server says nothing.
const MAX_REPEATS: usize = 50;

/// How many turns were published.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Submission {
    pub new: usize,
    /// Turns that the queue had already.
    pub known: usize,
}

/// A turn that the server hasn't confirmed.
struct SentTurn {
    name: TurnName,
    payload: Bytes,
    ack: PublishAckFuture,
}

/// Publishes turns. Many are on their way at the same time, in order.
pub(crate) struct Submitter {
    queue: TurnQueue,
    tools_sha256: String,
    sent: VecDeque<SentTurn>,
    submission: Submission,
}

impl Submitter {
    pub(crate) fn new(queue: TurnQueue, tools_sha256: String) -> Self {
        Self {
            queue,
            tools_sha256,
            sent: VecDeque::new(),
            submission: Submission::default(),
        }
    }

    /// Publishes a turn of the input `path`, whose digest is `input`.
    ///
    /// # Errors
    /// The queue doesn't take it.
    pub(crate) async fn submit(
        &mut self,
        turn: &Turn,
        (path, input): (&str, &str),
        form: Option<AnswerForm>,
    ) -> Result<(), CommandError> {
        let name = TurnName {
            input: input.to_owned(),
            number: turn.number,
        };
        let form = form.unwrap_or(turn.answer_form);
        let message = TurnMessage::new(turn, &self.tools_sha256, path, form);
        let payload = serde_json::to_vec(&message).map_err(|error| rejection(&name, error))?;
        let payload = Bytes::from(payload);
        let publish = PublishMessage::build()
            .payload(payload.clone())
            .expected_last_subject_sequence(0);
        let subject = name.turn_subject(&self.queue.name);
        let sent = self.queue.jetstream.send_publish(subject, publish).await;
        let ack = sent.map_err(|error| rejection(&name, error))?;
        self.sent.push_back(SentTurn { name, payload, ack });
        if self.sent.len() >= MAX_IN_FLIGHT {
            self.confirm_next().await?;
        }
        Ok(())
    }

    /// Waits until all turns are stored.
    ///
    /// # Errors
    /// The queue doesn't take one of them.
    pub(crate) async fn finish(mut self) -> Result<Submission, CommandError> {
        while !self.sent.is_empty() {
            self.confirm_next().await?;
        }
        Ok(self.submission)
    }

    async fn confirm_next(&mut self) -> Result<(), CommandError> {
        let Some(SentTurn { name, payload, ack }) = self.sent.pop_front() else {
            return Ok(());
        };
        match ack.await {
            Ok(_) => self.submission.new += 1,
            Err(error) if is_behind(&error) => self.submission.known += 1,
            Err(_) => self.repeat(&name, payload).await?,
        }
        Ok(())
    }

    /// Sends a turn again of which the server said nothing. If it was stored all the same, it isn't stored twice.
    async fn repeat(&mut self, name: &TurnName, payload: Bytes) -> Result<(), CommandError> {
        let subject = name.turn_subject(&self.queue.name);
        let mut repeats = 0;
        let gives_up = || {
            repeats += 1;
            repeats > MAX_REPEATS
        };
        let message = (HeaderMap::new(), payload);
        match publish_after(&self.queue, &subject, message, 0, gives_up).await {
            Ok(_) => self.submission.new += 1,
            Err(PublishRefusal::TakenOver) => self.submission.known += 1,
            Err(refusal) => return Err(rejection(name, refusal)),
        }
        Ok(())
    }
}

fn rejection(turn: &TurnName, why: impl std::fmt::Display) -> CommandError {
    queue_error(&format!("turn {} can't be submitted", turn.number), why).with_hint(
        "the same command goes on where it stopped: what the queue has isn't submitted again",
    )
}
