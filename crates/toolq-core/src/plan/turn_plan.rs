//! Plans a turn: which calls run, in which batches, when, and why the others don't.
//!
//! A plan borrows its calls. It is rendered by `json` for programs and `text` for a terminal.

#[cfg(test)]
mod agent_slots_tests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::plan::remembered_call::{RejectedCall, RememberedCall, SkipCause};
use crate::plan::schedule::{SimulatedCall, SimulatedTurn, TurnEstimate, TurnSimulation};
use crate::schedule::{CallAccess, Gate, LimitedSubject, OrderCause, applied_limits};
use crate::text::{format_duration, list_some};
use crate::types::{
    AcceptedCall, Approval, ApprovalDecision, Call, CheckedCall, Invocation, OnDoubt, OnFailure,
    Outcome, ToolsConfig, Verdict, safety_text,
};

/// The heading above calls that repeat others.
pub const REPEATS_HEADING: &str = "sent twice";

/// The heading above calls that don't run because it is known what became of them.
pub const REMEMBERED_HEADING: &str = "from memory";

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
    /// In execution order. One is empty if all its calls are remembered.
    pub batches: Vec<PlannedBatch<'a>>,
    /// The calls that won't run, in call order.
    pub rejected: Vec<RejectedCall<'a>>,
    /// The calls that don't run because it is known what became of them, in call order.
    pub remembered: Vec<RememberedCall<'a>>,
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
    /// In call order.
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
    /// What was said about whether it may start, if somebody was asked before.
    pub approval: Option<&'a Approval>,
    /// What becomes of it unless its probe or another run says more: an earlier run has started it.
    pub unsettled: Option<&'a Outcome>,
    /// An earlier run has made it, and it runs again on purpose.
    pub is_renewed: bool,
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
            remembered: Vec::new(),
            repeats: Vec::new(),
            abandoned: &[],
            waits: None,
            estimate: TurnEstimate::default(),
        };
        let mut partition = BatchPartition::default();
        let mut skip_cause: Option<SkipCause<'a>> = None;
        let mut canceled_batches: Vec<(usize, &'a str)> = Vec::new();
        for checked in checked {
            let call = &checked.call;
            if let Some(of) = checked.repeats {
                plan.repeats.push((call, of));
                continue;
            }
            if let Some(remembered) = RememberedCall::of(checked) {
                if let Verdict::Accepted(accepted) = &checked.verdict {
                    canceled_batches.extend(plan.place(&remembered, accepted, &mut partition));
                }
                skip_cause =
                    skip_cause.or_else(|| stop_after(&remembered, &checked.verdict, tools));
                plan.remembered.push(remembered);
                continue;
            }
            match (&checked.verdict, skip_cause) {
                (Verdict::Rejected(rejection), _) => {
                    plan.push_rejected(call, SkipCause::Rejected(rejection));
                    let failed = || stopping_tools.get(&*call.name).copied();
                    skip_cause = skip_cause.or_else(|| failed().map(SkipCause::AfterRejected));
                }
                (Verdict::Accepted(_), Some(why)) => plan.push_rejected(call, why),
                (Verdict::Accepted(accepted), None) => {
                    let batch = partition.assign_batch(&CallAccess::of(accepted));
                    plan.batch_mut(batch).calls.push(PlannedCall {
                        call,
                        accepted,
                        approval: checked.approval.as_deref(),
                        unsettled: checked.unsettled.as_deref(),
                        is_renewed: checked.is_renewed,
                        start: Duration::ZERO,
                    });
                    if let Some(Invocation::Completion(_)) = accepted.invocation {
                        skip_cause = Some(SkipCause::AfterCompletion(&accepted.tool.name));
                    }
                }
            }
        }
        plan.cancel_batches(&canceled_batches);
        plan.schedule_calls();
        plan.waits = CallWaits::new(plan.planned_calls());
        plan
    }

    /// Gives a remembered call its place among the batches, as in the run that made it. Returns the batch that it cancels, and its
    /// tool.
    fn place(
        &mut self,
        remembered: &RememberedCall<'a>,
        accepted: &'a AcceptedCall,
        partition: &mut BatchPartition,
    ) -> Option<(usize, &'a str)> {
        let batch = partition.assign_batch(&CallAccess::of(accepted));
        self.batch_mut(batch);
        let tool = &accepted.tool;
        let cancels = tool.on_failure == OnFailure::CancelSiblings;
        (cancels && remembered.outcome.cancels_siblings()).then_some((batch, &*tool.name))
    }

    /// Returns the number of calls in the turn that get results.
    pub fn call_count(&self) -> usize {
        self.planned_calls().count()
            + self.rejected.len()
            + self.remembered.len()
            + self.repeats.len()
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

    /// Returns the batch with this number, which may be the next one.
    fn batch_mut(&mut self, number: usize) -> &mut PlannedBatch<'a> {
        if number == self.batches.len() {
            self.batches.push(PlannedBatch {
                // Many batches keep their only call, so it gets no more room than it needs.
                calls: Vec::with_capacity(1),
                start: Duration::ZERO,
                duration: Duration::ZERO,
            });
        }
        &mut self.batches[number]
    }

    /// Takes the calls out of batches in which a remembered call of a tool that cancels its siblings has failed.
    fn cancel_batches(&mut self, canceled: &[(usize, &'a str)]) {
        for (batch, tool) in canceled {
            let calls = std::mem::take(&mut self.batches[*batch].calls);
            for planned in calls {
                self.push_rejected(planned.call, SkipCause::SiblingFailed(tool));
            }
        }
        self.rejected.sort_by_key(|rejected| rejected.call.position);
    }

    /// Computes when each batch and call starts, as the engine would start them.
    fn schedule_calls(&mut self) {
        let calls = self
            .planned_calls()
            .map(|planned| SimulatedCall::new(planned.accepted));
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

/// Returns why no later call of the turn runs behind a remembered one, if that is so.
fn stop_after<'a>(
    remembered: &RememberedCall<'a>,
    verdict: &Verdict,
    tools: &'a ToolsConfig,
) -> Option<SkipCause<'a>> {
    let RememberedCall { call, outcome } = *remembered;
    if !outcome.is_error() {
        return verdict
            .is_completion()
            .then_some(SkipCause::AfterCompletion(&call.name));
    }
    let tool = tools.get(&call.name)?;
    if outcome.is_in_doubt() && tool.on_doubt == OnDoubt::Stop {
        return Some(SkipCause::AfterDoubt(&call.name));
    }
    (tool.on_failure == OnFailure::Stop).then_some(SkipCause::AfterFailed(&call.name))
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

    /// Whether somebody has to approve it before it starts.
    pub fn waits_for_approval(&self) -> bool {
        self.accepted.needs_approval && self.approval.is_none()
    }

    fn approval_note(&self) -> String {
        match self.approval {
            None => "needs approval".to_owned(),
            Some(approval) => match approval.decision {
                ApprovalDecision::Yes => "approved".to_owned(),
                ApprovalDecision::No => "denied, so it won't start".to_owned(),
            },
        }
    }

    /// `parallel by rule get_*`.
    pub fn safety(&self) -> String {
        safety_text(self.accepted.safe, &self.accepted.safety_source)
    }

    /// What else decides when the call runs, or how: `10/s`, `cached for 10m`, `needs approval`, `waits for call 3: writes src/a.rs`.
    pub fn notes(&self, plan: &TurnPlan<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let limits = applied_limits(self.accepted, 0);
        notes.extend(limits.iter().map(|(subject, limits)| match subject {
            LimitedSubject::Tool(..) => limits.to_string(),
            LimitedSubject::Server(_) => format!("{subject}: {limits}"),
        }));
        let cache = self.accepted.tool.cache;
        notes.extend(cache.map(|policy| policy.to_string()));
        if self.accepted.needs_approval {
            notes.push(self.approval_note());
        }
        if self.is_renewed {
            notes.push("has run or may have, and runs again".to_owned());
        }
        notes.extend(self.unsettled.map(|unsettled| match unsettled {
            Outcome::IsRunning => "runs already, and has the result of that".to_owned(),
            _ => "in doubt, so `probe` finds out whether it runs".to_owned(),
        }));
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

// Which calls of a planned turn wait for which others, with the reasons.

/// Maximum number of calls that a text names.
const MAX_NAMED_CALLS: usize = 5;

/// Which calls of a turn wait for which others. Calls that wait only because another one does are left out.
#[derive(Debug)]
pub struct CallWaits<'a> {
    before: HashMap<usize, Vec<usize>>,
    accepted: HashMap<usize, &'a AcceptedCall>,
}

impl<'a> CallWaits<'a> {
    /// Returns the waits of these calls, or `None` if no call has locks.
    pub(crate) fn new<'c>(calls: impl Iterator<Item = &'c PlannedCall<'a>> + Clone) -> Option<Self>
    where
        'a: 'c,
    {
        let has_locks = |planned: &PlannedCall<'_>| planned.accepted.locks.is_some();
        if !calls.clone().any(has_locks) {
            return None;
        }
        let mut gate = Gate::default();
        let mut waits = Self {
            before: HashMap::new(),
            accepted: HashMap::new(),
        };
        for planned in calls {
            let position = planned.call.position;
            gate.push(position, CallAccess::of(planned.accepted));
            waits.before.insert(position, gate.calls_before(position));
            waits.accepted.insert(position, planned.accepted);
        }
        Some(waits)
    }

    /// Returns the positions of the calls that the call at `position` waits for.
    pub fn before(&self, position: usize) -> &[usize] {
        self.before.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Returns a text such as `waits for call 3: writes src/a.rs`, with all waits of the call. Empty if it waits for no
    /// call.
    pub(crate) fn describe(&self, position: usize) -> String {
        let all = self.before(position);
        if all.is_empty() {
            return String::new();
        }
        let parts = all.iter().map(|before| {
            let cause = self.describe_cause(position, *before);
            format!("call {before}{cause}")
        });
        format!("waits for {}", list_some(parts, MAX_NAMED_CALLS))
    }

    fn describe_cause(&self, position: usize, before: usize) -> String {
        let access = |position| self.accepted.get(&position).copied().map(CallAccess::of);
        let (Some(call), Some(earlier)) = (access(position), access(before)) else {
            return String::new();
        };
        match call.waits_for(&earlier) {
            Some(OrderCause::Lock(lock)) => format!(": {}", lock.describe()),
            Some(OrderCause::NotSafe) | None => String::new(),
        }
    }
}

// Decides which batch each call belongs to, as calls arrive. `plan` and `run` share this rule.

/// Numbers the batches of one turn: consecutive calls share a batch if they don't wait for each other. Without locks, a
/// batch consists of consecutive safe calls, and an unsafe call gets its own.
///
/// Only assign calls that will run: a call that doesn't run doesn't separate batches.
#[derive(Debug, Clone, Default)]
pub struct BatchPartition {
    batches: usize,
    calls: usize,
    /// The calls of the last batch, without the safe ones that have no locks: only a call that always begins another batch
    /// waits for those.
    batch: Gate,
}

impl BatchPartition {
    /// Returns the batch of the next call in call order, counted from 0.
    pub fn assign_batch(&mut self, access: &CallAccess) -> usize {
        self.calls += 1;
        if self.batches == 0 || !self.joins_batch(access) {
            self.batches += 1;
            self.batch = Gate::default();
            if !access.is_shared() {
                self.batch.push(self.calls, access.clone());
            }
        }
        self.batches - 1
    }

    /// Adds a call to the last batch if it waits for no call of that batch. Returns whether it does.
    fn joins_batch(&mut self, access: &CallAccess) -> bool {
        if access.is_barrier() {
            return false;
        }
        if access.is_shared() && self.batch.is_empty() {
            return true;
        }
        self.batch.push(self.calls, access.clone());
        let joins = self.batch.is_ready(self.calls);
        if access.is_shared() {
            self.batch.remove(self.calls);
        }
        joins
    }
}

#[cfg(test)]
mod partition_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{CallLock, LockMode, LockedResource};

    /// A call that is safe or not, and reads or writes some of three texts if it has locks.
    fn any_access() -> impl Strategy<Value = CallAccess> {
        let lock = (any::<bool>(), 0..3_u8).prop_map(|(writes, text)| CallLock {
            name: text.to_string(),
            mode: if writes {
                LockMode::Write
            } else {
                LockMode::Read
            },
            resource: LockedResource::Text(text.to_string()),
        });
        let locks = prop::collection::vec(lock, 1..3).prop_map(Into::into);
        (any::<bool>(), prop::option::of(locks))
            .prop_map(|(safe, locks)| CallAccess { safe, locks })
    }

    fn access(safe: bool) -> CallAccess {
        CallAccess { safe, locks: None }
    }

    /// The same rule, written as a grouping of a whole turn.
    fn batch_numbers(turn: &[bool]) -> Vec<usize> {
        turn.chunk_by(|left, right| *left && *right)
            .enumerate()
            .flat_map(|(batch, calls)| vec![batch; calls.len()])
            .collect()
    }

    proptest! {
        #[test]
        fn assigning_one_by_one_matches_grouping_the_turn(turn in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut partition = BatchPartition::default();
            let assigned: Vec<usize> = turn.iter().map(|safe| partition.assign_batch(&access(*safe))).collect();
            prop_assert_eq!(assigned, batch_numbers(&turn));
        }

        #[test]
        fn a_call_joins_the_last_batch_if_it_waits_for_no_call_of_it(turn in prop::collection::vec(any_access(), 0..40)) {
            let mut partition = BatchPartition::default();
            let mut batches: Vec<Vec<&CallAccess>> = Vec::new();
            for access in &turn {
                let joins = |batch: &Vec<&CallAccess>| batch.iter().all(|other| access.waits_for(other).is_none());
                match batches.last_mut().filter(|batch| joins(batch)) {
                    Some(batch) => batch.push(access),
                    None => batches.push(vec![access]),
                }
                prop_assert_eq!(partition.assign_batch(access), batches.len() - 1);
            }
        }
    }

    #[test]
    fn reads_run_together_and_a_write_alone() {
        let mut partition = BatchPartition::default();
        let batches =
            [true, true, false, false, true].map(|safe| partition.assign_batch(&access(safe)));
        assert_eq!(batches, [0, 0, 1, 2, 3]);
    }
}
