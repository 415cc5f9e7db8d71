//! Estimates when the calls of a turn start and end: plays the turn with the engine's rules, in the time that the tools'
//! estimates say.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::schedule::{
    AppliedLimits, CallAccess, Gate, StartLimiter, StartTicket, WaitingLines, applied_limits,
};
use crate::text::to_millis;
use crate::types::{AcceptedCall, Invocation};

/// A call of a turn that is played.
#[derive(Debug)]
pub(crate) struct SimulatedCall {
    estimate: Option<Duration>,
    is_agent: bool,
    access: CallAccess,
    limits: AppliedLimits,
}

impl SimulatedCall {
    pub(crate) fn new(accepted: &AcceptedCall) -> Self {
        Self {
            estimate: accepted.tool.estimate,
            is_agent: matches!(accepted.invocation, Some(Invocation::Agent(_))),
            access: CallAccess::of(accepted),
            limits: applied_limits(accepted, 0),
        }
    }
}

/// When the calls of a turn start, and how long the turn takes.
#[derive(Debug, Default)]
pub(crate) struct SimulatedTurn {
    /// In call order.
    pub(crate) starts: Vec<Duration>,
    pub(crate) estimate: TurnEstimate,
}

/// Plays a turn: its calls wait for those before them, take the slots that are free, and wait for the limits of their
/// tools, servers and hosts. Of a long turn, it holds only the calls that could be next, and those that run.
pub(crate) struct TurnSimulation<I> {
    /// The calls that the gate doesn't have yet.
    later_calls: I,
    /// Those that it has and that haven't started, by their number in the turn.
    waiting_calls: HashMap<usize, WaitingCall>,
    jobs: NonZeroUsize,
    now: Duration,
    turn: SimulatedTurn,
    gate: Gate,
    running: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The kind of each running call, and its place in the limits.
    running_calls: HashMap<usize, (SlotKind, Option<StartTicket>)>,
    slots_taken: HashMap<SlotKind, usize>,
    limiter: StartLimiter,
    /// The calls that their limits don't let start yet.
    throttled: WaitingLines<ThrottledCall>,
}

#[derive(Debug, Clone)]
struct ThrottledCall {
    index: usize,
    slot_kind: SlotKind,
    ticket: StartTicket,
    since: Duration,
}

impl<I: Iterator<Item = SimulatedCall>> TurnSimulation<I> {
    /// Creates a simulation of these calls, of which at most `jobs` run at once.
    pub(crate) fn new(calls: I, jobs: NonZeroUsize) -> Self {
        Self {
            later_calls: calls,
            waiting_calls: HashMap::new(),
            jobs,
            now: Duration::ZERO,
            turn: SimulatedTurn::default(),
            gate: Gate::default(),
            running: BinaryHeap::new(),
            running_calls: HashMap::new(),
            slots_taken: HashMap::new(),
            limiter: StartLimiter::default(),
            throttled: WaitingLines::default(),
        }
    }

    /// Plays the turn to its end.
    pub(crate) fn run(mut self) -> SimulatedTurn {
        loop {
            self.start_throttled();
            while let Some(index) = self.next_call()
                && self.admit(index)
            {}
            let due = self.start_throttled();
            let end = self.running.peek().map(|Reverse((end, _))| *end);
            let Some(then) = [end, due].into_iter().flatten().min() else {
                return self.turn;
            };
            self.now = self.now.max(then);
            self.finish_calls();
        }
    }

    /// Returns the first call that the gate lets pass.
    fn next_call(&mut self) -> Option<usize> {
        while self.gate.is_starved()
            && let Some(call) = self.later_calls.next()
        {
            self.push_call(call);
        }
        self.gate.peek()
    }

    fn push_call(&mut self, call: SimulatedCall) {
        let index = self.turn.starts.len();
        self.turn.starts.push(Duration::ZERO);
        // With a single job, nothing runs in parallel.
        let is_serial = self.jobs == NonZeroUsize::MIN;
        let access = if is_serial {
            CallAccess::ALONE
        } else {
            call.access
        };
        self.gate.push(index, access);
        let waiting = WaitingCall {
            estimate: call.estimate,
            slot_kind: if call.is_agent && !is_serial {
                SlotKind::Agent
            } else {
                SlotKind::Call
            },
            limits: call.limits,
        };
        self.waiting_calls.insert(index, waiting);
    }

    /// Starts a call, or lets it wait for its limits. Returns false if no slot is free for it.
    fn admit(&mut self, index: usize) -> bool {
        let Some(call) = self.waiting_calls.get(&index) else {
            return false;
        };
        if call.limits.is_empty() {
            let is_free = self.has_slot(call.slot_kind);
            if is_free {
                self.gate.enter();
                self.start(index, None);
            }
            return is_free;
        }
        let ticket = self.limiter.enqueue(&call.limits, false);
        let slot_kind = call.slot_kind;
        self.gate.enter();
        let call = ThrottledCall {
            index,
            slot_kind,
            ticket: ticket.clone(),
            since: self.now,
        };
        self.throttled.insert(&ticket, call);
        self.start_throttled();
        true
    }

    /// Starts the calls that their limits let start. Returns when the next of the others may start, as far as that depends
    /// on time alone.
    fn start_throttled(&mut self) -> Option<Duration> {
        loop {
            let mut due: Option<Duration> = None;
            let next = self.throttled.fronts().into_iter().find(|call| {
                match self.limiter.check(&call.ticket, self.now) {
                    Ok(()) => self.has_slot(call.slot_kind),
                    Err(wait) => {
                        due = [due, wait.until].into_iter().flatten().min();
                        false
                    }
                }
            });
            let Some(ThrottledCall {
                index,
                ticket,
                since,
                ..
            }) = next
            else {
                return due;
            };
            self.limiter.start(&ticket, self.now, self.now > since);
            self.throttled.remove(&ticket);
            self.start(index, Some(ticket));
        }
    }

    fn start(&mut self, index: usize, ticket: Option<StartTicket>) {
        let Some(call) = self.waiting_calls.remove(&index) else {
            return;
        };
        self.turn.starts[index] = self.now;
        self.turn.estimate.add(self.now, call.estimate);
        *self.slots_taken.entry(call.slot_kind).or_default() += 1;
        let end = self.now.saturating_add(call.estimate.unwrap_or_default());
        self.running.push(Reverse((end, index)));
        self.running_calls.insert(index, (call.slot_kind, ticket));
    }

    /// Ends the calls that end now.
    fn finish_calls(&mut self) {
        while let Some(Reverse((end, index))) = self.running.peek().copied()
            && end <= self.now
        {
            self.running.pop();
            let Some((kind, ticket)) = self.running_calls.remove(&index) else {
                continue;
            };
            self.gate.leave(index);
            self.slots_taken.entry(kind).and_modify(|taken| *taken -= 1);
            if let Some(ticket) = ticket {
                self.limiter.finish(&ticket);
            }
        }
    }

    fn has_slot(&self, kind: SlotKind) -> bool {
        self.slots_taken
            .get(&kind)
            .is_none_or(|taken| *taken < self.jobs.get())
    }
}

// The calls of a turn that is played, until they start.

/// A call that hasn't started.
#[derive(Debug)]
struct WaitingCall {
    estimate: Option<Duration>,
    slot_kind: SlotKind,
    limits: AppliedLimits,
}

/// Agents take no slots of other calls, unless everything runs in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SlotKind {
    Call,
    Agent,
}

/// How long the calls of a turn are expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TurnEstimate {
    /// If the calls run one after another.
    #[serde(rename = "serial_ms", serialize_with = "serialize_millis")]
    pub serial: Duration,
    /// If they run as planned.
    #[serde(rename = "planned_ms", serialize_with = "serialize_millis")]
    pub planned: Duration,
    /// Number of calls whose tool has no estimate; they count as zero.
    #[serde(rename = "unknown")]
    pub unestimated_calls: usize,
}

fn serialize_millis<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(to_millis(*duration))
}

impl TurnEstimate {
    /// Adds a call that starts at this time after the turn's start.
    pub(crate) fn add(&mut self, start: Duration, estimate: Option<Duration>) {
        let takes = estimate.unwrap_or_default();
        self.serial = self.serial.saturating_add(takes);
        self.planned = self.planned.max(start.saturating_add(takes));
        self.unestimated_calls += usize::from(estimate.is_none());
    }
}
