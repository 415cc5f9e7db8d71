//! Turns → batches with reasons, and drawing them. Runs nothing.
//!
//! A plan is the engine's rule applied without the engine: what stands here in a batch runs in that batch. It borrows
//! the calls it is made of, and is as pure as the drawings of it: `json` for programs, `text` for a terminal, `mermaid`
//! for a page.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::partition::Partition;
use crate::plan::schedule::{Estimate, Slots};
use crate::text::format_duration;
use crate::types::{
    Accepted, Call, Checked, Detail, Invocation, OnFailure, Rejection, Tools, Verdict,
};

/// What would happen to the calls of a turn.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The number of the turn.
    pub turn: usize,
    /// How many calls run at once.
    pub jobs: NonZeroUsize,
    /// In the order in which they run.
    pub batches: Vec<Batch<'a>>,
    /// The calls that will not run, in call order.
    pub rejected: Vec<Rejected<'a>>,
    /// How long it will take.
    pub estimate: Estimate,
}

/// Calls that run at the same time: consecutive concurrency-safe ones, or one that is not, alone.
#[derive(Debug)]
pub struct Batch<'a> {
    /// In call order; at least one.
    pub calls: Vec<Planned<'a>>,
    /// From the start of the turn to its start.
    pub starts: Duration,
    /// From its start to the end of its last call.
    pub takes: Duration,
}

/// A call that will run.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// As it was asked.
    pub call: &'a Call,
    /// What it runs, and who decided about its safety.
    pub accepted: &'a Accepted,
    /// From the start of the turn to its start; calls beyond the concurrency wait for the first free place.
    pub starts: Duration,
}

/// A call that will not run.
#[derive(Debug, Clone, Copy)]
pub struct Rejected<'a> {
    /// As it was asked.
    pub call: &'a Call,
    /// Why.
    pub why: WhyNot<'a>,
}

/// Why a call will not run.
#[derive(Debug, Clone, Copy)]
pub enum WhyNot<'a> {
    /// It may not.
    Rejected(&'a Rejection),
    /// A call of this tool before it may not, and the tool says `on_failure: stop`.
    Behind(&'a str),
    /// A call of this tool before it ends the session.
    Completed(&'a str),
}

impl<'a> Plan<'a> {
    /// The plan of the calls of one turn, of which at most `jobs` run at once.
    ///
    /// `tools` says what the failure of a rejected call does to those behind it.
    pub fn of(turn: usize, checked: &'a [Checked], tools: &'a Tools, jobs: NonZeroUsize) -> Self {
        let stopping = stopping(tools);
        let mut plan = Self {
            turn,
            jobs,
            batches: Vec::new(),
            rejected: Vec::new(),
            estimate: Estimate::default(),
        };
        let mut partition = Partition::default();
        let mut stopped: Option<WhyNot<'a>> = None;
        for Checked { call, verdict, .. } in checked {
            match (verdict, stopped) {
                (Verdict::Rejected(rejection), _) => {
                    plan.reject(call, WhyNot::Rejected(rejection));
                    let failed = || stopping.get(call.name.as_str()).copied();
                    stopped = stopped.or_else(|| failed().map(WhyNot::Behind));
                }
                (Verdict::Accepted(_), Some(why)) => plan.reject(call, why),
                (Verdict::Accepted(accepted), None) => {
                    plan.place(call, accepted, partition.place(accepted.safe));
                    if let Some(Invocation::Completion(_)) = accepted.invocation {
                        stopped = Some(WhyNot::Completed(&accepted.tool.name));
                    }
                }
            }
        }
        plan.schedule();
        plan
    }

    /// How many calls the turn has.
    pub fn calls(&self) -> usize {
        self.planned().count() + self.rejected.len()
    }

    /// The calls that will run, in call order.
    pub fn planned(&self) -> impl Iterator<Item = &Planned<'a>> {
        self.batches.iter().flat_map(|batch| &batch.calls)
    }

    /// `batch 1: 3 in parallel`, or `batch 1: 6 calls, 4 at a time`; people count from 1.
    pub(crate) fn batch_title(&self, index: usize) -> String {
        let number = index + 1;
        match self.batches[index].calls.len() {
            1 => format!("batch {number}"),
            calls if self.batches[index].slots(self.jobs) > self.jobs.get() => {
                format!("batch {number}: {calls} calls, {} at a time", self.jobs)
            }
            calls => format!("batch {number}: {calls} in parallel"),
        }
    }

    fn reject(&mut self, call: &'a Call, why: WhyNot<'a>) {
        self.rejected.push(Rejected { call, why });
    }

    fn place(&mut self, call: &'a Call, accepted: &'a Accepted, batch: usize) {
        if batch == self.batches.len() {
            self.batches.push(Batch {
                calls: Vec::new(),
                starts: Duration::ZERO,
                takes: Duration::ZERO,
            });
        }
        self.batches[batch].calls.push(Planned {
            call,
            accepted,
            starts: Duration::ZERO,
        });
    }

    /// Gives every batch and call its place in time: batches add up, calls of one share `jobs` slots in call order.
    fn schedule(&mut self) {
        let mut now = Duration::ZERO;
        for batch in &mut self.batches {
            let mut slots = Slots::new(self.jobs, now);
            for planned in &mut batch.calls {
                let takes = planned.accepted.tool.estimate;
                let time = takes.unwrap_or_default();
                planned.starts = if planned.takes_slot(self.jobs) {
                    slots.take(time)
                } else {
                    slots.pass(time)
                };
                self.estimate.serial += takes.unwrap_or_default();
                self.estimate.unknown += usize::from(takes.is_none());
            }
            batch.starts = now;
            batch.takes = slots.end().saturating_sub(now);
            now = slots.end();
        }
        self.estimate.planned = now;
    }
}

/// The tools after whose failure nothing else of the turn runs.
fn stopping(tools: &Tools) -> HashSet<&str> {
    let stops = |on_failure| on_failure == OnFailure::Stop;
    let tools = tools.tools.iter().filter(|tool| stops(tool.on_failure));
    tools.map(|tool| tool.name.as_str()).collect()
}

impl Batch<'_> {
    /// Whether calls of it run beside each other.
    pub fn is_parallel(&self) -> bool {
        self.calls.len() > 1
    }

    /// How many places its calls would take at once.
    fn slots(&self, jobs: NonZeroUsize) -> usize {
        let taking = self.calls.iter().filter(|call| call.takes_slot(jobs));
        taking.count()
    }
}

impl Planned<'_> {
    /// Whether it counts against the calls that run at once. An agent doesn't, but its own calls do; where nothing runs
    /// beside anything else, neither do agents.
    fn takes_slot(&self, jobs: NonZeroUsize) -> bool {
        jobs == NonZeroUsize::MIN || !matches!(self.accepted.invocation, Some(Invocation::Agent(_)))
    }

    /// `safe: rule get_*`.
    pub(crate) fn reason(&self) -> String {
        let word = if self.accepted.safe {
            "safe"
        } else {
            "not safe"
        };
        format!("{word}: {}", self.accepted.decided_by)
    }
}

impl<'a> Rejected<'a> {
    /// The word of plans and logs.
    pub fn reason(&self) -> &'static str {
        match self.why {
            WhyNot::Rejected(rejection) => rejection.reason.name(),
            WhyNot::Behind(_) | WhyNot::Completed(_) => "not_executed",
        }
    }

    /// One for each problem; at least one.
    pub fn details(&self) -> Cow<'a, [Detail]> {
        match self.why {
            WhyNot::Rejected(rejection) => Cow::Borrowed(&rejection.details),
            WhyNot::Completed(tool) => Cow::Owned(vec![Detail {
                path: String::new(),
                message: format!("the {tool} call before it ends the work"),
            }]),
            WhyNot::Behind(tool) => Cow::Owned(vec![Detail {
                path: String::new(),
                message: format!(
                    "the preceding {tool} call is rejected, and {tool} says `on_failure: stop`"
                ),
            }]),
        }
    }
}

/// `8s in series, 4s as planned`.
pub(crate) fn totals(estimate: &Estimate) -> String {
    format!(
        "{} in series, {} as planned",
        format_duration(estimate.serial),
        format_duration(estimate.planned)
    )
}
