//! What agents bring to the dispatcher of their call: news of their conversation, and turns to be served.
//!
//! Each is answered, so that an agent goes on only when all that it said has been told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::agent::Around;
use toolq_core::types::{Answer, Arrival, CallRef, Doubt, Refused, Response, Tokens, Tools};

/// Whether all who are told could take it.
pub(crate) type Told = Result<(), Refused>;

/// What an agent asks for.
#[derive(Debug)]
pub(crate) enum Ask {
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
pub(crate) type Heard = (Response, Option<String>);

/// What became of a turn of an agent.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// In call order.
    pub(crate) answers: Vec<Answer>,
    /// The first call, in call order, of which nobody knows whether it had its effect.
    pub(crate) doubt: Option<Doubt>,
}

/// A turn of an agent.
#[derive(Debug)]
pub(crate) struct InnerTurn {
    /// Counted from 0.
    pub(crate) number: usize,
    pub(crate) calls: mpsc::UnboundedReceiver<Arrival>,
    /// The tools that it may call.
    pub(crate) tools: Arc<Tools>,
    pub(crate) around: Arc<Around>,
    /// Takes the answers.
    pub(crate) answers: oneshot::Sender<Answers>,
}

/// Where an agent brings what it asks for.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    number: usize,
    /// The call that it works on.
    pub(crate) call: Arc<CallRef>,
    asks: mpsc::UnboundedSender<(usize, Ask)>,
    /// A call of it has started, or may have.
    busy: Arc<AtomicBool>,
}

impl Desk {
    /// The desk for the call of this number in the dispatcher's queue.
    pub(crate) fn new(
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
    pub(crate) fn busy(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.busy)
    }

    /// # Errors
    /// Why the log takes nothing more.
    pub(crate) async fn progress(&self, turn: u64, max_turns: u64) -> Told {
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
    pub(crate) async fn message(
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
    pub(crate) fn lost(&self, model: String, tokens: Tokens) {
        let _ = self.asks.send((self.number, Ask::Lost { model, tokens }));
    }

    /// Has a turn served whose calls come in as `calls` does. The answers are there when all are; none come where the
    /// dispatcher is gone, which has dropped whoever asks.
    pub(crate) fn turn(
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
