//! Estimates when the calls of a turn start and end: plays the turn with the engine's rules, in the time that the tools'
//! estimates say.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::schedule::{
    AppliedLimits, CallAccess, Gate, StartLimiter, StartTicket, WaitingLines, applied_limits,
};
use crate::types::{AcceptedCall, Invocation, ToolsConfig};

/// How long the calls of a turn are expected to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnEstimate {
    /// If the calls run one after another.
    pub serial: Duration,
    /// If they run as planned.
    pub planned: Duration,
    /// Number of calls whose tool has no estimate; they count as zero.
    pub unestimated_calls: usize,
}

/// A call of a turn that is played.
#[derive(Debug)]
pub(crate) struct SimulatedCall {
    pub(crate) estimate: Option<Duration>,
    is_agent: bool,
    access: CallAccess,
    limits: AppliedLimits,
}

impl SimulatedCall {
    pub(crate) fn new(accepted: &AcceptedCall, access: CallAccess, tools: &ToolsConfig) -> Self {
        Self {
            estimate: accepted.tool.estimate,
            is_agent: matches!(accepted.invocation, Some(Invocation::Agent(_))),
            access,
            limits: known_limits(accepted, tools),
        }
    }
}

/// Returns what limits a call, as far as the file says: the environment may name another host.
pub(crate) fn known_limits(accepted: &AcceptedCall, tools: &ToolsConfig) -> AppliedLimits {
    applied_limits(accepted, tools, 0, &|_| None)
}

/// Plays a turn: its calls wait for those before them, take the slots that are free, and wait for the limits of their
/// tools, servers and hosts.
pub(crate) struct TurnSimulation {
    calls: Vec<SimulatedCall>,
    jobs: NonZeroUsize,
    now: Duration,
    starts: Vec<Duration>,
    gate: Gate,
    running: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The kind of each running call, and its place in the limits.
    running_calls: HashMap<usize, (SlotKind, Option<StartTicket>)>,
    slots_taken: HashMap<SlotKind, usize>,
    limiter: StartLimiter,
    /// The calls that their limits don't let start yet.
    throttled: WaitingLines<ThrottledCall>,
}

/// Agents take no slots of other calls, unless everything runs in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SlotKind {
    Call,
    Agent,
}

#[derive(Debug, Clone)]
struct ThrottledCall {
    index: usize,
    ticket: StartTicket,
    since: Duration,
}

impl TurnSimulation {
    /// Creates a simulation of these calls, of which at most `jobs` run at once.
    pub(crate) fn new(calls: Vec<SimulatedCall>, jobs: NonZeroUsize) -> Self {
        let mut gate = Gate::default();
        for (index, call) in calls.iter().enumerate() {
            // With a single job, nothing runs in parallel.
            let access = if jobs > NonZeroUsize::MIN {
                call.access.clone()
            } else {
                CallAccess::ALONE
            };
            gate.push(index, access);
        }
        Self {
            starts: vec![Duration::ZERO; calls.len()],
            calls,
            jobs,
            gate,
            now: Duration::ZERO,
            running: BinaryHeap::new(),
            running_calls: HashMap::new(),
            slots_taken: HashMap::new(),
            limiter: StartLimiter::default(),
            throttled: WaitingLines::default(),
        }
    }

    /// Plays the turn to its end. Returns when each call starts.
    pub(crate) fn run(mut self) -> Vec<Duration> {
        loop {
            self.start_throttled();
            while let Some(index) = self.gate.peek()
                && self.admit(index)
            {}
            let due = self.start_throttled();
            let end = self.running.peek().map(|Reverse((end, _))| *end);
            let Some(then) = [end, due].into_iter().flatten().min() else {
                return self.starts;
            };
            self.now = self.now.max(then);
            self.finish_calls();
        }
    }

    /// Starts a call, or lets it wait for its limits. Returns false if no slot is free for it.
    fn admit(&mut self, index: usize) -> bool {
        let limits = &self.calls[index].limits;
        if limits.is_empty() {
            let is_free = self.has_slot(self.slot_kind(index));
            if is_free {
                self.gate.enter();
                self.start(index, None);
            }
            return is_free;
        }
        let ticket = self.limiter.enqueue(limits, false);
        self.gate.enter();
        let call = ThrottledCall {
            index,
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
                    Ok(()) => self.has_slot(self.slot_kind(call.index)),
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
        self.starts[index] = self.now;
        let kind = self.slot_kind(index);
        *self.slots_taken.entry(kind).or_default() += 1;
        let estimate = self.calls[index].estimate.unwrap_or_default();
        let end = self.now.saturating_add(estimate);
        self.running.push(Reverse((end, index)));
        self.running_calls.insert(index, (kind, ticket));
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

    fn slot_kind(&self, index: usize) -> SlotKind {
        if self.calls[index].is_agent && self.jobs > NonZeroUsize::MIN {
            SlotKind::Agent
        } else {
            SlotKind::Call
        }
    }

    fn has_slot(&self, kind: SlotKind) -> bool {
        self.slots_taken
            .get(&kind)
            .is_none_or(|taken| *taken < self.jobs.get())
    }
}
