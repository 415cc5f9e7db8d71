//! Checked calls → batches with reasons, drawn as text, JSON or Mermaid. Runs nothing.
//!
//! A plan is the engine's rule applied without the engine: calls of one batch here run in one batch there.

mod json;
mod mermaid;
mod partition;
mod rendered;
mod schedule;
mod text;
mod turn_plan;

pub use json::plan_json;
pub use mermaid::{MERMAID_HEADER, plan_mermaid};
pub use partition::Partition;
pub use text::{Look, plan_text};
pub use turn_plan::Plan;
