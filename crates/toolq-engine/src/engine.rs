//! The engine, which runs turns.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::mcp::emit_notices;
use crate::recall::{RememberedWrites, is_first_write, open_calls};
use crate::settings::{AnswerDelivery, EngineSettings};
use crate::state::EngineState;
use crate::turn::{ConcurrentTurns, RunningTurn, TurnRequest, TurnSink};
use toolq_core::check::{CallChecker, undescribed_tools};
use toolq_core::types::{CheckedCall, EmitError, EventSink, Turn, TurnOrigin};

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

// What turns are asked before they run, and those that were read as a whole.

impl Engine {
    /// Finds the writes of a turn that have run or may have. They are answered when their turn comes.
    pub async fn find_remembered_writes(
        &self,
        turn: Turn,
        checker: &CallChecker,
        writes: &mut RememberedWrites,
    ) {
        let Some(memory) = &self.state.settings.memory else {
            return;
        };
        let (memory, tools) = (Arc::clone(memory), Arc::clone(&self.state.settings.tools));
        let origin = turn.origin.clone();
        let calls = checker.check_turn(turn);
        if !calls.iter().any(|checked| is_first_write(checked, &tools)) {
            return;
        }
        let mut found = std::mem::take(writes);
        let work = spawn_blocking(move || {
            found.find(memory.history(), &tools, &calls, &origin);
            found
        });
        *writes = work.await.unwrap_or_default();
    }

    /// Describes the tools that a turn needs, checks its calls, and asks the memory about them. `writes` are those of the whole input.
    pub async fn prepare_turn(
        &mut self,
        turn: Turn,
        (checker, writes): (&CallChecker, &mut RememberedWrites),
        sink: &mut dyn EventSink,
    ) -> Vec<CheckedCall> {
        self.set_turn_origin(turn.origin.clone());
        let tools = Arc::clone(&self.state.settings.tools);
        let mut undescribed = undescribed_tools(&tools, &turn.calls);
        if !undescribed.is_empty() {
            let calls = checker.check_turn(turn.clone());
            let calls = self.recall(calls, &mut writes.clone()).await;
            undescribed = undescribed_tools(&tools, open_calls(&calls));
        }
        let discovery = self.schema_discovery();
        discovery.discover(&undescribed, sink).await;
        self.recall(checker.check_turn(turn), writes).await
    }

    /// Adds to the calls of a turn what the memory knows of them.
    pub async fn recall(
        &self,
        calls: Vec<CheckedCall>,
        writes: &mut RememberedWrites,
    ) -> Vec<CheckedCall> {
        self.state.recall(calls, writes).await
    }

    /// Answers a turn that was read as a whole: prepares it, and runs what isn't known. Returns when each of its calls has been
    /// answered and delivered.
    pub async fn answer_turn(
        &mut self,
        turn: Turn,
        known: (&CallChecker, &mut RememberedWrites),
        sink: &mut dyn EventSink,
        delivery: &mut dyn AnswerDelivery,
    ) {
        let number = turn.number;
        let calls = self.prepare_turn(turn, known, sink).await;
        self.run_turn(number, calls, sink, delivery).await;
    }
}
