//! The arguments of `toolq call`.

use clap::Args;

use crate::args::shared_flags::{ApprovalFlags, LogFlags, WatchFlags};
use crate::args::values::CallFormat;

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
    #[command(flatten)]
    pub approval: ApprovalFlags,
    #[command(flatten)]
    pub log: LogFlags,
    #[command(flatten)]
    pub watch: WatchFlags,
}
