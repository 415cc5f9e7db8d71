//! One turn: its calls are let in, in order, run, and are answered in order.
//!
//! What concerns several calls is decided here, at once and by nobody else: which call is next (`admission`), whether it was
//! approved (`approval`), what limits it (`lines`), and what its end does to others (`ending`). What concerns one call alone
//! is the life of that call, from the moment when it has its place to its outcome: [`RunningCall::run`].

mod admission;
mod approval;
mod arrival;
mod attempts;
mod call;
mod concurrent;
mod ending;
mod handle;
mod lines;
mod memory;
mod queue;
mod shared_sink;
mod turn_gate;

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, pending, ready};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc::{self, error::TryRecvError};
use tokio::sync::oneshot;
use tracing::{Instrument as _, debug_span};

use crate::scheduler::AwaitedPermits;
use crate::settings::AnswerDelivery;
use crate::state::EngineState;
use crate::turn::approval::Approvals;
use crate::turn::call::{EndedCall, RunningCall, Start, StopSignal};
use crate::turn::ending::CallEffect;
use crate::turn::lines::{RetryInLine, ThrottledCalls};
use crate::turn::queue::{CallQueue, CallStop};
use crate::turn::turn_gate::TurnGate;
use toolq_core::plan::BatchPartition;
use toolq_core::schedule::Gate;
use toolq_core::types::{
    CallRef, CheckedCall, Commit, DoubtCause, EmitError, Event, HaltCause, NotExecutedCause,
    TurnArrival,
};

pub(crate) use call::CallJob;
pub(crate) use concurrent::{ConcurrentTurns, SharedDelivery};
pub use concurrent::{LateResult, TurnRequest};
pub(crate) use handle::{SubTurnAnswers, TurnHandle};
pub(crate) use shared_sink::{SharedSink, TurnSink};

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
    partition: Box<BatchPartition>,
    queue: CallQueue,
    gate: Box<Gate>,
    /// The calls that the gate let pass, and those to be retried, while their limits make them wait.
    lines: ThrottledCalls,
    /// The permits that the next calls wait for.
    permits: AwaitedPermits,
    /// The place among turns that run at the same time, if there are any.
    turn_gate: Option<TurnGate>,
    approvals: Approvals,
    /// The calls that have their place, each until it has its outcome.
    calls: FuturesUnordered<CallLife<'e>>,
    messages: (
        mpsc::UnboundedSender<CallMessage>,
        mpsc::UnboundedReceiver<CallMessage>,
    ),
    /// The starts that are to be emitted next, all together.
    starts: Vec<StartRequest>,
    /// The batches that have started.
    started_batches: HashSet<usize>,
    /// Batches canceled by a call that failed in an earlier run, each with the tool of that call.
    canceled_batches: HashMap<usize, String>,
    /// What remains to be done because a call has ended. Empty between two events.
    effects: VecDeque<CallEffect>,
    /// Why the run was halted, once this turn has acted on that.
    halted_by: Option<HaltCause>,
    /// Why later calls don't run: an earlier one failed, or was the final answer.
    stopped_by: Option<NotExecutedCause>,
    /// Why calls that haven't started don't run, if the input ended them.
    arrivals_ended_by: Option<NotExecutedCause>,
    stats: TurnStats,
}

type CallLife<'e> = Pin<Box<dyn Future<Output = EndedCall> + Send + 'e>>;

/// What a call that runs shares with its turn.
pub(super) struct TurnLink<'e> {
    engine: &'e EngineState,
    sink: SharedSink<'e>,
    messages: mpsc::UnboundedSender<CallMessage>,
}

/// What the life of a call asks of its turn.
enum CallMessage {
    Start(StartRequest),
    Retry(RetryInLine),
    /// The results up to this request are durable, or never will be.
    Synced(u64),
}

/// A call that may start once that is on record.
struct StartRequest {
    start: Start,
    /// Receives whether it is claimed now, or why it isn't on record.
    reply: oneshot::Sender<Result<bool, EmitError>>,
}

impl TurnLink<'_> {
    fn send(&self, message: CallMessage) {
        // The turn outlives its calls, so sending can't fail.
        let _ = self.messages.send(message);
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
            partition: Box::default(),
            queue: CallQueue::default(),
            gate: Box::default(),
            lines: ThrottledCalls::default(),
            permits: AwaitedPermits::default(),
            turn_gate: None,
            approvals: Approvals::default(),
            calls: FuturesUnordered::new(),
            messages: mpsc::unbounded_channel(),
            starts: Vec::new(),
            started_batches: HashSet::new(),
            canceled_batches: HashMap::new(),
            effects: VecDeque::new(),
            halted_by: None,
            stopped_by: None,
            arrivals_ended_by: None,
            stats: TurnStats::default(),
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
        let agent = self.parent.as_ref().map(|call| &*call.tool_name);
        let span = debug_span!("turn", number = self.number, agent);
        // On the heap, since what runs turns is nested in turn.
        Box::pin(self.run_arrivals(known, arrivals))
            .instrument(span)
            .await
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
            let any_ended = self.start_ready_calls();
            self.leave_turn_gate();
            self.sync_results();
            if !is_open && self.queue.is_empty() {
                break;
            }
            tokio::select! {
                // What has ended may let others start.
                () = ready(()), if any_ended => {}
                arrival = arrivals.recv(), if is_open => arrival.into_iter().for_each(|arrival| self.handle_arrival(arrival)),
                Some(ended) = self.calls.next() => self.finish_ended(ended),
                Some(message) = self.messages.1.recv() => self.handle_message(message),
                Some(reply) = self.approvals.next_reply() => self.handle_reply(reply),
                () = self.permits.granted() => {}
                () = self.lines.wait_for_start(engine) => {}
                () = turn_gate_changed(self.turn_gate.as_ref()) => {}
                () = wait_for_halt_or_budget(engine), if self.halted_by.is_none() => {}
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
        }
        loop {
            match arrivals.try_recv() {
                Ok(arrival) => self.handle_arrival(arrival),
                Err(error) => return error == TryRecvError::Empty,
            }
        }
    }

    /// Starts every call that may run now. Returns whether calls have ended meanwhile.
    fn start_ready_calls(&mut self) -> bool {
        // What has come from calls is handled before others start, so that what follows from it starts together, and so
        // reaches a server together.
        let ended_before = self.poll_calls();
        self.permits.begin_round();
        self.admit_calls();
        self.permits.end_round();
        let ended_unstarted = self.poll_calls();
        self.emit_starts();
        self.poll_calls() || ended_unstarted || ended_before
    }

    /// Lets the calls that have their place go on as far as they can. Returns whether any has ended.
    fn poll_calls(&mut self) -> bool {
        let mut any_ended = false;
        while let Some(Some(ended)) = self.calls.next().now_or_never() {
            any_ended = true;
            self.finish_ended(ended);
        }
        while let Ok(message) = self.messages.1.try_recv() {
            self.handle_message(message);
        }
        any_ended
    }

    fn handle_message(&mut self, message: CallMessage) {
        match message {
            CallMessage::Start(start) => self.starts.push(start),
            CallMessage::Retry(retry) => self.throttle_retry(retry),
            CallMessage::Synced(request) => {
                self.queue.note_synced(request);
                self.deliver_answers();
            }
        }
    }

    /// Gives a call its life. It has its place in the order, and its permit.
    fn begin_call(&mut self, call: RunningCall) {
        let (stop, stopped) = oneshot::channel();
        self.queue.set_running(call.number, CallStop::new(stop));
        let turn = TurnLink {
            engine: self.engine,
            sink: self.sink,
            messages: self.messages.0.clone(),
        };
        let life = call.run(turn, StopSignal::new(stopped));
        self.calls.push(Box::pin(life));
    }

    /// Emits the starts that were asked for in one slice, so that a log can record them together. The calls go on once what they
    /// need is durable.
    fn emit_starts(&mut self) {
        let mut starts = mem::take(&mut self.starts);
        starts.retain(|request| self.queue.is_running(request.start.number));
        if starts.is_empty() {
            return;
        }
        let mut new_batches = Vec::new();
        for StartRequest { start, .. } in &starts {
            let new = start
                .call
                .batch
                .filter(|batch| self.started_batches.insert(*batch));
            new_batches.push(new.map(|batch| (batch, self.queue.batch_calls(start.number))));
        }
        let mut events = Vec::with_capacity(starts.len() + 1);
        for (StartRequest { start, .. }, new_batch) in starts.iter().zip(&new_batches) {
            events.extend(
                new_batch
                    .as_ref()
                    .map(|(batch, calls)| Event::BatchStarted {
                        turn: self.number,
                        batch: *batch,
                        calls,
                    }),
            );
            events.push(start.event());
        }
        match self.sink.emit(&events) {
            Ok(()) => self.commit_starts(starts),
            Err(why) => {
                for StartRequest { reply, .. } in starts {
                    let _ = reply.send(Err(why.clone()));
                }
            }
        }
    }

    /// Lets calls go on whose starts were emitted: at once, or once what they need is durable.
    fn commit_starts(&mut self, starts: Vec<StartRequest>) {
        let memory = self.engine.settings.memory.as_ref();
        let (mut claims, mut claimed, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for StartRequest { start, reply } in starts {
            if memory.is_none() || !start.job.is_remembered || start.is_probe {
                let _ = reply.send(Ok(true));
            } else if let Some(claim) = start.claim {
                claims.push((start.call.key(), claim));
                claimed.push(reply);
            } else {
                recorded.push(reply);
            }
        }
        let Some(memory) = memory else { return };
        if !claimed.is_empty() {
            let commit = Commit {
                claims,
                syncs_log: false,
            };
            memory.commit(commit, Box::new(|done| tell_all(claimed, &done)));
        }
        if !recorded.is_empty() {
            let commit = Commit {
                claims: Vec::new(),
                syncs_log: true,
            };
            memory.commit(commit, Box::new(|done| tell_all(recorded, &done)));
        }
    }

    /// Requests that the results which somebody waits for become durable. This isn't done as soon as a call ends, so that one sync
    /// also covers the start that usually follows.
    fn sync_results(&mut self) {
        if !self.queue.has_unrequested() {
            return;
        }
        let Some(memory) = &self.engine.settings.memory else {
            return;
        };
        let request = self.queue.request_sync();
        let messages = self.messages.0.clone();
        let commit = Commit {
            claims: Vec::new(),
            syncs_log: true,
        };
        // If they never become durable, the log says so, and they are results all the same.
        let done = move |_| drop(messages.send(CallMessage::Synced(request)));
        memory.commit(commit, Box::new(done));
    }

    /// Emits an event whose success nothing depends on. Only a refused start keeps a call from running, and a sink that
    /// has failed keeps track of that itself.
    fn emit(&self, event: &Event<'_>) {
        let _ = self.sink.emit(std::slice::from_ref(event));
    }
}

/// Tells calls whether each of them is claimed now. One that needs no claim has none that is another's.
fn tell_all(
    replies: Vec<oneshot::Sender<Result<bool, EmitError>>>,
    committed: &Result<Vec<bool>, EmitError>,
) {
    for (index, reply) in replies.into_iter().enumerate() {
        let is_ours = |are_ours: &Vec<bool>| are_ours.get(index).copied().unwrap_or(true);
        let _ = reply.send(committed.as_ref().map(is_ours).map_err(Clone::clone));
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
