//! The arguments of `toolq run`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::input::InputArguments;
use crate::args::shared_flags::{ApprovalFlags, BudgetFlags, LogFlags, WatchFlags};
use crate::args::values::answer_form_parser;
use toolq_core::types::AnswerForm;

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Answer each JSON line as it arrives, with one line; for use as a coprocess
    #[arg(long)]
    pub follow: bool,
    /// With `--follow`: each line is a message of the control protocol, which has turns, approvals, and cancellation
    #[arg(long, requires = "follow", conflicts_with = "files")]
    pub control: bool,
    /// Output format [default: mirrors the input]
    #[arg(long, value_name = "FORM", value_parser = answer_form_parser())]
    pub to: Option<AnswerForm>,
    /// Write the assistant message that a stream amounts to to this file, to send back with the results
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "follow")]
    pub message: Option<PathBuf>,
    /// Apply a plan: approve the calls in it, and run nothing if they aren't exactly those of the input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["no_log", "new", "follow"])]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub approval: ApprovalFlags,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    /// Exit 1 if any result is an error
    #[arg(long)]
    pub fail_on_error: bool,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}
