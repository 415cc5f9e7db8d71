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
    lines: HashMap<Arc<[LimitedSubject]>, BTreeSet<Turn>>,
    tickets: u64,
}

#[derive(Debug, Default)]
struct LimitState {
    limits: StartLimits,
    running: usize,
    meter: RateMeter,
}

/// Retries come before calls that haven't started: they hold what these may need. Otherwise, first come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_first_start: bool,
    number: u64,
}

/// The place of a call in its line.
#[derive(Debug, Clone)]
pub struct StartTicket {
    subjects: Arc<[LimitedSubject]>,
    turn: Turn,
}

impl StartTicket {
    /// Returns what identifies the line of the call: calls of one line start in the order of their tickets.
    pub fn line(&self) -> &Arc<[LimitedSubject]> {
        &self.subjects
    }

    /// Returns the place of the call in its line, by which calls can be sorted.
    pub fn order(&self) -> (bool, u64) {
        (self.turn.is_first_start, self.turn.number)
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
    /// Lets a call wait in line. `is_retry` if it runs already, and another attempt is to start.
    pub fn enqueue(&mut self, limits: &AppliedLimits, is_retry: bool) -> StartTicket {
        for (subject, limits) in limits.iter() {
            self.states.entry(subject.clone()).or_default().limits = *limits;
        }
        self.tickets += 1;
        let ticket = StartTicket {
            subjects: limits.iter().map(|(subject, _)| subject.clone()).collect(),
            turn: Turn {
                is_first_start: !is_retry,
                number: self.tickets,
            },
        };
        let line = self.lines.entry(Arc::clone(&ticket.subjects)).or_default();
        line.insert(ticket.turn);
        ticket
    }

    /// Returns whether it is the turn of this call.
    ///
    /// # Errors
    /// What it waits for.
    pub fn check(&self, ticket: &StartTicket, now: Duration) -> Result<(), StartWait> {
        if let Some(wait) = self.limit_reached(&ticket.subjects, ticket.turn, now) {
            return Err(wait);
        }
        let waits_for_others = || StartWait {
            subject: ticket.subjects[0].clone(),
            is_rate: self.states[&ticket.subjects[0]].limits.rate.is_some(),
            until: None,
        };
        // What calls need that come before this one and can start, too.
        let mut taken: HashSet<&LimitedSubject> = HashSet::new();
        let mut fronts: Vec<_> = self
            .lines
            .iter()
            .filter_map(|(subjects, line)| Some((*line.first()?, subjects)))
            .filter(|(turn, _)| *turn <= ticket.turn)
            .collect();
        fronts.sort_unstable_by_key(|(turn, _)| *turn);
        for (turn, subjects) in fronts {
            let is_free = subjects.iter().all(|subject| !taken.contains(subject))
                && self.limit_reached(subjects, turn, now).is_none();
            if turn == ticket.turn {
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
                state.running += usize::from(ticket.turn.is_first_start);
                if let Some(rate) = &state.limits.rate {
                    state.meter.record_start(rate, now, waited);
                }
            }
        }
    }

    /// Notes that a call has really started, after its start was recorded.
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
            line.remove(&ticket.turn);
            if line.is_empty() {
                self.lines.remove(&ticket.subjects);
            }
        }
    }

    /// Notes that a call has ended that started with this ticket.
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
        turn: Turn,
        now: Duration,
    ) -> Option<StartWait> {
        let wait = |subject: &LimitedSubject, until: Option<Duration>| StartWait {
            subject: subject.clone(),
            is_rate: until.is_some(),
            until,
        };
        let full = subjects.iter().find(|subject| {
            let state = &self.states[*subject];
            let max_parallel = state.limits.max_parallel.filter(|_| turn.is_first_start);
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
