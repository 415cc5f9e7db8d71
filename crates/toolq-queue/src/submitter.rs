//! Publishes turns, each once.

use std::collections::VecDeque;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::connection::QueueSession;
use crate::large_bodies::MAX_BODY_BYTES;
use crate::messages::TurnMessage;
use crate::names::TurnName;
use crate::publishing::{PublishRefusal, has_newer_message, limit_repeats, publish_after};
use crate::queue_error;
use crate::record_publisher::{CANCELS, find_turn};
use crate::turn_log::{MAX_LISTED_TURNS, list_turns};
use crate::turn_queue::TurnQueue;
use toolq_core::exit::CommandError;
use toolq_core::json::Input;
use toolq_core::types::{AnswerForm, Turn};

/// How many turns may be on their way to the server.
const MAX_IN_FLIGHT: usize = 256;

/// How many turns were published.
#[derive(Debug, Default, Clone, Copy)]
pub struct Submission {
    /// Turns that the queue didn't have yet.
    pub new: usize,
    /// Turns that the queue had already.
    pub known: usize,
}

/// How turns are submitted.
#[derive(Debug)]
pub struct SubmitSettings {
    /// The digest of the tools that the turns are to run with.
    pub tools_sha256: String,
    /// The form of the answers; `None` is that of the calls.
    pub form: Option<AnswerForm>,
    /// Submits inputs again that the queue has.
    pub is_new: bool,
    /// Copies of the stream of the queue, if it is created.
    pub replicas: usize,
}

/// The turns of an input.
pub struct SubmittedInput {
    /// The path of the input as it was given, or `-`.
    pub path: String,
    /// What tells it from other inputs.
    pub digest: String,
    /// The turns, read one by one.
    pub turns: Box<dyn Iterator<Item = Result<Turn, CommandError>>>,
}

impl SubmittedInput {
    /// Creates an input of which only the turns are known, as that of a stream.
    pub fn of_turns(path: String, turns: Vec<Turn>) -> Self {
        Self {
            path,
            digest: digest_turns(&turns),
            turns: Box::new(turns.into_iter().map(Ok)),
        }
    }
}

/// Digests turns in place of the bytes of a stream, which aren't kept.
fn digest_turns(turns: &[Turn]) -> String {
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let texts = calls.flat_map(|call| {
        let input = call.input.as_ref().map(Input::text);
        [call.id.as_str(), &*call.name, input.unwrap_or_default()]
    });
    combine_digests(texts)
}

impl QueueSession {
    /// Publishes every turn that the queue doesn't have yet. The queue is created if there is none.
    ///
    /// # Errors
    /// An input is invalid, or the queue doesn't take a turn.
    pub fn submit(
        self,
        settings: SubmitSettings,
        inputs: impl Iterator<Item = Result<SubmittedInput, CommandError>>,
    ) -> Result<Submission, CommandError> {
        let submission = self.runtime.block_on(async {
            let queue =
                TurnQueue::open_or_create(&self.client, &self.name, settings.replicas).await?;
            let mut submitter = Submitter {
                queue,
                tools_sha256: settings.tools_sha256,
                sent: VecDeque::new(),
                stored: Vec::new(),
                input: String::new(),
                submission: Submission::default(),
            };
            for input in inputs {
                let input = input?;
                let digest = name_input(&input.digest, settings.is_new);
                for turn in input.turns {
                    let turn = turn?;
                    if is_open(&turn) {
                        submitter
                            .submit(&turn, &input.path, &digest, settings.form)
                            .await?;
                    }
                }
            }
            submitter.finish().await
        })?;
        self.end();
        Ok(submission)
    }
}

/// A turn whose calls are all answered isn't open. One without calls is: its line is answered by an empty list.
fn is_open(turn: &Turn) -> bool {
    !turn.calls.is_empty() || turn.call_count() == 0
}

/// If it is to be submitted again, an input gets a name that no other submission has.
fn name_input(digest: &str, is_new: bool) -> String {
    if !is_new {
        return combine_digests([digest].into_iter());
    }
    let unique = toolq_engine::random_task_id();
    combine_digests([digest, &unique].into_iter())
}

/// Returns a digest of the texts, in hexadecimal.
fn combine_digests<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    HEXLOWER.encode(&digest.finalize())
}

/// A turn that the server hasn't confirmed.
struct SentTurn {
    name: TurnName,
    message: (HeaderMap, Bytes),
    ack: PublishAckFuture,
}

/// Publishes turns. Many are on their way at the same time; those that are stored are listed in order.
struct Submitter {
    queue: TurnQueue,
    tools_sha256: String,
    sent: VecDeque<SentTurn>,
    /// Turns of the input `input` that are stored and not listed.
    stored: Vec<usize>,
    input: String,
    submission: Submission,
}

impl Submitter {
    /// Publishes a turn of the input `path`, whose name in the queue is `input`.
    ///
    /// # Errors
    /// The queue doesn't take it.
    async fn submit(
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
        let mut sent = turn.clone();
        sent.answer_form = form.unwrap_or(turn.answer_form);
        sent.origin.input = Some(path.to_owned());
        let message = TurnMessage::new(sent, self.tools_sha256.clone());
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
    async fn finish(mut self) -> Result<Submission, CommandError> {
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

const CONTINUE_HINT: &str =
    "run the same command again to continue; submitted turns aren't submitted twice";

fn rejection(turn: &TurnName, why: impl std::fmt::Display) -> CommandError {
    queue_error(&format!("turn {} can't be submitted", turn.number), why).with_hint(CONTINUE_HINT)
}

// Cancels a turn: a message in its log that no worker knows refuses every worker that has it, and tells the next one.

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
