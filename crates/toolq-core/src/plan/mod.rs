//! Plans turns: groups checked calls into batches, with reasons, and renders plans as text or JSON. Runs nothing.
//!
//! A plan applies the engine's rule without the engine: calls that share a batch here share one there.

mod approval_question;
mod batch_heading;
mod call_waits;
mod folded_text;
mod invocation_json;
mod invocation_line;
mod json;
mod partition;
mod rejected_call;
mod remembered_call;
mod sandbox_text;
mod schedule;
mod template_json;
mod text;
mod timeline;
mod totals;
mod turn_estimator;
mod turn_plan;

pub use approval_question::{render_approval_question, render_invocation, render_sandbox};
pub use call_waits::CallWaits;
pub use json::{render_plan_json, write_plan_json};
pub use partition::BatchPartition;
pub use rejected_call::RejectedCall;
pub use remembered_call::RememberedCall;
pub use text::{PlanDetail, PlanStyle, render_plan_text, write_plan_text};
pub use turn_estimator::{TurnEstimate, TurnEstimator};
pub use turn_plan::{
    ABANDONED_HEADING, PlannedCall, REMEMBERED_HEADING, REPEATS_HEADING, TurnPlan,
};
