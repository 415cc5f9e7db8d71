//! The arguments of `toolq run`.

use clap::Args;

use crate::args::input::InputArguments;
use crate::args::shared_flags::{ApprovalFlags, BudgetFlags, LogFlags, WatchFlags};
use crate::args::values::FormFlag;

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Answer each JSON line as it arrives, with one line; for use as a coprocess
    #[arg(long)]
    pub follow: bool,
    /// Output format [default: mirrors the input]
    #[arg(long, value_name = "FORM")]
    pub to: Option<FormFlag>,
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
