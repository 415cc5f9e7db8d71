//! The arguments of `toolq approvals`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::args::values::LogFormat;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApprovalsArguments {
    /// The log of the runs, if they had `--log`.
    #[arg(
        help = "The log of the runs, if they had `--log` [env: TOOLQ_LOG_FILE] [default: the memory of all runs without `--log`]",
        long,
        value_name = "FILE",
        global = true,
        value_hint = ValueHint::FilePath
    )]
    pub log: Option<PathBuf>,
    /// Output format of the list
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub format: LogFormat,
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

const EXAMPLES: &str = "\
Examples:
  toolq approvals                            list what waits for an approval
  toolq approvals approve toolu_07           let this call run when its input is run again
  toolq approvals deny toolu_07 --reason 'not on Fridays'
                                             refuse it";

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the calls that wait for an approval
    List,
    /// Let calls run when their input is run again
    Approve(ApproveArguments),
    /// Refuse calls
    Deny(DenyArguments),
}

#[derive(Debug, Args)]
pub struct ApproveArguments {
    /// The calls, as the list names them
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}

#[derive(Debug, Args)]
pub struct DenyArguments {
    /// The calls, as the list names them
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Why, for the model and for the log
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub reason: Option<String>,
}
