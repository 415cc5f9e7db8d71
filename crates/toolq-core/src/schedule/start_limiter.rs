//! Decides when calls may start if their tool, server or host limits that.
//!
//! Calls with the same limits wait in a line of their own, so those of other tools pass them. Between lines, the call
//! that has waited longest comes first, but only where it could start.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::schedule::applied_limits::{AppliedLimits, LimitedSubject};
use crate::schedule::rate_meter::RateMeter;
use crate::types::StartLimits;

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
                if let Some(rate) = &state.limits.rate {
                    state.meter.record_start(rate, now, waited);
                }
            }
        }
    }

    /// Records when a call has really started, which is after its start was recorded.
    pub fn note_started(&mut self, ticket: &StartTicket, now: Duration) {
        for subject in ticket.subjects.iter() {
            if let Some(state) = self.states.get_mut(subject)
                && let Some(rate) = &state.limits.rate
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
            let state = &self.states[subject];
            let due = state.meter.due_at(state.limits.rate.as_ref()?);
            (due > now).then_some((due, subject))
        });
        let (due, subject) = due.max_by_key(|(due, _)| *due)?;
        Some(wait(subject, Some(due)))
    }
}

#[cfg(test)]
mod tests;
