//! What `run`, `agent`, and `replay` share: session log, signals, event sinks, and the runtime.

mod describe;
pub(crate) mod log_request;
mod previous_run;
pub(crate) mod replay_reports;
mod resume;
pub(crate) mod runtime;
pub(crate) mod signals;
mod sinks;
mod timing;

pub(crate) use describe::{DescribeWarningSink, ToolDescriber};
pub(crate) use log_request::{LogRequest, OpenedLog};
pub(crate) use resume::ResumeDecisions;
pub(crate) use runtime::{
    build_runtime, default_engine_settings, halt_when_stdout_closes, spawn_ticker,
};
pub(crate) use signals::SignalHandler;
pub(crate) use sinks::RunSinks;
