//! The scheduling rules, as plain state machines: permits, retries, circuit breakers, timeouts. The order of calls and
//! the limits on their starts are in `toolq_core::schedule`.

mod circuit_breaker;
mod permits;
pub(crate) mod retry;
mod start_limits;

pub(crate) use circuit_breaker::{CircuitBreakers, Ticket};
pub(crate) use permits::{AwaitedPermits, CallLimits};
pub use permits::{ConcurrencyLimit, Permit};
pub(crate) use start_limits::{SharedStartLimiter, StartSlot};
