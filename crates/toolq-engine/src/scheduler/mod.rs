//! The scheduling rules, as plain state machines: permits, retries, circuit breakers, timeouts. The order of calls and
//! the limits on their starts are in `toolq_core::schedule`.

mod circuit_breaker;
mod permits;
mod queue;
pub(crate) mod retry;
mod running_call;
mod start_limits;
mod timeout;

pub(crate) use circuit_breaker::CircuitBreakers;
pub(crate) use permits::{AwaitedPermits, CallLimits};
pub use permits::{ConcurrencyLimit, Permit};
pub(crate) use queue::{CallQueue, CallState, Durability, QueueEntry};
pub(crate) use running_call::{CallJob, Clearance, RunningCall};
pub(crate) use start_limits::SharedStartLimiter;
pub(crate) use timeout::AttemptTimeout;
