//! The engine, which runs turns.

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::mcp::emit_notices;
use crate::settings::{AnswerDelivery, EngineSettings};
use crate::state::EngineState;
use crate::turn::{ConcurrentTurns, RunningTurn, TurnRequest, TurnSink};
use toolq_core::types::{CheckedCall, EmitError, EventSink, TurnOrigin};

/// Runs turns, one after another.
pub struct Engine {
    pub(crate) state: EngineState,
}

impl Engine {
    /// Creates an engine. Nothing is opened or started until a call needs it.
    pub fn new(settings: EngineSettings) -> Self {
        Self {
            state: EngineState::new(settings),
        }
    }

    /// Returns a handle that stops, kills, pauses and resumes what this engine runs.
    pub fn control(&self) -> RunControl {
        self.state.control.clone()
    }

    /// Ends all servers, waits until they have ended, and emits what happened to them since the last turn.
    ///
    /// # Errors
    /// A sink refuses the events.
    pub fn end_servers(&self, sink: &mut dyn EventSink) -> Result<(), EmitError> {
        self.state.backends.end_servers();
        emit_notices(&self.state.backends.take_server_notices(), sink)
    }

    /// Shuts down the supervisor of the engine's commands and waits for it to exit.
    ///
    /// Otherwise, this happens when the last reference to the runner is dropped, which may be held by a [`RunControl`]
    /// or by a task of the runtime.
    pub fn close(self) {
        self.state.backends.close();
    }

    /// Sets where the turns come from that it runs from now on. Events and the log say so. Another input is another
    /// conversation, whose calls can't read the outputs of this one.
    pub fn set_turn_origin(&mut self, origin: TurnOrigin) {
        let input = &self.state.turn_origin.input;
        if input.is_some() && origin.input.is_some() && *input != origin.input {
            self.state.outputs = self
                .state
                .outputs
                .take()
                .map(|_| ConversationOutputs::default());
        }
        self.state.turn_origin = origin;
    }

    /// Runs a turn whose calls are all known, and returns when each of them has been answered and delivered.
    ///
    /// Dropping the future stops whatever it runs.
    pub async fn run_turn(
        &mut self,
        number: usize,
        calls: Vec<CheckedCall>,
        sink: &mut dyn EventSink,
        delivery: &mut dyn AnswerDelivery,
    ) {
        let sink = TurnSink::new(sink, &self.state.backends);
        RunningTurn::new(&self.state, number, &sink, delivery)
            .run_known(calls)
            .await;
    }

    /// Runs turns at the same time: safe calls share the engine, and any other runs alone. Ends when the sender of `requests`
    /// has been dropped and every call has been answered and delivered, each as soon as it and those before it in its turn
    /// have ended.
    ///
    /// Dropping the future stops whatever it runs.
    pub async fn run_concurrent_turns(
        &mut self,
        requests: mpsc::UnboundedReceiver<TurnRequest>,
        sink: &mut dyn EventSink,
        delivery: &mut dyn AnswerDelivery,
    ) {
        let sink = TurnSink::new(sink, &self.state.backends);
        let delivery: Mutex<&mut dyn AnswerDelivery> = Mutex::new(&mut *delivery);
        ConcurrentTurns::new(&self.state, &sink, &delivery)
            .run(requests)
            .await;
    }
}
