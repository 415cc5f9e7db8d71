//! What `run`, `call`, `replay`, and `serve` share: session log, signals, event sinks, and the runtime.

mod describe;
mod progress_display;
mod reload;
pub(crate) mod replay_reports;
mod report_file;
mod run_session;
mod runtime;
mod server_survey;
pub(crate) mod signals;
mod sinks;
mod timing;

pub(crate) use describe::{DescribeWarningSink, ToolDescriber};
pub(crate) use reload::{ToolsInForce, describe_changes};
pub(crate) use report_file::ReportFileError;
pub(crate) use run_session::{CallSource, RunSession};
#[cfg(feature = "nats")]
pub(crate) use runtime::{build_runtime, set_up_calls};
pub(crate) use server_survey::{SurveyReply, survey_servers};
pub(crate) use sinks::RunSinks;
