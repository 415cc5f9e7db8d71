//! The arguments of `toolq plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::input::InputArguments;
use crate::args::values::PlanFormat;
use toolq_core::text::parse_duration;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    /// Take the estimates of tools from a session log: the median duration of each tool's calls
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath, conflicts_with = "out")]
    pub estimates: Option<PathBuf>,
    /// Run the `describe` commands of tools that have one, to get their schemas; runs nothing else
    #[arg(long)]
    pub describe: bool,
    /// Also write the plan to a file, for review; `toolq run --plan FILE` applies it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// How long the plan can be applied
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration, requires = "out")]
    pub valid: Duration,
    /// Exit 1 if any call is rejected
    #[arg(long)]
    pub strict: bool,
}
