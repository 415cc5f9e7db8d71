//! The arguments of `toolq check`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::values::CheckFormat;

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The file to check, in place of that of `-c`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Also exit 1 if there are only warnings
    #[arg(long)]
    pub strict: bool,
    /// Where to report the problems, and how
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Also report what the tools need and this machine lacks: programs, variables, kernel features, servers
    #[arg(long)]
    pub machine: bool,
    /// With --machine: connect to nothing, so servers, agents and requests aren't asked whether they can be reached
    #[arg(long, requires = "machine")]
    pub offline: bool,
}
