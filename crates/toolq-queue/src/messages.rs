//! What goes through queues: a turn, which has what a worker needs to run it as if it had read the input itself, and its answer,
//! published by a worker and read in the order in which the turns were submitted.

use std::fmt::Display;

use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::names::TurnName;
use crate::publishing::{PublishRefusal, publish_after};
use crate::status::CallInDoubt;
use crate::turn_log::TurnNotAnswered;
use crate::turn_queue::TurnQueue;
use toolq_core::types::Turn;

/// The version of the message. A worker that knows only older ones hands the turn back.
const MESSAGE_VERSION: u32 = 2;

/// The first message of a turn.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TurnMessage {
    version: u32,
    /// The digest of the tools that the turn is to run with.
    pub tools_sha256: String,
    pub turn: Turn,
}

/// What all versions of the message have. It is read first: a newer toolq may write values that this one doesn't know.
#[derive(Deserialize)]
struct MessageHead {
    version: u32,
}

impl TurnMessage {
    pub(super) fn new(turn: Turn, tools_sha256: String) -> Self {
        Self {
            version: MESSAGE_VERSION,
            tools_sha256,
            turn,
        }
    }

    /// Reads the first message of a turn.
    ///
    /// # Errors
    /// Another program, or a newer toolq, has written it.
    pub(super) fn read(payload: &[u8]) -> Result<Self, TurnNotAnswered> {
        let head: MessageHead = serde_json::from_slice(payload).map_err(invalid)?;
        if head.version > MESSAGE_VERSION {
            let why = "turns that were submitted by a newer toolq are handed back";
            return Err(TurnNotAnswered::Foreign(why.to_owned()));
        }
        serde_json::from_slice(payload).map_err(invalid)
    }
}

fn invalid(why: impl Display) -> TurnNotAnswered {
    TurnNotAnswered::HandedBack(format!("it can't be read: {why}"))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::json::Input;
    use toolq_core::types::{AnswerForm, Call, CallKind};

    #[test]
    fn a_message_of_a_newer_toolq_is_known_as_such_whatever_it_has() {
        let newer = br#"{"version": 3, "form": "a-new-form", "calls": {}}"#;
        let refusal = TurnMessage::read(newer).err();
        assert!(matches!(refusal, Some(TurnNotAnswered::Foreign(_))));
    }

    #[test]
    fn a_message_of_another_program_cannot_be_read() {
        for payload in ["", "[]", r#"{"version": 2, "turn": {}}"#] {
            let refusal = TurnMessage::read(payload.as_bytes()).err();
            assert!(matches!(refusal, Some(TurnNotAnswered::HandedBack(_))));
        }
    }

    /// A worker runs what was submitted: the digits of its numbers, and why an input is none.
    #[test]
    fn a_turn_arrives_as_it_was_submitted() {
        let call = |input: &str| Call {
            turn: 3,
            position: 0,
            id: "a".to_owned(),
            has_number_id: false,
            kind: CallKind::Custom,
            name: "pay".into(),
            input: Input::parse(input).map_err(Box::new),
            parent: None,
        };
        let calls = vec![call(r#"{"eur": 1.00}"#), call("[]")];
        let mut turn = Turn::of_calls(3, calls, AnswerForm::Gemini);
        turn.broken_from = Some(1);
        let message = serde_json::to_vec(&TurnMessage::new(turn.clone(), "0a".to_owned())).unwrap();
        let read = TurnMessage::read(&message).unwrap();
        assert_eq!(format!("{:?}", read.turn), format!("{turn:?}"));
    }
}
