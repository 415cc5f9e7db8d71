//! The dispatcher of one turn. It alone knows which calls are waiting, running or answered, and it alone emits events.
//!
//! A call goes through `arrive`, `start`, `task_events` and `finish`, in this order. `effects` is the work list of what the
//! end of a call does to others, and `halt` stops all calls. Between arrival and start, a call may wait for an approval
//! (`approve`) or for its limits (`throttle`).

mod admit;
mod agent_requests;
mod approve;
mod arrive;
mod attempt_tasks;
mod concurrent_turns;
mod effects;
mod finish;
mod halt;
mod handle;
mod memory;
mod probe;
mod restore;
mod shared_sink;
mod start;
mod sub_turns;
mod task_events;
mod throttle;
mod throttled_calls;
mod turn_gate;
mod turn_loop;

pub(crate) use concurrent_turns::{ConcurrentTurns, SharedDelivery};
pub use concurrent_turns::{LateResult, TurnRequest};
pub(crate) use handle::{DispatcherHandle, SubTurnAnswers};
pub(crate) use shared_sink::{SharedSink, TurnSink};
pub(crate) use turn_loop::Dispatcher;
