//! What `run`, `call`, `replay`, and `serve` share: session log, signals, event sinks, and the runtime.

mod describe;
mod run_session;
mod runtime;
pub(crate) mod signals;
mod sinks;

pub(crate) use describe::{SurveyReply, ToolDescriber, survey_servers};
pub(crate) use run_session::{CallSource, RunSession};
#[cfg(feature = "nats")]
pub(crate) use runtime::{build_runtime, set_up_calls};
pub(crate) use sinks::RunSinks;
