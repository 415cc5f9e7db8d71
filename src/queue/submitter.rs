//! Publishes turns, each once.

use std::collections::VecDeque;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;

use crate::output::CommandError;
use crate::queue::large_bodies::MAX_BODY_BYTES;
use crate::queue::names::TurnName;
use crate::queue::ordered_publishing::{PublishRefusal, has_newer_message, publish_after};
use crate::queue::queue_error;
use crate::queue::turn_message::TurnMessage;
use crate::queue::turn_order::{MAX_LISTED_TURNS, list_turns};
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
    message: (HeaderMap, Bytes),
    ack: PublishAckFuture,
}

/// Publishes turns. Many are on their way at the same time; those that are stored are listed in order.
pub(crate) struct Submitter {
    queue: TurnQueue,
    tools_sha256: String,
    sent: VecDeque<SentTurn>,
    /// Turns of the input `input` that are stored and not listed.
    stored: Vec<usize>,
    input: String,
    submission: Submission,
}

impl Submitter {
    pub(crate) fn new(queue: TurnQueue, tools_sha256: String) -> Self {
        Self {
            queue,
            tools_sha256,
            sent: VecDeque::new(),
            stored: Vec::new(),
            input: String::new(),
            submission: Submission::default(),
        }
    }

    /// Publishes a turn of the input `path`, whose name in the queue is `input`.
    ///
    /// # Errors
    /// The queue doesn't take it.
    pub(crate) async fn submit(
        &mut self,
        turn: &Turn,
        path: &str,
        input: &str,
        form: Option<AnswerForm>,
    ) -> Result<(), CommandError> {
        if self.input != input {
            self.finish_input().await?;
            input.clone_into(&mut self.input);
        }
        let name = TurnName {
            input: input.to_owned(),
            number: turn.number,
        };
        let form = form.unwrap_or(turn.answer_form);
        let message = TurnMessage::new(turn, &self.tools_sha256, path, form);
        let payload = serde_json::to_vec(&message).map_err(|error| rejection(&name, error))?;
        let subject = name.turn_subject(&self.queue.name);
        let payload = Bytes::from(payload);
        if payload.len() > MAX_BODY_BYTES {
            let known = self.queue.last_message(&subject).await;
            if known.map_err(|why| rejection(&name, why))?.is_some() {
                self.confirm_all().await?;
                self.submission.known += 1;
                return self.add_stored(turn.number).await;
            }
        }
        let packed = self.queue.pack("turn", payload, limit_repeats()).await;
        let message = packed.map_err(|refusal| rejection(&name, refusal))?;
        let publish = PublishMessage::build()
            .headers(message.0.clone())
            .payload(message.1.clone())
            .expected_last_subject_sequence(0);
        let sent = self.queue.jetstream.send_publish(subject, publish).await;
        let ack = sent.map_err(|error| rejection(&name, error))?;
        self.sent.push_back(SentTurn { name, message, ack });
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
        self.finish_input().await?;
        Ok(self.submission)
    }

    /// Waits until all turns of the input are stored, and lists them.
    async fn finish_input(&mut self) -> Result<(), CommandError> {
        self.confirm_all().await?;
        self.list_stored().await
    }

    async fn confirm_all(&mut self) -> Result<(), CommandError> {
        while !self.sent.is_empty() {
            self.confirm_next().await?;
        }
        Ok(())
    }

    async fn confirm_next(&mut self) -> Result<(), CommandError> {
        let Some(SentTurn { name, message, ack }) = self.sent.pop_front() else {
            return Ok(());
        };
        match ack.await {
            Ok(_) => self.submission.new += 1,
            Err(error) if has_newer_message(&error) => self.submission.known += 1,
            Err(_) => self.repeat(&name, message).await?,
        }
        self.add_stored(name.number).await
    }

    async fn add_stored(&mut self, number: usize) -> Result<(), CommandError> {
        self.stored.push(number);
        if self.stored.len() >= MAX_LISTED_TURNS {
            self.list_stored().await?;
        }
        Ok(())
    }

    async fn list_stored(&mut self) -> Result<(), CommandError> {
        let numbers = std::mem::take(&mut self.stored);
        let listed = list_turns(&self.queue, &self.input, &numbers, limit_repeats()).await;
        listed.map_err(|refusal| {
            queue_error("the order of the turns can't be stored", refusal).with_hint(CONTINUE_HINT)
        })?;
        self.queue.tell_news().await;
        Ok(())
    }

    /// Sends a turn again of which the server said nothing. If it was stored all the same, it isn't stored twice.
    async fn repeat(
        &mut self,
        name: &TurnName,
        message: (HeaderMap, Bytes),
    ) -> Result<(), CommandError> {
        let subject = name.turn_subject(&self.queue.name);
        match publish_after(&self.queue, &subject, message, 0, limit_repeats()).await {
            Ok(_) => self.submission.new += 1,
            Err(PublishRefusal::Outdated) => self.submission.known += 1,
            Err(refusal) => return Err(rejection(name, refusal)),
        }
        Ok(())
    }
}

/// Gives up after a while.
pub(super) fn limit_repeats() -> impl FnMut() -> bool {
    let mut repeats = 0;
    move || {
        repeats += 1;
        repeats > MAX_REPEATS
    }
}

const CONTINUE_HINT: &str =
    "run the same command again to continue; submitted turns aren't submitted twice";

fn rejection(turn: &TurnName, why: impl std::fmt::Display) -> CommandError {
    queue_error(&format!("turn {} can't be submitted", turn.number), why).with_hint(CONTINUE_HINT)
}
