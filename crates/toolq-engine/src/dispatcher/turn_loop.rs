//! The main loop of a dispatcher. Arrivals and task events come in one at a time, and all consequences of one are
//! handled before the next, except that calls start only once all that has come is handled.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::future::pending;
use std::mem;
use std::sync::Arc;

use tokio::sync::mpsc::{self, error::TryRecvError};
use tracing::{Instrument as _, debug_span};

use crate::dispatcher::approve::PendingQuestion;
use crate::dispatcher::attempt_tasks::AttemptTasks;
use crate::dispatcher::effects::CallEffect;
use crate::dispatcher::halt::wait_for_halt_or_budget;
use crate::dispatcher::shared_sink::SharedSink;
use crate::dispatcher::sub_turns::SubTurns;
use crate::dispatcher::throttled_calls::ThrottledCalls;
use crate::dispatcher::turn_gate::TurnGate;
use crate::scheduler::{AwaitedPermits, CallQueue};
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use toolq_core::plan::BatchPartition;
use toolq_core::schedule::Gate;
use toolq_core::types::{
    CallRef, CheckedCall, DoubtCause, Event, HaltCause, NotExecutedCause, TurnArrival,
};

/// How many events of tasks are handled before calls start that can.
const MAX_EVENTS_AT_ONCE: usize = 64;

/// Statistics of a turn.
#[derive(Debug, Default, Clone)]
pub(crate) struct TurnStats {
    pub(crate) calls: u64,
    pub(crate) rejected: u64,
    /// The requested names, in call order. Only collected for agents.
    pub(crate) tool_names: Vec<String>,
    /// A call that isn't `read` has started, here or in an agent.
    pub(crate) has_effect: bool,
    /// The first call in doubt, by position.
    pub(crate) first_doubt: Option<(usize, DoubtCause)>,
}

/// Runs one turn, and holds its state.
pub(crate) struct Dispatcher<'e> {
    pub(crate) turn_number: usize,
    pub(crate) engine: &'e mut EngineState,
    pub(crate) sink: SharedSink<'e>,
    pub(crate) delivery: &'e mut dyn AnswerDelivery,
    /// The agent's call, if this is a turn of an agent.
    parent: Option<Arc<CallRef>>,
    /// The calls that were known when the turn began, until it has queued them.
    known_calls: Vec<CheckedCall>,
    /// The turns of the agents that work on calls of this turn.
    pub(crate) sub_turns: SubTurns<'e>,
    pub(crate) partition: Box<BatchPartition>,
    pub(crate) queue: CallQueue,
    pub(crate) gate: Box<Gate>,
    /// The calls that the gate let pass, and those to be retried, while their limits make them wait.
    pub(crate) throttled: ThrottledCalls,
    /// The place among turns that run at the same time, if there are any.
    pub(crate) turn_gate: Option<TurnGate>,
    /// The pending question about the call that is next in order.
    pub(crate) question: Option<PendingQuestion>,
    /// The waiting calls that need an approval, and don't have it.
    pub(crate) unapproved: BTreeSet<usize>,
    /// The call that is next in order, if it needs an approval and has no approver.
    pub(crate) undecidable: Option<usize>,
    /// The first call that ended without the approval that it needs, and its tool.
    pub(crate) never_approved: Option<(usize, String)>,
    /// The permits that the next calls wait for.
    pub(crate) permits: AwaitedPermits,
    pub(crate) stats: TurnStats,
    pub(crate) attempt_tasks: AttemptTasks,
    /// The batches that have started.
    pub(crate) started_batches: HashSet<usize>,
    /// Batches canceled by a call that failed in an earlier run, each with the tool of that call.
    pub(crate) canceled_batches: HashMap<usize, String>,
    /// What remains to be done because a call has ended. Empty between two events.
    pub(crate) effects: VecDeque<CallEffect>,
    /// Why later calls don't run: an earlier one failed, or was the final answer.
    pub(crate) stopped_by: Option<NotExecutedCause>,
    /// Why calls that haven't started don't run, if the input ended them.
    pub(crate) arrivals_ended_by: Option<NotExecutedCause>,
    /// The calls whose starts may be emitted, since the memory was asked about them.
    pub(crate) cleared: Vec<usize>,
    /// The calls that need a permit again, since another run was at them.
    pub(crate) unpermitted: Vec<usize>,
    /// Why the run was halted, once this turn has acted on that.
    pub(crate) halted_by: Option<HaltCause>,
}

impl<'e> Dispatcher<'e> {
    pub(crate) fn new(
        engine: &'e mut EngineState,
        turn_number: usize,
        sink: SharedSink<'e>,
        delivery: &'e mut dyn AnswerDelivery,
    ) -> Self {
        Self {
            turn_number,
            engine,
            sink,
            delivery,
            parent: None,
            known_calls: Vec::new(),
            sub_turns: SubTurns::default(),
            partition: Box::default(),
            queue: CallQueue::default(),
            gate: Box::default(),
            throttled: ThrottledCalls::default(),
            turn_gate: None,
            question: None,
            unapproved: BTreeSet::new(),
            undecidable: None,
            never_approved: None,
            permits: AwaitedPermits::default(),
            stats: TurnStats::default(),
            attempt_tasks: AttemptTasks::new(),
            started_batches: HashSet::new(),
            canceled_batches: HashMap::new(),
            effects: VecDeque::new(),
            stopped_by: None,
            arrivals_ended_by: None,
            cleared: Vec::new(),
            unpermitted: Vec::new(),
            halted_by: None,
        }
    }

    /// Begins with these calls. No others arrive before them.
    pub(crate) fn with_calls(mut self, calls: Vec<CheckedCall>) -> Self {
        if calls.iter().any(|call| call.repeats.is_some()) {
            self.queue.keep_answers();
        }
        Self {
            known_calls: calls,
            ..self
        }
    }

    /// Makes this one of several turns that run at the same time.
    pub(crate) fn with_turn_gate(self, gate: TurnGate) -> Self {
        Self {
            turn_gate: Some(gate),
            ..self
        }
    }

    /// Makes this a turn of the agent that works on `call`.
    pub(crate) fn with_parent(self, call: Arc<CallRef>) -> Self {
        Self {
            parent: Some(call),
            ..self
        }
    }

    /// Runs the calls that it begins with until all have been delivered.
    pub(crate) async fn run_known(self) -> TurnStats {
        let (_, no_arrivals) = mpsc::unbounded_channel();
        self.run(no_arrivals).await
    }

    /// Runs calls until no more can arrive and all have been delivered.
    pub(crate) async fn run(self, arrivals: mpsc::UnboundedReceiver<TurnArrival>) -> TurnStats {
        let agent = self.parent.as_ref().map(|call| &*call.tool_name);
        let span = debug_span!("turn", number = self.turn_number, agent);
        // On the heap, since what runs turns is nested in turn.
        Box::pin(self.run_arrivals(arrivals)).instrument(span).await
    }

    async fn run_arrivals(
        mut self,
        mut arrivals: mpsc::UnboundedReceiver<TurnArrival>,
    ) -> TurnStats {
        let parent = self.parent.clone();
        let origin = self.engine.turn_origin.clone();
        self.emit(&Event::TurnStarted {
            turn: self.turn_number,
            parent: parent.as_ref(),
            origin: &origin,
        });
        self.engine
            .run_budget
            .start_clock(self.engine.control.now());
        loop {
            self.check_halt();
            // Queue everything that has arrived before anything starts, so that what is already known about later
            // calls, such as a rejection that stops the turn, applies from the start.
            let is_open = self.receive_arrivals(&mut arrivals);
            self.start_ready_calls();
            self.leave_turn_gate();
            self.sync_results();
            if !is_open && self.queue.is_empty() {
                break;
            }
            tokio::select! {
                arrival = arrivals.recv(), if is_open => arrival.into_iter().for_each(|arrival| self.handle_arrival(arrival)),
                event = self.attempt_tasks.next_event() => {
                    self.handle_task_event(event);
                    self.handle_ready_events();
                }
                (call, finished) = self.sub_turns.next_finished() => self.finish_sub_turn(call, finished),
                () = self.permits.granted() => {}
                () = self.throttled.wait_for_start(self.engine) => {}
                () = turn_gate_changed(self.turn_gate.as_ref()) => {}
                () = wait_for_halt_or_budget(self.engine), if self.halted_by.is_none() => {}
            }
        }
        self.delivery.finish_turn(&mut self.sink);
        if self.parent.is_none() {
            self.emit(&Event::QueueDrained {
                turn: self.turn_number,
            });
        }
        self.stats
    }

    /// Handles everything that has arrived. Returns whether more can arrive.
    fn receive_arrivals(&mut self, arrivals: &mut mpsc::UnboundedReceiver<TurnArrival>) -> bool {
        for call in mem::take(&mut self.known_calls) {
            self.enqueue_call(call);
        }
        loop {
            match arrivals.try_recv() {
                Ok(arrival) => self.handle_arrival(arrival),
                Err(error) => return error == TryRecvError::Empty,
            }
        }
    }

    /// Handles what else has come from tasks. What follows from it starts together, and so reaches a server together.
    fn handle_ready_events(&mut self) {
        for _ in 0..MAX_EVENTS_AT_ONCE {
            let Some(event) = self.attempt_tasks.ready_event() else {
                return;
            };
            self.handle_task_event(event);
        }
    }

    /// Emits an event whose success nothing depends on. Only a refused start keeps a call from running, and a sink that
    /// has failed keeps track of that itself.
    pub(crate) fn emit(&mut self, event: &Event<'_>) {
        let _ = self.sink.emit(std::slice::from_ref(event));
    }
}

/// Waits until the turn should try again to enter the gate that it waits for.
async fn turn_gate_changed(gate: Option<&TurnGate>) {
    match gate.filter(|gate| gate.is_waiting()) {
        Some(gate) => gate.wait_for_change().await,
        None => pending().await,
    }
}
