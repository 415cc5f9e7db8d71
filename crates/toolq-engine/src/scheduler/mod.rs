//! The rules of scheduling, as plain state machines: order, permits, retries, circuit breakers, timeouts.

mod circuit_breaker;
mod gate;
mod permits;
mod queue;
pub(crate) mod retry;
mod timeout;

pub(crate) use circuit_breaker::Pauses;
pub(crate) use gate::Gate;
pub(crate) use permits::Slots;
pub(crate) use queue::{Entry, Job, Queue, Run, State};
pub(crate) use timeout::Limit;
