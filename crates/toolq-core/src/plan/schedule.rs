//! Estimates when the calls of a turn start and end: plays the turn with the engine's rules, in the time that the tools'
//! estimates say.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::plan::turn_plan::PlannedCall;
use crate::schedule::{AppliedLimits, LimitedSubject, StartLimiter, StartTicket};

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

/// Plays a turn: its calls take the slots that are free, and wait for the limits of their tools, servers and hosts.
pub(crate) struct TurnSimulation {
    jobs: NonZeroUsize,
    now: Duration,
    running: BinaryHeap<Reverse<(Duration, usize)>>,
    /// The kind of each running call, and its place in the limits.
    running_calls: HashMap<usize, (SlotKind, Option<StartTicket>)>,
    slots_taken: HashMap<SlotKind, usize>,
    limiter: StartLimiter,
    /// The calls that wait for their turn, in their lines.
    throttled: HashMap<Arc<[LimitedSubject]>, WaitingLine>,
}

/// Agents take no slots of other calls, unless everything runs in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SlotKind {
    Call,
    Agent,
}

/// Calls with the same limits, in the order in which they have their turns.
type WaitingLine = BTreeMap<(bool, u64), ThrottledCall>;

#[derive(Debug, Clone)]
struct ThrottledCall {
    index: usize,
    ticket: StartTicket,
    since: Duration,
}

impl TurnSimulation {
    /// Creates a simulation in which at most `jobs` calls run at once.
    pub(crate) fn new(jobs: NonZeroUsize) -> Self {
        Self {
            jobs,
            now: Duration::ZERO,
            running: BinaryHeap::new(),
            running_calls: HashMap::new(),
            slots_taken: HashMap::new(),
            limiter: StartLimiter::default(),
            throttled: HashMap::new(),
        }
    }

    /// Returns the time that has passed.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Runs the calls of a batch, whose limits are given, to the last one's end. Sets when each of them starts.
    pub(crate) fn run_batch(&mut self, calls: &mut [PlannedCall<'_>], limits: &[AppliedLimits]) {
        let mut next = 0;
        loop {
            let due = self.start_throttled(calls);
            while next < calls.len() && self.admit(next, calls, &limits[next]) {
                next += 1;
            }
            let end = self.running.peek().map(|Reverse((end, _))| *end);
            let Some(then) = [end, due].into_iter().flatten().min() else {
                return;
            };
            self.now = self.now.max(then);
            self.finish_calls();
        }
    }

    /// Starts a call, or lets it wait for its turn. Returns false if no slot is free for it.
    fn admit(
        &mut self,
        index: usize,
        calls: &mut [PlannedCall<'_>],
        limits: &AppliedLimits,
    ) -> bool {
        if limits.is_empty() {
            let kind = self.slot_kind(&calls[index]);
            let is_free = self.has_slot(kind);
            if is_free {
                self.start(index, calls, None);
            }
            return is_free;
        }
        let ticket = self.limiter.enqueue(limits, false);
        let line = self.throttled.entry(Arc::clone(ticket.line())).or_default();
        let since = self.now;
        line.insert(
            ticket.order(),
            ThrottledCall {
                index,
                ticket,
                since,
            },
        );
        self.start_throttled(calls);
        true
    }

    /// Starts the calls whose turn it is. Returns when the next of the others may start, as far as that depends on time
    /// alone.
    fn start_throttled(&mut self, calls: &mut [PlannedCall<'_>]) -> Option<Duration> {
        loop {
            let fronts = self
                .throttled
                .values()
                .filter_map(|line| line.values().next());
            let mut fronts: Vec<ThrottledCall> = fronts.cloned().collect();
            fronts.sort_unstable_by_key(|call| call.ticket.order());
            let mut due: Option<Duration> = None;
            let next =
                fronts
                    .into_iter()
                    .find(|call| match self.limiter.check(&call.ticket, self.now) {
                        Ok(()) => self.has_slot(self.slot_kind(&calls[call.index])),
                        Err(wait) => {
                            due = [due, wait.until].into_iter().flatten().min();
                            false
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
            if let Some(line) = self.throttled.get_mut(ticket.line()) {
                line.remove(&ticket.order());
                if line.is_empty() {
                    self.throttled.remove(ticket.line());
                }
            }
            self.start(index, calls, Some(ticket));
        }
    }

    fn start(&mut self, index: usize, calls: &mut [PlannedCall<'_>], ticket: Option<StartTicket>) {
        let call = &mut calls[index];
        call.start = self.now;
        let kind = self.slot_kind(call);
        *self.slots_taken.entry(kind).or_default() += 1;
        let estimate = call.accepted.tool.estimate.unwrap_or_default();
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
            self.slots_taken.entry(kind).and_modify(|taken| *taken -= 1);
            if let Some(ticket) = ticket {
                self.limiter.finish(&ticket);
            }
        }
    }

    fn slot_kind(&self, call: &PlannedCall<'_>) -> SlotKind {
        if call.is_agent() && self.jobs > NonZeroUsize::MIN {
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
