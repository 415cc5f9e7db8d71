//! The arguments of `toolq agent`.

use std::num::NonZeroUsize;

use clap::Args;

use crate::args::shared_flags::{ApprovalFlags, BudgetFlags, LogFlags, WatchFlags};
use crate::args::values::{AnswerFormat, parse_jobs};

#[derive(Debug, Args)]
pub struct AgentArguments {
    /// Name of a tool with an `agent`; its input is read from stdin: JSON, or the text of its only string
    pub name: String,
    /// What to print
    #[arg(long, value_name = "WHAT", default_value = "text")]
    pub to: AnswerFormat,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
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
