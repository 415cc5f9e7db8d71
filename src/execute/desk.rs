//! What agents bring to the dispatcher of their call: news of their conversation, and turns to be served.
//!
//! Each is answered, so that an agent goes on only when all that it said has been told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::model::{Answer, Arrival, CallRef, Doubt, Refused, Response, Tokens, Tools};

use super::agent::Around;

/// Whether all who are told could take it.
pub(super) type Told = Result<(), Refused>;

/// What an agent asks for.
#[derive(Debug)]
pub(super) enum Ask {
    /// That people are told: it asks its model for the turn of this number, from 1.
    Progress {
        turn: u64,
        max_turns: u64,
        told: oneshot::Sender<Told>,
    },
    /// That a message of its conversation is told.
    Message {
        turn: usize,
        message: Box<RawValue>,
        /// The answer that it was in.
        response: Option<Box<Heard>>,
        told: oneshot::Sender<Told>,
    },
    /// That this is counted, which a model took for an answer that broke off.
    Lost { model: String, tokens: Tokens },
    /// That its calls run.
    Turn(InnerTurn),
}

/// An answer of a model, and the digest of the request for it; none where an earlier run asked.
pub(super) type Heard = (Response, Option<String>);

/// What became of a turn of an agent.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In call order.
    pub(super) answers: Vec<Answer>,
    /// The first call, in call order, of which nobody knows whether it had its effect.
    pub(super) doubt: Option<Doubt>,
}

/// A turn of an agent.
#[derive(Debug)]
pub(super) struct InnerTurn {
    /// Counted from 0.
    pub(super) number: usize,
    pub(super) calls: mpsc::UnboundedReceiver<Arrival>,
    /// The tools that it may call.
    pub(super) tools: Arc<Tools>,
    pub(super) around: Arc<Around>,
    /// Takes the answers.
    pub(super) answers: oneshot::Sender<Answers>,
}

/// Where an agent brings what it asks for.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    number: usize,
    /// The call that it works on.
    pub(super) call: Arc<CallRef>,
    asks: mpsc::UnboundedSender<(usize, Ask)>,
    /// A call of it has started, or may have.
    busy: Arc<AtomicBool>,
}

impl Desk {
    /// The desk for the call of this number in the dispatcher's queue.
    pub(super) fn new(
        number: usize,
        call: Arc<CallRef>,
        asks: mpsc::UnboundedSender<(usize, Ask)>,
    ) -> Self {
        Self {
            number,
            call,
            asks,
            busy: Arc::default(),
        }
    }

    /// Whether a call of the agent has started, or may have: known to every clone of its desk.
    pub(super) fn busy(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.busy)
    }

    /// # Errors
    /// Why the log takes nothing more.
    pub(super) async fn progress(&self, turn: u64, max_turns: u64) -> Told {
        let (told, heard) = oneshot::channel();
        let progress = Ask::Progress {
            turn,
            max_turns,
            told,
        };
        self.tell(progress, heard).await
    }

    /// # Errors
    /// The same.
    pub(super) async fn message(
        &self,
        turn: usize,
        message: Box<RawValue>,
        response: Option<Box<Heard>>,
    ) -> Told {
        let (told, heard) = oneshot::channel();
        let message = Ask::Message {
            turn,
            message,
            response,
            told,
        };
        self.tell(message, heard).await
    }

    /// Nobody waits for it: the agent may have ended with it.
    pub(super) fn lost(&self, model: String, tokens: Tokens) {
        let _ = self.asks.send((self.number, Ask::Lost { model, tokens }));
    }

    /// Has a turn served whose calls come in as `calls` does. The answers are there when all are; none come where the
    /// dispatcher is gone, which has dropped whoever asks.
    pub(super) fn turn(
        &self,
        number: usize,
        calls: mpsc::UnboundedReceiver<Arrival>,
        tools: Arc<Tools>,
        around: Arc<Around>,
    ) -> oneshot::Receiver<Answers> {
        let (answers, answered) = oneshot::channel();
        let turn = Ask::Turn(InnerTurn {
            number,
            calls,
            tools,
            around,
            answers,
        });
        let _ = self.asks.send((self.number, turn));
        answered
    }

    async fn tell(&self, ask: Ask, heard: oneshot::Receiver<Told>) -> Told {
        let _ = self.asks.send((self.number, ask));
        heard.await.unwrap_or(Ok(()))
    }
}
