//! Runs turns at the same time, each of one call: for clients that make calls without knowing of each other's. What
//! decides within a turn which calls may run together decides here among all turns.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use tokio::sync::mpsc;

use crate::control::RunControl;
use crate::dispatcher::shared_sink::SharedSink;
use crate::dispatcher::turn_loop::Dispatcher;
use crate::scheduler::Gate;
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use toolq_core::types::{
    CallAnswer, CallRef, CheckedCall, Event, EventSink, HaltCause, ToolsChange, ToolsConfig,
    TurnArrival, TurnOrigin, Verdict,
};

/// What a client wants of the turns that run at the same time.
#[derive(Debug)]
pub enum TurnRequest {
    /// Run a turn of one call. The turn has the number in the call, which no other turn has.
    Run {
        /// The call.
        call: Box<CheckedCall>,
        /// Where it comes from.
        origin: TurnOrigin,
    },
    /// Stop the turn with this number. It ends with an answer that says so. Nothing happens if it has ended.
    Cancel(usize),
    /// Run the turns after this with other definitions. Those before keep theirs.
    ChangeTools(Box<ToolsChange>),
}

/// Turns of one call each.
pub(crate) struct ConcurrentTurns<'e> {
    engine: &'e EngineState,
    /// What turns run with that come from now on.
    tools: Arc<ToolsConfig>,
    sink: SharedSink<'e>,
    delivery: SharedDelivery<'e>,
    gate: Gate,
    /// The turns at the gate.
    waiting: HashMap<usize, WaitingTurn>,
    running: Vec<RunningTurn<'e>>,
}

struct WaitingTurn {
    state: EngineState,
    call: Box<CheckedCall>,
}

struct RunningTurn<'e> {
    number: usize,
    /// It holds the gate.
    is_gated: bool,
    control: RunControl,
    future: Pin<Box<dyn Future<Output = ()> + Send + 'e>>,
}

/// An answer delivery behind a shared reference. All turns that share it are driven by one task, so its lock is never
/// contended.
#[derive(Clone, Copy)]
pub(crate) struct SharedDelivery<'e>(pub(crate) &'e dyn SyncAnswerDelivery);

/// An answer delivery that can be used through a shared reference.
pub(crate) trait SyncAnswerDelivery: Send + Sync {
    fn deliver(&self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink);
    fn finish_turn(&self, sink: &mut dyn EventSink);
}

impl SyncAnswerDelivery for Mutex<&mut dyn AnswerDelivery> {
    fn deliver(&self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink) {
        let mut delivery = self.lock().unwrap_or_else(PoisonError::into_inner);
        delivery.deliver(call, answer, sink);
    }

    fn finish_turn(&self, sink: &mut dyn EventSink) {
        let mut delivery = self.lock().unwrap_or_else(PoisonError::into_inner);
        delivery.finish_turn(sink);
    }
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
            gate: Gate::default(),
            waiting: HashMap::new(),
            running: Vec::new(),
        }
    }

    /// Runs turns until no more can arrive and all have ended.
    pub(crate) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<TurnRequest>) {
        let mut is_open = true;
        while is_open || !self.waiting.is_empty() || !self.running.is_empty() {
            self.start_ready_turns();
            tokio::select! {
                request = requests.recv(), if is_open => match request {
                    Some(TurnRequest::Run { call, origin }) => self.enqueue_turn(call, origin),
                    Some(TurnRequest::Cancel(number)) => self.cancel_turn(number),
                    Some(TurnRequest::ChangeTools(change)) => self.change_tools(&change),
                    None => is_open = false,
                },
                ended = self.next_ended() => {
                    ended.control.forget_scope();
                    if ended.is_gated {
                        self.gate.leave();
                    }
                }
            }
        }
    }

    /// Lets a call wait at the gate. One that won't run needn't wait.
    fn enqueue_turn(&mut self, call: Box<CheckedCall>, origin: TurnOrigin) {
        let number = call.call.turn;
        let state = self.engine.for_concurrent_turn(&self.tools, origin);
        let turn = WaitingTurn { state, call };
        match &turn.call.verdict {
            Verdict::Rejected(_) => self.start_turn(number, turn, false),
            Verdict::Accepted(accepted) => {
                // With a single job nothing runs in parallel, not even agents, which need no permit.
                let safe = accepted.safe && self.engine.settings.jobs.get() > 1;
                self.gate.push(number, safe);
                self.waiting.insert(number, turn);
            }
        }
    }

    fn change_tools(&mut self, change: &ToolsChange) {
        // A log that refuses this refuses the start of the next call, too.
        let _ = self.sink.emit(&[Event::ToolsChanged(change)]);
        self.tools = Arc::clone(&change.tools);
        self.engine.runner.change_tools(&self.tools);
        self.engine.circuit_breakers.reset();
    }

    fn start_ready_turns(&mut self) {
        while let Some(number) = self.gate.enter() {
            match self.waiting.remove(&number) {
                Some(turn) => self.start_turn(number, turn, true),
                None => self.gate.leave(),
            }
        }
    }

    fn start_turn(&mut self, number: usize, turn: WaitingTurn, is_gated: bool) {
        let WaitingTurn { mut state, call } = turn;
        let control = state.control.clone();
        let (sink, mut delivery) = (self.sink, self.delivery);
        let future = Box::pin(async move {
            let (sender, arrivals) = mpsc::unbounded_channel();
            // The receiver is still there, so sending can't fail.
            let _ = sender.send(TurnArrival::Call(call));
            drop(sender);
            Dispatcher::new(&mut state, number, sink, &mut delivery)
                .run(arrivals)
                .await;
        });
        self.running.push(RunningTurn {
            number,
            is_gated,
            control,
            future,
        });
    }

    /// Halts a turn. One at the gate is on record all the same: it begins, and its call is answered without running.
    fn cancel_turn(&mut self, number: usize) {
        if let Some(turn) = self.waiting.remove(&number) {
            self.gate.remove(number);
            turn.state.control.halt_scope(HaltCause::ClientCancelled);
            self.start_turn(number, turn, false);
        } else if let Some(turn) = self.running.iter().find(|turn| turn.number == number) {
            turn.control.halt_scope(HaltCause::ClientCancelled);
        }
    }

    /// Drives all running turns until one ends. Never resolves if none is running.
    async fn next_ended(&mut self) -> RunningTurn<'e> {
        poll_fn(|context| {
            for index in 0..self.running.len() {
                if self.running[index].future.as_mut().poll(context).is_ready() {
                    return Poll::Ready(self.running.swap_remove(index));
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl AnswerDelivery for SharedDelivery<'_> {
    fn deliver(&mut self, call: &CallRef, answer: CallAnswer, sink: &mut dyn EventSink) {
        self.0.deliver(call, answer, sink);
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        self.0.finish_turn(sink);
    }
}
