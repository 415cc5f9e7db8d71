//! What `run`, `call`, `replay`, and `serve` share: session log, signals, event sinks, and the runtime.

mod changed_context;
mod describe;
mod earlier_results;
mod history_comparison;
mod log_request;
mod log_subject;
mod previous_run;
mod progress_display;
mod reload;
mod repetition;
pub(crate) mod replay_reports;
mod report_file;
mod resume_decisions;
mod resumption;
mod run_session;
mod runtime;
mod server_survey;
pub(crate) mod signals;
mod sinks;
mod timing;

pub(crate) use describe::{DescribeWarningSink, ToolDescriber};
pub(crate) use log_subject::LogSubject;
pub(crate) use reload::{ToolsInForce, describe_changes};
pub(crate) use report_file::ReportFileError;
pub(crate) use resume_decisions::ResumeDecisions;
pub(crate) use run_session::RunSession;
#[cfg(feature = "nats")]
pub(crate) use runtime::{build_runtime, set_up_calls};
pub(crate) use server_survey::{SurveyReply, survey_servers};
pub(crate) use sinks::RunSinks;
