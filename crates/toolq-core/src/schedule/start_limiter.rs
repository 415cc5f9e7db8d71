//! Decides when calls may start if their tool or server limits that.
//!
//! Calls with the same limits wait in a line of their own, so those of other tools pass them. Between lines, the call
//! that has waited longest comes first, but only where it could start.

#[cfg(test)]
mod applied_limits_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::types::{AcceptedCall, Backing, Invocation, StartLimits, StartRate};

/// Starts calls as their limits say.
#[derive(Debug, Default)]
pub struct StartLimiter {
    states: HashMap<LimitedSubject, LimitState>,
    /// The calls that wait, by what limits them.
    lines: HashMap<Arc<[LimitedSubject]>, BTreeSet<LinePosition>>,
    tickets: u64,
}

#[derive(Debug, Default)]
struct LimitState {
    limits: StartLimits,
    running: usize,
    meter: RateMeter,
}

/// The position of a call in its line. Retries come before calls that haven't started: they hold what these may need.
/// Otherwise, first come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePosition {
    is_first_start: bool,
    number: u64,
}

/// A call's claim to start, once its limits allow it.
#[derive(Debug, Clone)]
pub struct StartTicket {
    subjects: Arc<[LimitedSubject]>,
    position: LinePosition,
}

impl StartTicket {
    /// Returns what identifies the line of the call: calls of one line start in the order of their
    /// positions.
    pub fn line(&self) -> &Arc<[LimitedSubject]> {
        &self.subjects
    }

    /// Returns the position of the call in its line, by which calls can be sorted.
    pub fn position(&self) -> LinePosition {
        self.position
    }
}

/// Why a call can't start yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartWait {
    /// What limits it.
    pub subject: LimitedSubject,
    /// Whether that is the rate, and not the number of calls that run at once.
    pub is_rate: bool,
    /// When it may start, if that depends on time alone.
    pub until: Option<Duration>,
}

impl StartWait {
    /// Returns the key of tools.yaml that makes the call wait.
    pub fn limit_name(&self) -> &'static str {
        if self.is_rate { "rate" } else { "max_parallel" }
    }
}

impl StartLimiter {
    /// Adds a call to its line. `is_retry` says that it runs already, and another attempt is to start.
    pub fn enqueue(&mut self, limits: &AppliedLimits, is_retry: bool) -> StartTicket {
        for (subject, limits) in limits.iter() {
            self.states.entry(subject.clone()).or_default().limits = *limits;
        }
        self.tickets += 1;
        let ticket = StartTicket {
            subjects: limits.iter().map(|(subject, _)| subject.clone()).collect(),
            position: LinePosition {
                is_first_start: !is_retry,
                number: self.tickets,
            },
        };
        let line = self.lines.entry(Arc::clone(&ticket.subjects)).or_default();
        line.insert(ticket.position);
        ticket
    }

    /// Returns whether this call may start.
    ///
    /// # Errors
    /// What it waits for.
    pub fn check(&self, ticket: &StartTicket, now: Duration) -> Result<(), StartWait> {
        if let Some(wait) = self.limit_reached(&ticket.subjects, ticket.position, now) {
            return Err(wait);
        }
        let waits_for_others = || StartWait {
            subject: ticket.subjects[0].clone(),
            is_rate: self.states[&ticket.subjects[0]].limits.rate.is_some(),
            until: None,
        };
        // What the calls need that come before this one and can start, too.
        let mut taken: HashSet<&LimitedSubject> = HashSet::new();
        let mut fronts: Vec<_> = self
            .lines
            .iter()
            .filter_map(|(subjects, line)| Some((*line.first()?, subjects)))
            .filter(|(position, _)| *position <= ticket.position)
            .collect();
        fronts.sort_unstable_by_key(|(position, _)| *position);
        for (position, subjects) in fronts {
            let is_free = subjects.iter().all(|subject| !taken.contains(subject))
                && self.limit_reached(subjects, position, now).is_none();
            if position == ticket.position {
                return if is_free {
                    Ok(())
                } else {
                    Err(waits_for_others())
                };
            }
            if is_free {
                taken.extend(subjects.iter());
            }
        }
        Err(waits_for_others())
    }

    /// Starts a call that waits in line. `waited` says whether it had to.
    pub fn start(&mut self, ticket: &StartTicket, now: Duration, waited: bool) {
        self.withdraw(ticket);
        for subject in ticket.subjects.iter() {
            if let Some(state) = self.states.get_mut(subject) {
                state.running += usize::from(ticket.position.is_first_start);
                if let Some(rate) = state.limits.rate {
                    state.meter.record_start(rate, now, waited);
                }
            }
        }
    }

    /// Records when a call has really started, which is after its start was recorded.
    pub fn note_started(&mut self, ticket: &StartTicket, now: Duration) {
        for subject in ticket.subjects.iter() {
            if let Some(state) = self.states.get_mut(subject)
                && let Some(rate) = state.limits.rate
            {
                state.meter.note_started(rate, now);
            }
        }
    }

    /// Takes a call out of its line.
    pub fn withdraw(&mut self, ticket: &StartTicket) {
        if let Some(line) = self.lines.get_mut(&ticket.subjects) {
            line.remove(&ticket.position);
            if line.is_empty() {
                self.lines.remove(&ticket.subjects);
            }
        }
    }

    /// Records the end of the call that started with this ticket.
    pub fn finish(&mut self, ticket: &StartTicket) {
        for subject in ticket.subjects.iter() {
            if let Some(state) = self.states.get_mut(subject) {
                state.running = state.running.saturating_sub(1);
            }
        }
    }

    /// Returns the first limit that is reached. If only rates are, the one that takes longest.
    fn limit_reached(
        &self,
        subjects: &[LimitedSubject],
        position: LinePosition,
        now: Duration,
    ) -> Option<StartWait> {
        let wait = |subject: &LimitedSubject, until: Option<Duration>| StartWait {
            subject: subject.clone(),
            is_rate: until.is_some(),
            until,
        };
        let full = subjects.iter().find(|subject| {
            let state = &self.states[*subject];
            let max_parallel = state
                .limits
                .max_parallel
                .filter(|_| position.is_first_start);
            max_parallel.is_some_and(|most| state.running >= most.get())
        });
        if let Some(subject) = full {
            return Some(wait(subject, None));
        }
        let due = subjects.iter().filter_map(|subject| {
            let due = self.states[subject].meter.next;
            (due > now).then_some((due, subject))
        });
        let (due, subject) = due.max_by_key(|(due, _)| *due)?;
        Some(wait(subject, Some(due)))
    }
}

// Keeps starts as far apart as a rate says.

/// The least lateness that is tolerated without delaying later starts: timers have a resolution of a millisecond.
const MIN_LATENESS: Duration = Duration::from_millis(2);

/// The state of a rate.
///
/// Starts are due on a grid. One that is a little late doesn't move the grid, so the rate holds over time although no
/// timer is exact; one that is later does, so that no starts are made up for.
#[derive(Debug, Clone, Default)]
struct RateMeter {
    /// When the next call may start.
    next: Duration,
}

impl RateMeter {
    /// Counts a start. `waited` says whether the call waited for it, so that it may be late.
    fn record_start(&mut self, rate: StartRate, now: Duration, waited: bool) {
        let lateness = if waited {
            max_lateness(rate)
        } else {
            Duration::ZERO
        };
        self.next = self.next.max(now.saturating_sub(lateness)) + rate.interval();
    }

    /// Notes when the call of the last start really started: its start was recorded in the meantime.
    fn note_started(&mut self, rate: StartRate, now: Duration) {
        let counted_from = now.saturating_sub(max_lateness(rate));
        self.next = self.next.max(counted_from + rate.interval());
    }
}

/// Returns how late a start may be without moving the grid.
fn max_lateness(rate: StartRate) -> Duration {
    let interval = rate.interval();
    MIN_LATENESS.max(interval / 50).min(interval / 2)
}

// What its user knows about the calls that wait in the lines of a [`StartLimiter`](crate::schedule::StartLimiter).

/// Calls that wait for their start, with others of the same limits in one line, in the order in which they start.
#[derive(Debug)]
pub struct WaitingLines<T> {
    lines: HashMap<Arc<[LimitedSubject]>, BTreeMap<LinePosition, T>>,
}

impl<T> Default for WaitingLines<T> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
        }
    }
}

impl<T> WaitingLines<T> {
    /// Adds the call with this ticket, or replaces what is known about it.
    pub fn insert(&mut self, ticket: &StartTicket, call: T) {
        let line = self.lines.entry(Arc::clone(ticket.line())).or_default();
        line.insert(ticket.position(), call);
    }

    /// Removes the call with this ticket.
    pub fn remove(&mut self, ticket: &StartTicket) -> Option<T> {
        let line = self.lines.get_mut(ticket.line())?;
        let call = line.remove(&ticket.position());
        if line.is_empty() {
            self.lines.remove(ticket.line());
        }
        call
    }

    /// Returns whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the calls of each line, in order.
    pub fn lines(&self) -> impl Iterator<Item = impl DoubleEndedIterator<Item = &T>> {
        self.lines.values().map(BTreeMap::values)
    }
}

impl<T: Clone> WaitingLines<T> {
    /// Returns the first call of each line, in the order in which they start if nothing limits them.
    pub fn fronts(&self) -> Vec<T> {
        let fronts = self.lines.values().filter_map(BTreeMap::first_key_value);
        let mut fronts: Vec<_> = fronts.collect();
        fronts.sort_unstable_by_key(|(position, _)| **position);
        fronts.into_iter().map(|(_, call)| call.clone()).collect()
    }
}

// What limits when a call starts: its tool, and its server.

/// What limits calls. Displayed for people: `save`, `server files`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display)]
pub enum LimitedSubject {
    /// The tool with this name. Agents at different depths have limits of their own: one waits for those it calls.
    #[display("{_0}")]
    Tool(String, usize),
    /// The server with this name.
    #[display("server {_0}")]
    Server(String),
}

/// The limits that apply to a call.
pub type AppliedLimits = Arc<[(LimitedSubject, StartLimits)]>;

/// What most calls have. They share it.
static UNLIMITED: LazyLock<AppliedLimits> = LazyLock::new(|| Arc::from([]));

/// Returns what limits a call, whose agent is nested in `depth` others.
pub fn applied_limits(accepted: &AcceptedCall, depth: usize) -> AppliedLimits {
    let tool = &accepted.tool;
    let depth = match accepted.invocation {
        Some(Invocation::Agent(_)) => depth,
        _ => 0,
    };
    let own = (!tool.start_limits.is_empty()).then(|| {
        let subject = LimitedSubject::Tool(tool.name.clone(), depth);
        (subject, tool.start_limits)
    });
    let shared = match &tool.backing {
        Some(Backing::Mcp(mcp)) if !mcp.server.start_limits.is_empty() => {
            let subject = LimitedSubject::Server(mcp.server.name.clone());
            Some((subject, mcp.server.start_limits))
        }
        _ => None,
    };
    if own.is_none() && shared.is_none() {
        return Arc::clone(&UNLIMITED);
    }
    own.into_iter().chain(shared).collect()
}

#[cfg(test)]
mod rate_tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::types::RatePeriod;

    fn rate(starts: u32) -> StartRate {
        StartRate {
            starts: NonZeroU32::new(starts).unwrap(),
            period: RatePeriod::Second,
        }
    }

    /// Starts as many calls as wait all the time, each as late as `lateness` says. Returns when they started, in
    /// milliseconds.
    fn starts(rate: StartRate, count: u64, lateness: impl Fn(u64) -> u64) -> Vec<u128> {
        let mut meter = RateMeter::default();
        let mut now = Duration::from_secs(5);
        let start = now;
        let mut starts = Vec::new();
        for call in 0..count {
            let due = meter.next;
            let waited = due > now;
            now = now.max(due + Duration::from_millis(lateness(call)));
            meter.record_start(rate, now, waited);
            starts.push(now.saturating_sub(start).as_millis());
        }
        starts
    }

    #[test]
    fn starts_are_equally_far_apart() {
        assert_eq!(starts(rate(10), 4, |_| 0), [0, 100, 200, 300]);
    }

    /// A timer that is a millisecond late each time doesn't slow the rate down, and nothing is made up for after a
    /// longer delay.
    #[test]
    fn lateness_does_not_add_up_and_a_delay_saves_nothing() {
        let late = starts(rate(100), 1_001, |call| call % 3);
        assert!((10_000..10_003).contains(&late[1_000]), "{}", late[1_000]);
        assert!(late.windows(2).all(|pair| pair[1] - pair[0] >= 8));
        let delayed = starts(rate(10), 4, |call| if call == 1 { 250 } else { 0 });
        assert_eq!(delayed, [0, 350, 448, 548]);
    }

    /// However fast a rate is, a start that comes late moves those after it by half an interval at least.
    #[test]
    fn lateness_is_at_most_half_of_an_interval() {
        let (mut meter, rate) = (RateMeter::default(), rate(500));
        meter.note_started(rate, Duration::from_secs(9));
        assert_eq!(meter.next, Duration::from_millis(9_001));
    }
}
