//! The calls that a plan holds, while it is applied.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use crate::output::CommandError;
use crate::plan_file::{CallEntry, PlanBody, PlanBuilder, PlanFile};
use redact::Mask;
use toolq_core::json::{JsonText, meaning_digest};
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CheckedCall, ToolsConfig,
};
use toolq_engine::PriorApprovals;

/// How many differences a message lists.
const MAX_LISTED: usize = 5;

/// The calls of a plan that is being applied. Every call is compared once more when it is about to run: an input in a
/// file may have changed since the plan was compared with it.
#[derive(derive_more::Debug)]
#[debug("PlannedCalls({})", file.id)]
pub struct PlannedCalls {
    file: PlanFile,
    mask: Arc<Mask>,
    /// By turn and position.
    calls: HashMap<(usize, usize), CallEntry>,
    user: Option<String>,
}

impl PlannedCalls {
    /// Takes the calls of `file`. Nothing has been compared yet.
    pub fn new(file: PlanFile, mask: Arc<Mask>, user: Option<String>) -> Self {
        let calls = file.plan.calls.iter();
        let calls = calls.map(|call| ((call.turn, call.position), call.clone()));
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
            let entry = CallEntry::of_checked(checked, &self.mask);
            if self.calls.get(&(call.turn, call.position)) != Some(&entry) {
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
        let planned = self.calls.get(&(call.turn, call.position))?;
        (*planned == CallEntry::of_request(request, &self.mask)).then(|| Approval {
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
