//! The arguments of `toolq call`.

use std::num::NonZeroUsize;

use clap::Args;

use crate::args::shared_flags::{ApprovalFlags, BudgetFlags, LogFlags, WatchFlags};
use crate::args::values::{CallFormat, parse_jobs};

#[derive(Debug, Args)]
pub struct CallArguments {
    /// Name of a tool
    // The completions change this argument, which would move it after the other without an index.
    #[arg(index = 1)]
    pub name: String,
    /// Its input: JSON, or the text of its only string [default: stdin]
    #[arg(index = 2, value_name = "JSON", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// What to print
    #[arg(long, value_name = "WHAT", default_value = "text")]
    pub to: CallFormat,
    /// Maximum number of calls of an agent to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub approval: ApprovalFlags,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}
