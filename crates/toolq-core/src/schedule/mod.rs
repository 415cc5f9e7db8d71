//! When calls may start: in which order, how far apart, and how many at once. `plan` and the engine share these rules.
//!
//! Pure state machines: time is a parameter.

mod dependency_graph;
mod gate;
mod lock_index;
mod rate_meter;
mod start_limiter;

pub use gate::{CallAccess, Gate, OrderCause};
pub use start_limiter::{
    AppliedLimits, LimitedSubject, StartLimiter, StartTicket, StartWait, applied_limits,
};
