//! The calls that a plan holds, while it is applied.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::output::CommandError;
use crate::plan_file::{CallEntry, PlanBody, PlanBuilder, PlanFile};
use redact::Mask;
use toolq_core::json::{Input, JsonText, meaning_digest};
use toolq_core::types::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CheckedCall,
    ToolsConfig, Verdict,
};
use toolq_engine::PriorApprovals;

/// How many differences a message lists.
const MAX_LISTED: usize = 5;

/// The calls of a plan that is being applied. Every call is compared once more when it is about to run: an input in a
/// file may have changed since the plan was compared with it.
pub struct PlannedCalls {
    file: PlanFile,
    mask: Arc<Mask>,
    /// By turn and position.
    calls: HashMap<(usize, usize), CallDigests>,
    user: Option<String>,
}

impl fmt::Debug for PlannedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedCalls")
            .field("id", &self.file.id)
            .finish_non_exhaustive()
    }
}

impl PlannedCalls {
    /// Takes the calls of `file`. Nothing has been compared yet.
    pub fn new(file: PlanFile, mask: Arc<Mask>, user: Option<String>) -> Self {
        let calls = file.plan.calls.iter().map(|call| {
            let digests = CallDigests {
                input: call.input.clone(),
                verdict: call.verdict.clone(),
            };
            ((call.turn, call.position), digests)
        });
        Self {
            calls: calls.collect(),
            mask,
            file,
            user,
        }
    }

    /// Returns the id of the plan.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// Compares the plan with what would run: `turns` are all turns of the input, checked.
    ///
    /// # Errors
    /// Something differs.
    pub fn compare(
        &self,
        tools: &Arc<ToolsConfig>,
        turns: impl Iterator<Item = Result<(usize, Vec<CheckedCall>), CommandError>>,
    ) -> Result<(), CommandError> {
        let plan = &self.file.plan;
        let mut builder = PlanBuilder::new(Arc::clone(tools), Arc::clone(&self.mask));
        for turn in turns {
            let (number, calls) = turn?;
            builder.add_turn(number, &calls)?;
        }
        let now = builder.finish(plan.created, plan.valid_until);
        let differences = find_differences(plan, &now);
        if differences.is_empty() {
            return Ok(());
        }
        Err(self.differs(&differences))
    }

    /// Checks that the calls of a turn are still those of the plan. What has run already, the memory answers at any time.
    ///
    /// # Errors
    /// One isn't, or one would run although the plan is too old or from the future.
    pub fn check_calls(&self, calls: &[CheckedCall]) -> Result<(), CommandError> {
        if calls.iter().any(|checked| checked.known.is_none()) {
            self.file.check_time(Timestamp::now())?;
        }
        for checked in calls {
            let call = &checked.call;
            let digests = CallDigests::of_checked(checked, &self.mask);
            if self.calls.get(&(call.turn, call.position)) != Some(&digests) {
                return Err(CommandError::usage(format!(
                    "the call {} isn't the one in the plan {} any more: its input, or what its server says of its tool, has changed meanwhile",
                    call.id, self.file.id
                )));
            }
        }
        Ok(())
    }

    fn differs(&self, differences: &[String]) -> CommandError {
        let listed = differences[..differences.len().min(MAX_LISTED)].join("; ");
        let more = match differences.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        CommandError::usage(format!(
            "the plan {} isn't what would run now, so nothing ran: {listed}{more}",
            self.file.id
        ))
        .with_hint("make a new plan with `toolq plan --out FILE`, and have it reviewed")
    }
}

impl PriorApprovals for PlannedCalls {
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval> {
        let call = &request.call;
        if call.parent.is_some() {
            return None;
        }
        let identity = CallIdentity {
            turn: call.turn,
            position: call.position,
            id: &call.tool_use_id,
            name: &call.tool_name,
        };
        let digests = CallDigests::of_accepted(identity, &request.accepted, &self.mask);
        let planned = self.calls.get(&(call.turn, call.position))?;
        (*planned == digests).then(|| Approval {
            decision: ApprovalDecision::Yes,
            means: ApprovalMeans::Plan(self.file.id.as_str().into()),
            reason: None,
            user: self.user.clone(),
        })
    }
}

// What has changed between a plan and what would run now.

/// Returns each difference in words. Empty if the plan is what would run.
fn find_differences(plan: &PlanBody, now: &PlanBody) -> Vec<String> {
    if plan.toolq != now.toolq {
        let (by, this) = (&plan.toolq, &now.toolq);
        return vec![format!("it was made by toolq {by}, and this is {this}")];
    }
    let mut differences = Vec::new();
    if plan.root != now.root {
        differences.push(format!("root is {} and was {}", now.root, plan.root));
    }
    differences.extend(tool_differences(plan, now));
    // Changes of tools change calls, too.
    let explained = !differences.is_empty();
    differences.extend(call_differences(&plan.calls, &now.calls, explained));
    let shown = |body: &PlanBody| -> Vec<_> {
        let turns = body.turns.iter();
        turns
            .map(|turn| meaning_digest(JsonText::new(turn.get())))
            .collect()
    };
    if differences.is_empty() && shown(plan) != shown(now) {
        let message = "what it shows for reading isn't what would run";
        differences.push(message.to_owned());
    }
    differences
}

fn tool_differences(plan: &PlanBody, now: &PlanBody) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, was) in &plan.tools {
        // A tool that is no longer called shows in the calls.
        let Some(is) = now.tools.get(name) else {
            continue;
        };
        let aspects: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        // Where a command runs is a part of it, so under another root its digest says nothing about the tool.
        let is_about_root = |aspect: &&String| plan.root != now.root && *aspect == "command";
        let changed: Vec<&str> = aspects
            .into_iter()
            .filter(|aspect| was.get(*aspect) != is.get(*aspect) && !is_about_root(aspect))
            .map(String::as_str)
            .collect();
        if !changed.is_empty() {
            let changed = changed.join(", ");
            differences.push(format!("the tool {name} has changed: {changed}"));
        }
    }
    let added = now.tools.keys();
    for name in added.filter(|name| !plan.tools.contains_key(*name)) {
        if !now.calls.iter().any(|call| call.tool_name == *name) {
            differences.push(format!("an agent has the tool {name} now"));
        }
    }
    differences
}

fn call_differences(plan: &[CallEntry], now: &[CallEntry], explained: bool) -> Vec<String> {
    let identity = |call: &CallEntry| (call.tool_use_id.clone(), call.tool_name.clone());
    let sorted = |calls: &[CallEntry]| {
        let mut calls: Vec<_> = calls.iter().map(identity).collect();
        calls.sort();
        calls
    };
    let has_moved = |(was, is): (&CallEntry, &CallEntry)| {
        identity(was) != identity(is) || (was.turn, was.position) != (is.turn, is.position)
    };
    if plan.len() == now.len() && plan.iter().zip(now).any(has_moved) && sorted(plan) == sorted(now)
    {
        return vec!["its calls are in another order".to_owned()];
    }
    let mut differences = Vec::new();
    for (was, is) in plan.iter().zip(now) {
        if has_moved((was, is)) {
            let (was, is) = (name_call(was), name_call(is));
            differences.push(format!("it has {was} where the input has {is}"));
        } else if was.input != is.input {
            differences.push(format!("{} has another input", name_call(is)));
        } else if was.verdict != is.verdict && !explained {
            differences.push(format!("{} would run something else", name_call(is)));
        }
    }
    let more = now.iter().skip(plan.len());
    differences.extend(more.map(|call| format!("it doesn't have {}", name_call(call))));
    let missing = plan.iter().skip(now.len());
    let missing = missing.map(|call| format!("the input doesn't have {}", name_call(call)));
    differences.extend(missing);
    differences
}

/// `the call toolu_2 of pay`.
fn name_call(call: &CallEntry) -> String {
    let CallEntry {
        tool_use_id,
        tool_name,
        ..
    } = call;
    format!("the call {tool_use_id} of {tool_name}")
}

// The digests of a plan's calls. They are of texts without secrets: the values of variables are no part of a plan, and a
// digest would let a reader of the plan find a short secret by trying.

/// A call, as far as it is the same before and after it was checked.
#[derive(Debug, Clone, Copy)]
struct CallIdentity<'a> {
    pub turn: usize,
    pub position: usize,
    pub id: &'a str,
    pub name: &'a str,
}

/// The digests of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDigests {
    /// Of the call as it came.
    pub input: String,
    /// Of what becomes of it: what would run, or why nothing would.
    pub verdict: String,
}

impl CallDigests {
    /// Returns the digests of a checked call.
    pub fn of_checked(checked: &CheckedCall, mask: &Mask) -> Self {
        let call = &checked.call;
        let identity = CallIdentity {
            turn: call.turn,
            position: call.position,
            id: &call.id,
            name: &call.name,
        };
        let input = match &call.input {
            Ok(input) => describe_input(input, mask),
            Err(invalid) => format!("{invalid:?}"),
        };
        let verdict = match &checked.verdict {
            Verdict::Accepted(accepted) => describe_accepted(accepted, mask),
            Verdict::Rejected(rejection) => format!("{:?}", rejection.reason),
        };
        Self::of_texts(identity, &input, &verdict, mask)
    }

    /// Returns the digests of a call that waits for an approval.
    fn of_accepted(identity: CallIdentity<'_>, accepted: &AcceptedCall, mask: &Mask) -> Self {
        let received = accepted.before_coercion.as_ref();
        let input = describe_input(received.unwrap_or(&accepted.input), mask);
        let verdict = describe_accepted(accepted, mask);
        Self::of_texts(identity, &input, &verdict, mask)
    }

    fn of_texts(identity: CallIdentity<'_>, input: &str, verdict: &str, mask: &Mask) -> Self {
        let CallIdentity {
            turn,
            position,
            id,
            name,
        } = identity;
        let place = format!("{turn}/{position}");
        let digest = |domain: &str, text: &str| {
            let mut hasher = Sha256::new();
            // Each part is preceded by its length, so that no two lists of parts look the same.
            for part in [domain, &place, id, name, text] {
                let part = mask.apply(part);
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part.as_bytes());
            }
            HEXLOWER.encode(&hasher.finalize())
        };
        Self {
            input: digest("input", input),
            verdict: digest("verdict", verdict),
        }
    }
}

/// Returns a digest of what an input means with its secrets masked, whatever form it comes in.
fn describe_input(input: &Input, mask: &Mask) -> String {
    let masked = mask.apply_to_json(input.text());
    HEXLOWER.encode(&meaning_digest(JsonText::new(&masked)))
}

/// What decides what an accepted call does, beside its tool, which has digests of its own.
fn describe_accepted(accepted: &AcceptedCall, mask: &Mask) -> String {
    let AcceptedCall {
        tool,
        input,
        safe,
        needs_approval,
        ..
    } = accepted;
    let (name, input) = (&tool.name, describe_input(input, mask));
    format!("{name:?} {input} {safe} {needs_approval}")
}
