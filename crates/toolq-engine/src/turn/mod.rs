//! One turn: its calls are let in, in order, run, and are answered in order.
//!
//! What concerns several calls is decided here, at once and by nobody else: which call is next (`admission`), whether it was
//! approved (`approval`), what limits it (`lines`), and what its end does to others (`ending`). What concerns one call alone
//! is the life of that call, from the moment when it has its place to its outcome: [`RunningCall::live`](call::RunningCall).

mod admission;
mod approval;
mod attempts;
mod call;
mod concurrent;
mod ending;
mod lines;
mod memory;
mod queue;
mod starts;

use std::collections::{HashMap, HashSet};
use std::future::{pending, ready};
use std::mem;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::scheduler::AwaitedPermits;
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use crate::turn::approval::Approvals;
use crate::turn::concurrent::TurnGate;
use crate::turn::lines::ThrottledCalls;
use crate::turn::queue::CallQueue;
use crate::turn::starts::RunningCalls;
use toolq_core::plan::BatchPartition;
use toolq_core::schedule::Gate;
use toolq_core::types::{
    CallRef, CheckedCall, DoubtCause, Event, HaltCause, NotExecutedCause, TurnArrival,
};

pub use concurrent::TurnRequest;
pub(crate) use concurrent::{ConcurrentTurns, SharedSink, TurnSink};

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

/// A turn that runs.
pub(crate) struct RunningTurn<'e> {
    number: usize,
    engine: &'e EngineState,
    sink: SharedSink<'e>,
    delivery: &'e mut dyn AnswerDelivery,
    /// The agent's call, if this is a turn of an agent.
    parent: Option<Arc<CallRef>>,
    queue: CallQueue,
    gate: Box<Gate>,
    batches: Batches,
    approvals: Approvals,
    /// The place among turns that run at the same time, if there are any.
    turn_gate: Option<TurnGate>,
    /// The calls that the gate let pass, and those to be retried, while their limits make them wait.
    lines: ThrottledCalls,
    /// The permits that the next calls wait for.
    permits: AwaitedPermits,
    calls: RunningCalls<'e>,
    closed: Closed,
    stats: TurnStats,
}

/// The batches of a turn.
#[derive(Default)]
struct Batches {
    partition: Box<BatchPartition>,
    /// Those that have started.
    started: HashSet<usize>,
    /// Those canceled by a call that failed in an earlier run, each with the tool of that call.
    canceled: HashMap<usize, String>,
}

/// What ended the turn for calls that haven't started.
#[derive(Debug, Default)]
struct Closed {
    /// The run was halted, and this turn has acted on that.
    halt: Option<HaltCause>,
    /// An earlier call failed, or was the final answer.
    call: Option<NotExecutedCause>,
    /// The input ended them.
    input: Option<NotExecutedCause>,
}

impl Closed {
    /// Returns why a call that arrives now doesn't run. `None` if it may. In an agent's last turn, only the call that
    /// gives its final answer may run.
    fn cause(&self, is_completion: bool) -> Option<NotExecutedCause> {
        let input = self.input.clone();
        let input = input.filter(|cause| !is_completion || *cause != NotExecutedCause::LastTurn);
        let halt = self.halt.map(NotExecutedCause::Halted);
        halt.or_else(|| self.call.clone()).or(input)
    }
}

impl<'e> RunningTurn<'e> {
    pub(crate) fn new(
        engine: &'e EngineState,
        number: usize,
        sink: SharedSink<'e>,
        delivery: &'e mut dyn AnswerDelivery,
    ) -> Self {
        Self {
            number,
            engine,
            sink,
            delivery,
            parent: None,
            queue: CallQueue::default(),
            gate: Box::default(),
            batches: Batches::default(),
            approvals: Approvals::default(),
            turn_gate: None,
            lines: ThrottledCalls::default(),
            permits: AwaitedPermits::default(),
            calls: RunningCalls::default(),
            closed: Closed::default(),
            stats: TurnStats::default(),
        }
    }

    /// Runs these calls until all have been delivered.
    pub(crate) async fn run_known(mut self, calls: Vec<CheckedCall>) -> TurnStats {
        if calls.iter().any(|call| call.repeats.is_some()) {
            self.queue.keep_answers();
        }
        let (_, no_arrivals) = mpsc::unbounded_channel();
        self.run_from(calls, no_arrivals).await
    }

    /// Runs calls until no more can arrive and all have been delivered.
    pub(crate) async fn run(self, arrivals: mpsc::UnboundedReceiver<TurnArrival>) -> TurnStats {
        self.run_from(Vec::new(), arrivals).await
    }

    async fn run_from(
        self,
        known: Vec<CheckedCall>,
        arrivals: mpsc::UnboundedReceiver<TurnArrival>,
    ) -> TurnStats {
        // On the heap, since what runs turns is nested in turn.
        Box::pin(self.run_arrivals(known, arrivals)).await
    }

    async fn run_arrivals(
        mut self,
        mut known: Vec<CheckedCall>,
        mut arrivals: mpsc::UnboundedReceiver<TurnArrival>,
    ) -> TurnStats {
        let engine = self.engine;
        self.emit(&Event::TurnStarted {
            turn: self.number,
            parent: self.parent.as_ref(),
            origin: &engine.turn_origin,
        });
        engine.run_budget.start_clock(engine.control.now());
        loop {
            self.check_halt();
            // Queue everything that has arrived before anything starts, so that what is already known about later
            // calls, such as a rejection that stops the turn, applies from the start.
            let is_open = self.receive_arrivals(mem::take(&mut known), &mut arrivals);
            let has_news = self.start_ready_calls();
            self.leave_turn_gate();
            self.write_events();
            self.sync_results();
            if !is_open && self.queue.is_empty() {
                break;
            }
            tokio::select! {
                () = ready(()), if has_news => {}
                arrival = arrivals.recv(), if is_open => arrival.into_iter().for_each(|arrival| self.handle_arrival(arrival)),
                Some(ended) = self.calls.lives.next() => self.finish_ended(ended),
                Some(message) = self.calls.messages.1.recv() => self.handle_message(message),
                Some(reply) = self.approvals.next_reply() => self.handle_reply(reply),
                () = self.permits.granted() => {}
                () = self.lines.wait_for_start(engine) => {}
                () = turn_gate_changed(self.turn_gate.as_ref()) => {}
                () = wait_for_halt_or_budget(engine), if self.closed.halt.is_none() => {}
            }
        }
        self.delivery.finish_turn(&mut self.sink);
        if self.parent.is_none() {
            self.emit(&Event::QueueDrained { turn: self.number });
        }
        self.stats
    }

    /// Handles everything that has arrived. Returns whether more can arrive.
    fn receive_arrivals(
        &mut self,
        known: Vec<CheckedCall>,
        arrivals: &mut mpsc::UnboundedReceiver<TurnArrival>,
    ) -> bool {
        for call in known {
            self.enqueue_call(call);
            // Those that need no start, so that their answers don't pile up.
            self.deliver_answers();
        }
        loop {
            match arrivals.try_recv() {
                Ok(arrival) => self.handle_arrival(arrival),
                Err(error) => return error == TryRecvError::Empty,
            }
            self.deliver_answers();
        }
    }

    /// Starts every call that may run now. Returns whether anything has happened meanwhile that may let others start.
    fn start_ready_calls(&mut self) -> bool {
        // What has come from calls is handled before others start, so that what follows from it starts together, and so
        // reaches a server together.
        self.poll_calls();
        self.permits.begin_round();
        self.admit_calls();
        self.permits.end_round();
        let has_news = self.poll_calls();
        self.emit_starts();
        self.poll_calls() || has_news
    }

    /// Writes the records that could wait until now.
    fn write_events(&self) {
        let _ = self.sink.emit(&[]);
    }

    /// Emits an event whose success nothing depends on. Only a refused start keeps a call from running, and a sink that
    /// has failed keeps track of that itself.
    fn emit(&self, event: &Event<'_>) {
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

/// Waits until the run must stop, or until one of its budgets may be used up.
async fn wait_for_halt_or_budget(engine: &EngineState) {
    tokio::select! {
        () = engine.control.wait_for_halt() => {}
        () = engine.run_budget.wait_for_exhaustion(&engine.control) => {}
    }
}
