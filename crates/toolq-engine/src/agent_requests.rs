//! What an agent asks of the turn of its call: the agent reports its conversation, and has turns of its own run. Each is
//! confirmed, so an agent continues only after these have been emitted.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::agent_scope::AgentScope;
use toolq_core::types::{
    CallAnswer, CallRef, DoubtCause, EmitError, ModelResponse, ToolsConfig, TurnArrival, TurnOrigin,
};

/// The result of emitting an event: an error if a sink refused it.
pub(crate) type EmitResult = Result<(), EmitError>;

/// A request of an agent to the turn of its call.
#[derive(Debug)]
pub(crate) enum AgentRequest {
    /// Report that the agent is about to request its model's response for this turn, counted from 0.
    Progress {
        turn: u64,
        max_turns: u64,
        reply: oneshot::Sender<EmitResult>,
    },
    /// Emit a message of the conversation.
    Message {
        turn: usize,
        message: Box<RawValue>,
        /// The response that contained it, if it is the model's.
        response: Option<Box<ModelResponse>>,
        reply: oneshot::Sender<EmitResult>,
    },
    /// Run the calls of a turn.
    SubTurn(SubTurnRequest),
}

/// The answers to the calls of an agent's turn.
#[derive(Debug, Default)]
pub(crate) struct SubTurnAnswers {
    /// In call order.
    pub(crate) answers: Vec<CallAnswer>,
    /// The first call in doubt, in call order.
    pub(crate) doubt: Option<DoubtCause>,
}

/// A turn of an agent, to be run.
#[derive(Debug)]
pub(crate) struct SubTurnRequest {
    /// Counted from 0.
    pub(crate) turn_number: usize,
    pub(crate) origin: TurnOrigin,
    pub(crate) arrivals: mpsc::UnboundedReceiver<TurnArrival>,
    /// The tools that the agent may call.
    pub(crate) tools: Arc<ToolsConfig>,
    pub(crate) scope: Arc<AgentScope>,
    /// Receives the answers.
    pub(crate) reply: oneshot::Sender<SubTurnAnswers>,
}

/// The handle by which an agent talks to the turn of its call.
#[derive(Debug, Clone)]
pub(crate) struct TurnHandle {
    /// The call that the agent works on.
    pub(crate) call: Arc<CallRef>,
    requests: mpsc::UnboundedSender<AgentRequest>,
    /// One of the agent's own calls has started, or may have.
    any_call_started: Arc<AtomicBool>,
}

impl TurnHandle {
    pub(crate) fn new(call: Arc<CallRef>, requests: mpsc::UnboundedSender<AgentRequest>) -> Self {
        Self {
            call,
            requests,
            any_call_started: Arc::default(),
        }
    }

    /// Returns the flag that says whether a call of the agent has started, or may have. Clones of the handle share it.
    pub(crate) fn any_call_started(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.any_call_started)
    }

    /// Reports that the agent is about to request its model's response for this turn, counted from 0.
    ///
    /// # Errors
    /// Why the log accepts no more records.
    pub(crate) async fn report_progress(&self, turn: u64, max_turns: u64) -> EmitResult {
        let (reply, replied) = oneshot::channel();
        let progress = AgentRequest::Progress {
            turn,
            max_turns,
            reply,
        };
        self.send_and_wait(progress, replied).await
    }

    /// Emits a message of the conversation. `response` is the response that contained it, if it is the model's.
    ///
    /// # Errors
    /// Why the log accepts no more records.
    pub(crate) async fn record_message(
        &self,
        turn: usize,
        message: Box<RawValue>,
        response: Option<Box<ModelResponse>>,
    ) -> EmitResult {
        let (reply, replied) = oneshot::channel();
        let message = AgentRequest::Message {
            turn,
            message,
            response,
            reply,
        };
        self.send_and_wait(message, replied).await
    }

    /// Asks for a turn to be run whose calls arrive on `arrivals`. The receiver resolves when all calls are
    /// answered. It fails only if the turn of its call is gone, in which case the caller is being dropped, too.
    pub(crate) fn run_sub_turn(
        &self,
        (turn_number, origin): (usize, TurnOrigin),
        arrivals: mpsc::UnboundedReceiver<TurnArrival>,
        tools: Arc<ToolsConfig>,
        scope: Arc<AgentScope>,
    ) -> oneshot::Receiver<SubTurnAnswers> {
        let (reply, answers) = oneshot::channel();
        let turn = AgentRequest::SubTurn(SubTurnRequest {
            turn_number,
            origin,
            arrivals,
            tools,
            scope,
            reply,
        });
        let _ = self.requests.send(turn);
        answers
    }

    async fn send_and_wait(
        &self,
        request: AgentRequest,
        replied: oneshot::Receiver<EmitResult>,
    ) -> EmitResult {
        let _ = self.requests.send(request);
        replied.await.unwrap_or(Ok(()))
    }
}
