//! The scheduling rules, as plain state machines: order, permits, retries, circuit breakers, timeouts.

mod circuit_breaker;
mod concurrency_gate;
mod descriptor_limits;
mod permits;
mod queue;
pub(crate) mod retry;
mod running_call;
mod start_limits;
mod timeout;

pub(crate) use circuit_breaker::CircuitBreakers;
pub use concurrency_gate::Gate;
pub(crate) use permits::CallLimits;
pub use permits::{ConcurrencyLimit, Permit};
pub(crate) use queue::{CallQueue, CallState, QueueEntry};
pub(crate) use running_call::{CallJob, RunningCall};
pub(crate) use start_limits::SharedStartLimiter;
pub(crate) use timeout::AttemptTimeout;
