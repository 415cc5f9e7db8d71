//! Plans turns: groups checked calls into batches, with reasons, and renders plans as text or JSON. Runs nothing.
//!
//! A plan applies the engine's rule without the engine: calls that share a batch here share one there.

mod invocation_line;
mod json;
mod remembered_call;
mod schedule;
mod text;
mod timeline;
mod turn_plan;

pub use json::render_plan_json;
pub use remembered_call::{
    RejectedCall, RememberedCall, render_approval_question, render_invocation, render_sandbox,
};
pub use schedule::TurnEstimate;
pub use text::render_plan_text;
pub use timeline::{PlanDetail, PlanStyle};
pub use turn_plan::{
    ABANDONED_HEADING, BatchPartition, CallWaits, PlannedCall, REMEMBERED_HEADING, REPEATS_HEADING,
    TurnPlan,
};
