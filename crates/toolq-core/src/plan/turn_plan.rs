//! Plans a turn: which calls run, in which batches, when, and why the others don't.
//!
//! A plan borrows its calls. It is rendered by `json` for programs and `text` for a terminal.

#[cfg(test)]
mod agent_slots;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::call_waits::CallWaits;
use crate::plan::partition::BatchPartition;
use crate::plan::rejected_call::{RejectedCall, SkipCause};
use crate::plan::schedule::{SimulatedCall, SimulatedTurn, TurnSimulation, known_limits};
use crate::plan::turn_estimator::TurnEstimate;
use crate::schedule::{CallAccess, LimitedSubject};
use crate::text::format_duration;
use crate::types::{
    AcceptedCall, Call, CheckedCall, Invocation, OnFailure, ToolsConfig, Verdict, safety_text,
};

/// The heading above calls that repeat others.
pub const REPEATS_HEADING: &str = "sent twice";

/// The heading above calls that nobody waits for.
pub const ABANDONED_HEADING: &str = "abandoned: the conversation went on without their results";

/// What would happen to the calls of a turn.
#[derive(Debug)]
pub struct TurnPlan<'a> {
    /// The number of the turn.
    pub turn: usize,
    /// Maximum number of calls that run at once.
    pub jobs: NonZeroUsize,
    /// What limits them further.
    pub tools: &'a ToolsConfig,
    /// In execution order.
    pub batches: Vec<PlannedBatch<'a>>,
    /// The calls that won't run, in call order.
    pub rejected: Vec<RejectedCall<'a>>,
    /// Calls that repeat another one and have its result, in call order, each with the position of that call.
    pub repeats: Vec<(&'a Call, usize)>,
    /// Calls that the conversation went past without a result. They get none.
    pub abandoned: &'a [Call],
    /// Which calls wait for which others. `None` if no call has locks: then batches run one after another.
    pub waits: Option<CallWaits<'a>>,
    /// How long the turn is expected to take.
    pub estimate: TurnEstimate,
}

/// Calls that run at the same time: consecutive concurrency-safe calls, or one unsafe call alone.
#[derive(Debug)]
pub struct PlannedBatch<'a> {
    /// In call order; at least one.
    pub calls: Vec<PlannedCall<'a>>,
    /// Time from the start of the turn to the start of the batch.
    pub start: Duration,
    /// Time from the start of the batch to the end of its last call.
    pub duration: Duration,
}

/// A call that will run.
#[derive(Debug, Clone, Copy)]
pub struct PlannedCall<'a> {
    /// The call as requested.
    pub call: &'a Call,
    /// What it runs, and what decided its safety.
    pub accepted: &'a AcceptedCall,
    /// Time from the start of the turn to the start of the call. Calls beyond the concurrency limit wait for a free
    /// slot.
    pub start: Duration,
}

impl<'a> TurnPlan<'a> {
    /// Plans the calls of one turn, of which at most `jobs` run at once.
    ///
    /// `tools` determines what the failure of a rejected call does to the calls after it.
    pub fn new(
        turn: usize,
        checked: &'a [CheckedCall],
        tools: &'a ToolsConfig,
        jobs: NonZeroUsize,
    ) -> Self {
        let stopping_tools = stopping_tools(tools);
        let mut plan = Self {
            turn,
            jobs,
            tools,
            batches: Vec::new(),
            rejected: Vec::new(),
            repeats: Vec::new(),
            abandoned: &[],
            waits: None,
            estimate: TurnEstimate::default(),
        };
        let mut partition = BatchPartition::default();
        let mut skip_cause: Option<SkipCause<'a>> = None;
        for CheckedCall {
            call,
            verdict,
            repeats,
            ..
        } in checked
        {
            if let Some(of) = repeats {
                plan.repeats.push((call, *of));
                continue;
            }
            match (verdict, skip_cause) {
                (Verdict::Rejected(rejection), _) => {
                    plan.push_rejected(call, SkipCause::Rejected(rejection));
                    let failed = || stopping_tools.get(&*call.name).copied();
                    skip_cause = skip_cause.or_else(|| failed().map(SkipCause::AfterRejected));
                }
                (Verdict::Accepted(_), Some(why)) => plan.push_rejected(call, why),
                (Verdict::Accepted(accepted), None) => {
                    plan.push_planned(
                        call,
                        accepted,
                        partition.assign_batch(&CallAccess::of(accepted)),
                    );
                    if let Some(Invocation::Completion(_)) = accepted.invocation {
                        skip_cause = Some(SkipCause::AfterCompletion(&accepted.tool.name));
                    }
                }
            }
        }
        plan.schedule_calls();
        plan.waits = CallWaits::new(plan.planned_calls());
        plan
    }

    /// Adds calls that the conversation went past.
    #[must_use]
    pub fn with_abandoned(self, abandoned: &'a [Call]) -> Self {
        Self { abandoned, ..self }
    }

    /// Returns the number of calls in the turn that get results.
    pub fn call_count(&self) -> usize {
        self.planned_calls().count() + self.rejected.len() + self.repeats.len()
    }

    /// Returns the calls that will run, in call order.
    pub fn planned_calls(&self) -> impl Iterator<Item = &PlannedCall<'a>> + Clone {
        self.batches.iter().flat_map(|batch| &batch.calls)
    }

    /// `batch 0: 3 in parallel`, or `batch 0: 6 calls, 4 at a time`. Batches count from 0, like turns, calls, and the batches of
    /// events and logs.
    pub(crate) fn batch_title(&self, index: usize) -> String {
        match self.batches[index].calls.len() {
            1 => format!("batch {index}"),
            calls if self.batches[index].slots_needed() > self.jobs.get() => {
                format!("batch {index}: {calls} calls, {} at a time", self.jobs)
            }
            calls => format!("batch {index}: {calls} in parallel"),
        }
    }

    fn push_rejected(&mut self, call: &'a Call, cause: SkipCause<'a>) {
        self.rejected.push(RejectedCall { call, cause });
    }

    fn push_planned(&mut self, call: &'a Call, accepted: &'a AcceptedCall, batch: usize) {
        let planned = PlannedCall {
            call,
            accepted,
            start: Duration::ZERO,
        };
        match self.batches.get_mut(batch) {
            Some(batch) => batch.calls.push(planned),
            // Many batches keep their only call, so it gets no more room than it needs.
            None => self.batches.push(PlannedBatch {
                calls: vec![planned],
                start: Duration::ZERO,
                duration: Duration::ZERO,
            }),
        }
    }

    /// Computes when each batch and call starts, as the engine would start them.
    fn schedule_calls(&mut self) {
        let calls = self
            .planned_calls()
            .map(|planned| SimulatedCall::new(planned.accepted, self.tools));
        let SimulatedTurn { starts, estimate } = TurnSimulation::new(calls, self.jobs).run();
        self.estimate = estimate;
        let mut starts = starts.into_iter();
        for batch in &mut self.batches {
            let mut end = Duration::ZERO;
            for (planned, start) in batch.calls.iter_mut().zip(&mut starts) {
                planned.start = start;
                let estimate = planned.accepted.tool.estimate;
                end = end.max(start.saturating_add(estimate.unwrap_or_default()));
            }
            let first = batch.calls.iter().map(|planned| planned.start).min();
            batch.start = first.unwrap_or_default();
            batch.duration = end.saturating_sub(batch.start);
        }
    }
}

/// Returns the tools whose failure stops the rest of the turn.
fn stopping_tools(tools: &ToolsConfig) -> HashSet<&str> {
    let stops = |on_failure| on_failure == OnFailure::Stop;
    let tools = tools.tools.iter().filter(|tool| stops(tool.on_failure));
    tools.map(|tool| tool.name.as_str()).collect()
}

impl PlannedBatch<'_> {
    /// Returns whether the batch has several calls, which run in parallel.
    pub fn is_parallel(&self) -> bool {
        self.calls.len() > 1
    }

    /// Returns how many slots its calls need in order to run all at once. Agents have slots of their own.
    fn slots_needed(&self) -> usize {
        let agents = self.calls.iter().filter(|call| call.is_agent()).count();
        agents.max(self.calls.len() - agents)
    }
}

impl PlannedCall<'_> {
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.accepted.invocation, Some(Invocation::Agent(_)))
    }

    /// What it does to the world, in a word. An agent does what its calls do.
    pub(crate) fn verb(&self) -> &'static str {
        if self.is_agent() {
            return "agent";
        }
        self.accepted.tool.effect.verb()
    }

    /// `parallel by rule get_*`.
    pub fn safety(&self) -> String {
        safety_text(self.accepted.safe, &self.accepted.safety_source)
    }

    /// What else decides when the call runs, or how: `10/s`, `cached for 10m`, `needs approval`, `waits for call 3: writes src/a.rs`.
    pub fn notes(&self, plan: &TurnPlan<'_>) -> Vec<String> {
        let settings = self.accepted.tool.rule_settings.iter();
        let settings = settings.map(|setting| format!("{} by rule {}", setting.key, setting.glob));
        let mut notes: Vec<String> = settings.collect();
        let limits = known_limits(self.accepted, plan.tools);
        notes.extend(limits.iter().map(|(subject, limits)| match subject {
            LimitedSubject::Tool(..) => limits.to_string(),
            LimitedSubject::Server(_) | LimitedSubject::Host(_) => format!("{subject}: {limits}"),
        }));
        let cache = self.accepted.tool.cache;
        notes.extend(cache.map(|policy| policy.to_string()));
        if self.accepted.needs_approval {
            notes.push("needs approval".to_owned());
        }
        let waits = plan.waits.as_ref();
        let waits = waits.map(|waits| waits.describe(self.call.position));
        notes.extend(waits.filter(|waits| !waits.is_empty()));
        notes
    }
}

/// `estimated 4s, 8s if run one after another`. If the durations of some calls are unknown, both are `at least` that.
pub(crate) fn format_estimate_totals(estimate: &TurnEstimate) -> String {
    let at_least = if estimate.unestimated_calls > 0 {
        "at least "
    } else {
        ""
    };
    let planned = format!("estimated {at_least}{}", format_duration(estimate.planned));
    if estimate.serial == estimate.planned {
        return planned;
    }
    let serial = format_duration(estimate.serial);
    format!("{planned}, {at_least}{serial} if run one after another")
}
