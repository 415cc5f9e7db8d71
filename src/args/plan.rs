//! The arguments of `toolq plan`.

use clap::Args;

use crate::args::input::InputArguments;
use crate::args::values::PlanFormat;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    /// Run the `describe` commands of tools that have one, to get their schemas; runs nothing else
    #[arg(long)]
    pub describe: bool,
    /// Exit 1 if any call is rejected
    #[arg(long)]
    pub strict: bool,
}
