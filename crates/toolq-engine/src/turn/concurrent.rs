//! Runs turns at the same time, for clients that make calls without knowing of each other's. What decides within a turn
//! which calls may run together decides here among all turns.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::recall::RememberedWrites;
use crate::state::EngineState;
use crate::turn::RunningTurn;
use crate::turn::shared::{SharedDelivery, SharedSink, SharedTurnGate, TurnGate};
use toolq_core::types::{
    CallRef, CheckedCall, Event, HaltCause, ToolsChange, ToolsConfig, TurnOrigin,
};

/// What a client wants of the turns that run at the same time.
#[derive(Debug)]
pub enum TurnRequest {
    /// Run a turn.
    Run {
        /// Its number, which no other turn has.
        number: usize,
        /// Its calls, which have this number, too.
        calls: Vec<CheckedCall>,
        /// Where they come from.
        origin: TurnOrigin,
        /// The outputs of the conversation that they belong to. `None` if the conversation can't be identified.
        outputs: Option<ConversationOutputs>,
    },
    /// Stop the turn with this number. It ends with answers that say so. Nothing happens if it has ended.
    Cancel(usize),
    /// Record the result of an attempt that came too late to answer its call.
    RecordLate(LateResult),
    /// Run the turns after this with other definitions. Those before keep theirs.
    ChangeTools(Box<ToolsChange>),
}

/// The result of an attempt that arrived after its call had stopped waiting.
#[derive(Debug)]
pub struct LateResult {
    /// The call.
    pub call: CallRef,
    /// What the result says.
    pub text: String,
    /// Whether it says that the call failed.
    pub is_error: bool,
}

/// Turns that run at the same time.
pub(crate) struct ConcurrentTurns<'e> {
    engine: &'e EngineState,
    /// What turns run with that come from now on.
    tools: Arc<ToolsConfig>,
    sink: SharedSink<'e>,
    delivery: SharedDelivery<'e>,
    gate: Arc<SharedTurnGate>,
    /// Each until it has ended, with its number.
    running: FuturesUnordered<Pin<Box<dyn Future<Output = usize> + Send + 'e>>>,
    /// What stops each of them, by number.
    controls: HashMap<usize, RunControl>,
}

impl<'e> ConcurrentTurns<'e> {
    pub(crate) fn new(
        engine: &'e EngineState,
        sink: SharedSink<'e>,
        delivery: SharedDelivery<'e>,
    ) -> Self {
        Self {
            engine,
            tools: Arc::clone(&engine.settings.tools),
            sink,
            delivery,
            gate: Arc::default(),
            running: FuturesUnordered::new(),
            controls: HashMap::new(),
        }
    }

    /// Runs turns until no more can arrive and all have ended.
    pub(crate) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<TurnRequest>) {
        let mut is_open = true;
        while is_open || !self.running.is_empty() {
            tokio::select! {
                request = requests.recv(), if is_open => match request {
                    Some(TurnRequest::Run { number, calls, origin, outputs }) => {
                        let state = self.engine.for_concurrent_turn(&self.tools, origin, outputs);
                        self.start_turn(number, calls, state);
                    }
                    Some(TurnRequest::Cancel(number)) => self.cancel_turn(number),
                    Some(TurnRequest::ChangeTools(change)) => self.change_tools(&change),
                    Some(TurnRequest::RecordLate(late)) => self.record_late(&late),
                    None => is_open = false,
                },
                Some(number) = self.running.next() => {
                    let control = self.controls.remove(&number);
                    control.iter().for_each(RunControl::forget_scope);
                }
            }
        }
    }

    fn record_late(&self, late: &LateResult) {
        let LateResult {
            call,
            text,
            is_error,
        } = late;
        // It answers nothing, so nothing depends on whether the log takes it.
        let _ = self.sink.emit(&[Event::LateResult {
            call,
            text,
            is_error: *is_error,
        }]);
    }

    fn change_tools(&mut self, change: &ToolsChange) {
        // A log that refuses this refuses the start of the next call, too.
        let _ = self.sink.emit(&[Event::ToolsChanged(change)]);
        self.tools = Arc::clone(&change.tools);
        self.engine.backends.change_tools(&self.tools);
        self.engine.circuit_breakers.reset();
    }

    fn start_turn(&mut self, number: usize, calls: Vec<CheckedCall>, state: EngineState) {
        self.controls.insert(number, state.control.clone());
        let (sink, mut delivery) = (self.sink, self.delivery);
        let gate = TurnGate::new(&self.gate, calls.len());
        self.running.push(Box::pin(async move {
            let calls = state.recall(calls, &mut RememberedWrites::default()).await;
            let mut turn = RunningTurn::new(&state, number, sink, &mut delivery);
            turn.turn_gate = Some(gate);
            turn.run_known(calls).await;
            number
        }));
    }

    /// Halts a turn. One at the gate is on record all the same: its calls are answered without running.
    fn cancel_turn(&mut self, number: usize) {
        if let Some(control) = self.controls.get(&number) {
            control.halt_scope(HaltCause::ClientCanceled);
        }
    }
}
