//! The dispatcher of one turn. It alone knows which calls wait, run and are answered, and it alone emits events.
//!
//! A call passes `arrive`, `start`, `task_events` and `finish`, in this order. `halt` ends them all.

mod arrive;
mod attempt_tasks;
mod finish;
mod halt;
mod handle;
mod probe;
mod restore;
mod shared_sink;
mod start;
mod sub_turns;
mod task_events;
mod turn;

pub(crate) use handle::{Answers, Desk};
pub(crate) use shared_sink::Ears;
pub(crate) use turn::Turn;
