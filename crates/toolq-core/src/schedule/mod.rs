//! When calls may start: how far apart, and how many at once. `plan` and the engine share these rules.
//!
//! Pure state machines: time is a parameter.

mod rate_meter;
mod start_limiter;

pub use start_limiter::{
    AppliedLimits, LimitedSubject, StartLimiter, StartTicket, StartWait, applied_limits,
};
