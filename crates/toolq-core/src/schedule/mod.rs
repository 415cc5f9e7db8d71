//! When calls may start: in which order, how far apart, and how many at once. `plan` and the engine share these rules.
//!
//! Pure state machines: time is a parameter.

mod dependency_graph;
mod gate;
mod start_limiter;

pub use dependency_graph::{CallAccess, OrderCause};
pub use gate::Gate;
pub use start_limiter::{
    AppliedLimits, LimitedSubject, StartLimiter, StartTicket, StartWait, WaitingLines,
    applied_limits,
};
