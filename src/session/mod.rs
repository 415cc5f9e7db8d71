//! What `run`, `agent` and `replay` share: the session log, signals, sinks of events, the runtime.

mod describe;
pub(crate) mod log_request;
mod previous_run;
pub(crate) mod replay_reports;
mod resume;
pub(crate) mod runtime;
pub(crate) mod signals;
mod sinks;

pub(crate) use describe::{Describer, Warned};
pub(crate) use log_request::{BegunLog, Intent};
pub(crate) use resume::Earlier;
pub(crate) use runtime::{any_task, build_runtime, settings, tick, watch_stdout};
pub(crate) use signals::Signals;
pub(crate) use sinks::{Observers, Shared};
