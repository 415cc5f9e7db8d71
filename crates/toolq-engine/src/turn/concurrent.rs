//! Runs turns at the same time, for clients that make calls without knowing of each other's, and has what such turns share.
//! What decides within a turn which calls may run together decides here among all turns.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::attempt::CallJob;
use crate::backends::BackendRunner;
use crate::control::RunControl;
use crate::conversation_outputs::ConversationOutputs;
use crate::mcp::emit_notices;
use crate::recall::RememberedWrites;
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use crate::turn::RunningTurn;
use toolq_core::check::recheck_locks;
use toolq_core::schedule::{CallAccess, Gate};
use toolq_core::types::{
    CallAnswer, CallRef, CheckedCall, EmitError, Event, EventSink, HaltCause, ToolsChange,
    ToolsConfig, TurnOrigin,
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
    /// Run the turns after this with other definitions. Those before keep theirs.
    ChangeTools(Box<ToolsChange>),
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
                    None => is_open = false,
                },
                Some(number) = self.running.next() => {
                    let control = self.controls.remove(&number);
                    control.iter().for_each(RunControl::forget_scope);
                }
            }
        }
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

// What turns share that run at the same time, or one within another: the sink of events, the delivery of answers, and
// the gate that lets turns in.

/// An event sink behind a shared reference. Copies emit to the same sink.
///
/// All turns that share it are driven by one task, so its lock is never contended.
pub(crate) type SharedSink<'e> = &'e dyn SyncEventSink;

/// An event sink that can be used through a shared reference.
pub(crate) trait SyncEventSink: Send + Sync {
    fn emit(&self, events: &[Event<'_>]) -> Result<(), EmitError>;
    fn emit_later(&self, event: &Event<'_>) -> Result<(), EmitError>;
    fn shows_progress(&self, call: &CallRef) -> bool;
}

/// The sink of a turn. What happened to servers is emitted before the next event.
pub(crate) struct TurnSink<'e> {
    sink: Mutex<&'e mut dyn EventSink>,
    backends: Arc<BackendRunner>,
}

impl<'e> TurnSink<'e> {
    pub(crate) fn new(sink: &'e mut dyn EventSink, backends: &Arc<BackendRunner>) -> Self {
        Self {
            sink: Mutex::new(sink),
            backends: Arc::clone(backends),
        }
    }
}

impl SyncEventSink for TurnSink<'_> {
    fn emit(&self, events: &[Event<'_>]) -> Result<(), EmitError> {
        let mut sink = self.sink.lock();
        emit_notices(&self.backends.take_server_notices(), &mut **sink)?;
        sink.emit(events)
    }

    fn emit_later(&self, event: &Event<'_>) -> Result<(), EmitError> {
        let mut sink = self.sink.lock();
        emit_notices(&self.backends.take_server_notices(), &mut **sink)?;
        sink.emit_later(event)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        let sink = self.sink.lock();
        sink.shows_progress(call)
    }
}

impl EventSink for SharedSink<'_> {
    fn emit(&mut self, events: &[Event<'_>]) -> Result<(), EmitError> {
        SyncEventSink::emit(*self, events)
    }

    fn emit_later(&mut self, event: &Event<'_>) -> Result<(), EmitError> {
        SyncEventSink::emit_later(*self, event)
    }

    fn shows_progress(&self, call: &CallRef) -> bool {
        SyncEventSink::shows_progress(*self, call)
    }
}

/// An answer delivery behind a shared reference. All turns that share it are driven by one task, so its lock is never
/// contended.
pub(crate) type SharedDelivery<'e> = &'e Mutex<&'e mut dyn AnswerDelivery>;

impl AnswerDelivery for SharedDelivery<'_> {
    fn deliver(&mut self, call: &Arc<CallRef>, answer: CallAnswer, sink: &mut dyn EventSink) {
        (**self).lock().deliver(call, answer, sink);
    }

    fn finish_turn(&mut self, sink: &mut dyn EventSink) {
        (**self).lock().finish_turn(sink);
    }
}

// The gate that concurrent turns share. A turn is inside while calls of it run: together with other turns if these
// calls are concurrency-safe, else alone. A turn of a single call that has locks is kept out only by turns that
// conflict with it. Turns wait in the order in which they are ready to start a call, so a turn whose next call waits
// for an approval doesn't block other turns.

/// What all turns share.
#[derive(Debug, Default)]
pub(crate) struct SharedTurnGate {
    tickets: Mutex<Tickets>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Tickets {
    gate: Gate,
    next: usize,
}

/// The place of one turn.
#[derive(Debug)]
pub(crate) struct TurnGate {
    shared: Arc<SharedTurnGate>,
    /// The locks of one call say nothing about the others of its turn, so only those of a single call count.
    pub(crate) uses_locks: bool,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Outside,
    Waiting { ticket: usize, access: CallAccess },
    Inside { ticket: usize, access: CallAccess },
}

impl TurnGate {
    /// Creates the place of a turn that hasn't started a call of its `call_count`.
    pub(crate) fn new(shared: &Arc<SharedTurnGate>, call_count: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            uses_locks: call_count == 1,
            place: Place::Outside,
        }
    }

    /// Whether the turn is inside alone.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(&self.place, Place::Inside { access, .. } if !access.safe && access.locks.is_none())
    }

    /// Lets the turn in to start a call, if it may come in now. Otherwise, it waits from now on.
    pub(crate) fn try_enter(&mut self, access: &CallAccess) -> bool {
        match &self.place {
            Place::Inside { access: held, .. } if held == access && access.safe => return true,
            Place::Waiting { access: wanted, .. } if wanted == access => {}
            _ => self.leave(),
        }
        let mut tickets = self.shared.tickets.lock();
        let ticket = if let Place::Waiting { ticket, .. } = self.place {
            ticket
        } else {
            let ticket = tickets.next;
            tickets.next += 1;
            tickets.gate.push(ticket, access.clone());
            ticket
        };
        let may_enter = tickets.gate.peek() == Some(ticket);
        let access = access.clone();
        self.place = if may_enter {
            tickets.gate.enter();
            Place::Inside { ticket, access }
        } else {
            Place::Waiting { ticket, access }
        };
        drop(tickets);
        if may_enter {
            // The next turn may be able to come in, too.
            self.shared.changed.notify_waiters();
        }
        may_enter
    }

    /// Leaves the gate, or no longer waits for it.
    pub(crate) fn leave(&mut self) {
        let mut tickets = self.shared.tickets.lock();
        match self.place {
            Place::Outside => return,
            Place::Waiting { ticket, .. } => {
                tickets.gate.remove(ticket);
            }
            Place::Inside { ticket, .. } => tickets.gate.leave(ticket),
        }
        drop(tickets);
        self.place = Place::Outside;
        self.shared.changed.notify_waiters();
    }

    /// Returns whether the turn waits for other turns.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.place, Place::Waiting { .. })
    }

    /// Waits until the turn should try again.
    pub(crate) async fn wait_for_change(&self) {
        self.shared.changed.notified().await;
    }
}

/// A turn that is dropped midway doesn't block other turns.
impl Drop for TurnGate {
    fn drop(&mut self) {
        self.leave();
    }
}

impl RunningTurn<'_> {
    /// Lets the turn in to start a call, if other turns run at the same time and let it.
    pub(crate) fn enter_turn_gate(&mut self, job: &CallJob) -> bool {
        let settings = &self.engine.settings;
        let Some(gate) = &mut self.turn_gate else {
            return true;
        };
        // With a single job nothing runs in parallel, not even agents, which need no permit.
        let is_parallel = settings.jobs.get() > 1;
        let safe = job.accepted.safe && is_parallel;
        let locks = job.accepted.locks.as_ref();
        let locks = locks.filter(|_| is_parallel && gate.uses_locks).cloned();
        let access = CallAccess {
            safe,
            locks: locks
                .map(|locks| recheck_locks(&job.accepted, &settings.tools.root).unwrap_or(locks)),
        };
        match (gate.is_alone(), self.gate.has_admitted()) {
            // With locks, calls of this turn may run alongside one that keeps other turns out.
            (true, true) => true,
            // Other turns may run alongside what runs of this one, but not alongside this call.
            (false, true) if !safe => false,
            _ => gate.try_enter(&access),
        }
    }

    /// Lets other turns in while no call of this one runs.
    pub(crate) fn leave_turn_gate(&mut self) {
        if self.turn_gate.is_none() || self.gate.has_admitted() || self.permits.is_waiting() {
            return;
        }
        let next = self.gate.next_waiting();
        let next = next.and_then(|number| Some((number, self.queue.waiting_job(number)?)));
        let is_ready = next.is_some_and(|(number, job)| self.is_approved(number, &job));
        if let Some(gate) = &mut self.turn_gate
            && !(gate.is_waiting() && is_ready)
        {
            gate.leave();
        }
    }
}
