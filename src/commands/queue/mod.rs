//! `toolq submit`, `work`, `collect`, and `queue`: turns that workers on any machine answer.

#[cfg(not(feature = "nats"))]
mod absent;
#[cfg(feature = "nats")]
mod collect;
#[cfg(feature = "nats")]
mod manage;
#[cfg(feature = "nats")]
mod resolve;
#[cfg(feature = "nats")]
mod session;
#[cfg(feature = "nats")]
mod submit;
#[cfg(feature = "nats")]
mod work;

#[cfg(not(feature = "nats"))]
pub(crate) use absent::{collect_results, manage_queue, submit_turns, work_on_queue};
#[cfg(feature = "nats")]
pub(crate) use collect::collect_results;
#[cfg(feature = "nats")]
pub(crate) use manage::manage_queue;
#[cfg(feature = "nats")]
pub(crate) use submit::submit_turns;
#[cfg(feature = "nats")]
pub(crate) use work::work_on_queue;
