//! The arguments of `toolq plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::args::input::InputArguments;
use crate::args::shared_flags::LogFlags;
use crate::args::values::PlanFormat;
use toolq_core::text::parse_duration;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: InputArguments,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
    #[command(flatten)]
    pub log: LogFlags,
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
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_validity, requires = "out")]
    pub valid: Duration,
    /// Exit 1 if any call is rejected
    #[arg(long)]
    pub strict: bool,
}

/// Parses how long a plan can be applied, which is longer than no time.
fn parse_validity(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err("a plan that is valid for no time can't be applied".to_owned()),
        duration => Ok(duration),
    }
}
