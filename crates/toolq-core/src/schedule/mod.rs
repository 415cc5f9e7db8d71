//! When calls may start: in which order, how far apart, and how many at once. `plan` and the engine share these rules.
//!
//! Pure state machines: time is a parameter.

mod applied_limits;
mod call_access;
mod call_set;
mod dependency_graph;
mod gate;
mod lock_index;
mod number_map;
mod rate_meter;
mod start_limiter;
mod waiting_lines;

pub use applied_limits::{AppliedLimits, LimitedSubject, applied_limits};
pub use call_access::{CallAccess, OrderCause};
pub use gate::Gate;
pub use start_limiter::{StartLimiter, StartTicket, StartWait};
pub use waiting_lines::WaitingLines;
