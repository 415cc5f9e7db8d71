//! What would run, without running it.

use std::fmt;
use std::num::NonZeroUsize;

use redact::Mask;
use toolq_core::plan::{PlanDetail, PlanStyle, TurnPlan, render_plan_json, render_plan_text};
use toolq_core::types::{CheckedCall, Status, ToolsConfig};

/// Columns of the text form.
const TEXT_WIDTH: usize = 100;

/// What would happen to the calls of a message.
///
/// Its [`Display`](fmt::Display) form is the text that `toolq plan` prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// One for each message of the input.
    pub turns: Vec<PlannedTurn>,
    text: String,
    json: String,
}

/// The plan of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTurn {
    /// In the order in which they would run.
    pub batches: Vec<PlannedBatch>,
    /// The calls that would not run, in call order.
    pub rejected: Vec<RejectedCall>,
}

/// Calls that would run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBatch {
    /// The ids of its calls, in call order; at least one.
    pub tool_use_ids: Vec<String>,
}

/// A call that would not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedCall {
    /// The id of the call.
    pub tool_use_id: String,
    /// The reason, as in the JSON plan: `unknown_tool`, `invalid_input` …
    pub reason: Status,
}

impl Plan {
    /// The plan as `toolq plan --format json` prints it: one object per message, each on its own line.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    /// Appends the plan of the next message.
    pub(crate) fn push_turn(
        &mut self,
        calls: &[CheckedCall],
        tools: &ToolsConfig,
        concurrency: NonZeroUsize,
        mask: &Mask,
    ) {
        let plan = TurnPlan::new(self.turns.len(), calls, tools, concurrency);
        if !self.turns.is_empty() {
            self.text.push('\n');
        }
        let style = PlanStyle {
            width: TEXT_WIDTH,
            color: false,
            is_unicode: true,
            detail: PlanDetail::Whole,
        };
        self.text.push_str(&render_plan_text(&plan, style, mask));
        self.json.push_str(render_plan_json(&plan, mask).trim_end());
        self.json.push('\n');
        self.turns.push(PlannedTurn::new(&plan));
    }
}

impl PlannedTurn {
    fn new(plan: &TurnPlan<'_>) -> Self {
        let batches = plan.batches.iter().map(|batch| PlannedBatch {
            tool_use_ids: batch
                .calls
                .iter()
                .map(|planned| planned.call.id.clone())
                .collect(),
        });
        let rejected = plan.rejected.iter().map(|rejected| RejectedCall {
            tool_use_id: rejected.call.id.clone(),
            reason: rejected.reason(),
        });
        Self {
            batches: batches.collect(),
            rejected: rejected.collect(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}
