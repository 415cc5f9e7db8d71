//! The scheduling rules, as plain state machines: permits, retries, circuit breakers, timeouts. The order of calls and
//! the limits on their starts are in `toolq_core::schedule`.

mod circuit_breaker;
mod limits;
pub(crate) mod retry;

pub(crate) use circuit_breaker::{CircuitBreakers, Ticket};
pub(crate) use limits::{AwaitedPermits, CallLimits, SharedStartLimiter, StartSlot};
pub use limits::{ConcurrencyLimit, Permit};
