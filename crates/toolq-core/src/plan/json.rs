//! Renders a plan as one line of JSON, for programs. The order of the keys is part of the format.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::json::{EachOf, expect_json};
use crate::plan::invocation_line::{InvocationJson, SandboxJson};
use crate::plan::remembered_call::{RejectedCall, RememberedCall};
use crate::plan::schedule::TurnEstimate;
use crate::plan::turn_plan::{PlannedCall, TurnPlan};
use crate::schedule::applied_limits;
use crate::text::to_millis;
use crate::types::{
    Call, CallLock, LockMode, MaskedJson, MaskedText, Outcome, ProblemDetail, StartLimits, Status,
};
use redact::Mask;

/// Renders the line, without a trailing newline. Environment variables appear by name.
pub fn render_plan_json(plan: &TurnPlan<'_>, mask: &Mask) -> String {
    expect_json(serde_json::to_string(&plan_json(plan, mask)))
}

#[derive(Serialize)]
struct PlanJson<'a, B, R> {
    turn: usize,
    batches: B,
    rejected: R,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remembered: Vec<RememberedCallJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeats: Vec<IdleCallJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    abandoned: Vec<IdleCallJson<'a>>,
    estimate: TurnEstimate,
}

/// A call that doesn't run because it is known what became of it.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct RememberedCallJson<'a> {
    #[serde(flatten)]
    call: CallJson<'a>,
    status: Status,
    /// When it ended, or when it was started if it is in doubt.
    timestamp: Option<u64>,
    /// The log that says so.
    log: Option<String>,
}

impl<'a> RememberedCallJson<'a> {
    fn new(remembered: &RememberedCall<'a>, mask: &'a Mask) -> Self {
        let (timestamp, log) = remembered.source().unzip();
        Self {
            call: CallJson::new(remembered.call, mask),
            status: remembered.status(),
            timestamp,
            log: log.map(|log| mask.apply(&log).into_owned()),
        }
    }
}

/// A call that neither runs nor is rejected.
#[derive(Serialize)]
struct IdleCallJson<'a> {
    #[serde(flatten)]
    call: CallJson<'a>,
    /// The position of the call whose result it has, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<usize>,
}

/// Batches and their calls are converted while they are written.
fn plan_json<'a>(plan: &'a TurnPlan<'a>, mask: &'a Mask) -> impl Serialize {
    let idle = |call: &'a Call, of| IdleCallJson {
        call: CallJson::new(call, mask),
        of,
    };
    PlanJson {
        turn: plan.turn,
        batches: EachOf(plan.batches.iter().map(move |batch| {
            BatchJson {
                parallel: batch.is_parallel(),
                calls: EachOf(
                    batch
                        .calls
                        .iter()
                        .map(move |planned| PlannedCallJson::new(planned, (plan, mask))),
                ),
            }
        })),
        rejected: EachOf(
            plan.rejected
                .iter()
                .map(move |rejected| RejectedCallJson::new(rejected, mask)),
        ),
        remembered: plan
            .remembered
            .iter()
            .map(|call| RememberedCallJson::new(call, mask))
            .collect(),
        repeats: plan
            .repeats
            .iter()
            .map(|(call, of)| idle(call, Some(*of)))
            .collect(),
        abandoned: plan.abandoned.iter().map(|call| idle(call, None)).collect(),
        estimate: plan.estimate,
    }
}

/// What every entry about a call begins with.
#[derive(Serialize)]
struct CallJson<'a> {
    position: usize,
    tool_use_id: MaskedText<'a>,
    tool_name: MaskedText<'a>,
}

impl<'a> CallJson<'a> {
    fn new(call: &'a Call, mask: &'a Mask) -> Self {
        Self {
            position: call.position,
            tool_use_id: MaskedText(&call.id, mask),
            tool_name: MaskedText(&call.name, mask),
        }
    }
}

#[derive(Serialize)]
struct BatchJson<C> {
    parallel: bool,
    calls: C,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct PlannedCallJson<'a> {
    #[serde(flatten)]
    call: CallJson<'a>,
    concurrency_safe: bool,
    decided_by: String,
    timeout_ms: u64,
    /// `None` if the tool has no estimate.
    #[serialize_always]
    estimate_ms: Option<u64>,
    /// `None` if the tool has no backing.
    #[serialize_always]
    runs: Option<InvocationJson<'a>>,
    /// The program in the wrapper that hands over to a daemon or another host, whose processes don't end with the call.
    hands_over_to: Option<&'a str>,
    effect: &'static str,
    /// The input that would run.
    input: MaskedJson<'a>,
    /// Whether it needs an approval before it starts.
    approve: bool,
    /// What was said when an earlier run asked for that.
    approval: Option<&'static str>,
    /// Its status unless its probe or another run says more: an earlier run has started it.
    unsettled: Option<Status>,
    /// An earlier run has made it, and it runs again on purpose.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    renewed: bool,
    /// What its program can reach; missing if that isn't confined.
    sandbox: Option<SandboxJson>,
    /// What it locks; missing if it has no locks.
    locks: Option<LocksJson<'a>>,
    /// The positions of the calls that it waits for; missing if no call of the turn has locks.
    waits_for: Option<&'a [usize]>,
    /// What limits when it starts, beside the calls before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitsJson>,
    /// When the result of an earlier call answers it; missing if it always runs.
    cache: Option<BTreeMap<&'static str, u64>>,
}

/// The locks of a call.
#[derive(Serialize)]
struct LocksJson<'a> {
    read: Vec<MaskedText<'a>>,
    write: Vec<MaskedText<'a>>,
}

/// The limits of a tool or a server.
#[derive(Serialize)]
struct LimitsJson {
    of: String,
    #[serde(flatten)]
    limits: StartLimits,
}

#[derive(Serialize)]
struct RejectedCallJson<'a> {
    #[serde(flatten)]
    call: CallJson<'a>,
    reason: Status,
    details: Vec<ProblemDetail>,
}

impl<'a> PlannedCallJson<'a> {
    fn new(planned: &PlannedCall<'a>, (plan, mask): (&'a TurnPlan<'_>, &'a Mask)) -> Self {
        let PlannedCall { call, accepted, .. } = *planned;
        Self {
            call: CallJson::new(call, mask),
            concurrency_safe: accepted.safe,
            decided_by: accepted.safety_source.to_string(),
            timeout_ms: to_millis(accepted.tool.timeout.after),
            estimate_ms: accepted.tool.estimate.map(to_millis),
            runs: InvocationJson::new(accepted, mask),
            hands_over_to: accepted.tool.hands_over_to(),
            effect: accepted.tool.effect.name(),
            input: MaskedJson(accepted.input.as_raw(), mask),
            approve: accepted.needs_approval,
            approval: planned.approval.map(|approval| approval.decision.name()),
            unsettled: planned.unsettled.map(Outcome::status),
            renewed: planned.is_renewed,
            sandbox: SandboxJson::new(accepted, mask),
            locks: accepted
                .locks
                .as_ref()
                .map(|locks| LocksJson::new(locks, mask)),
            waits_for: plan.waits.as_ref().map(|waits| waits.before(call.position)),
            limits: applied_limits(accepted, 0)
                .iter()
                .map(|(subject, limits)| LimitsJson {
                    of: subject.to_string(),
                    limits: *limits,
                })
                .collect(),
            cache: accepted
                .tool
                .cache
                .map(|policy| BTreeMap::from([("for_ms", to_millis(policy.max_age))])),
        }
    }
}

impl<'a> LocksJson<'a> {
    fn new(locks: &'a [CallLock], mask: &'a Mask) -> Self {
        let names = |mode| {
            let locks = locks.iter().filter(move |lock| lock.mode == mode);
            locks.map(|lock| MaskedText(&lock.name, mask)).collect()
        };
        Self {
            read: names(LockMode::Read),
            write: names(LockMode::Write),
        }
    }
}

impl<'a> RejectedCallJson<'a> {
    fn new(rejected: &RejectedCall<'a>, mask: &'a Mask) -> Self {
        let details = rejected.details();
        let details = details.iter().map(|detail| ProblemDetail {
            path: mask.apply(&detail.path).into_owned(),
            message: mask.apply(&detail.message).into_owned(),
            ..detail.clone()
        });
        Self {
            call: CallJson::new(rejected.call, mask),
            reason: rejected.reason(),
            details: details.collect(),
        }
    }
}
