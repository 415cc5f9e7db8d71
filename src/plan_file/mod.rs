//! Plans as files: `toolq plan --out` writes what would run, a person reviews it, and `toolq run --plan` approves exactly
//! that. The file isn't trusted: it counts only where it matches what would run now.

mod file;
mod planned_calls;

pub use file::{PlanBuilder, PlanFile, plan_schema};
pub use planned_calls::PlannedCalls;
