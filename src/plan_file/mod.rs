//! Plans as files: `toolq plan --out` writes what would run, somebody reviews it, and `toolq run --plan` is their yes for
//! exactly that. The file isn't trusted: what it says counts only as far as it is what would run now.

mod builder;
mod comparison;
mod digester;
mod file;
mod key;
mod planned_calls;
mod reachable_tools;

pub use builder::PlanBuilder;
pub use digester::{CallIdentity, PlanDigester};
pub use file::{PlanFile, plan_schema};
pub use planned_calls::PlannedCalls;
pub use reachable_tools::used_variables;
