//! What `run`, `agent`, and `replay` share: session log, signals, event sinks, and the runtime.

mod changed_context;
mod describe;
mod history_comparison;
mod log_request;
mod log_subject;
mod previous_run;
mod repetition;
pub(crate) mod replay_copy;
pub(crate) mod replay_reports;
mod resume_decisions;
mod resumption;
mod run_session;
mod runtime;
pub(crate) mod signals;
mod sinks;
mod timing;

pub(crate) use describe::{DescribeWarningSink, ToolDescriber};
pub(crate) use log_subject::LogSubject;
pub(crate) use run_session::RunSession;
