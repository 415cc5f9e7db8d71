//! The calls that a plan holds, while it is applied.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::output::CommandError;
use crate::plan_file::builder::PlanBuilder;
use crate::plan_file::call_digests::{CallDigests, CallIdentity};
use crate::plan_file::comparison::find_differences;
use crate::plan_file::file::PlanFile;
use redact::Mask;
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CheckedCall, ToolsConfig,
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
