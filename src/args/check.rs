//! The arguments of `toolq check`.

use clap::Args;

use crate::args::values::CheckFormat;

#[derive(Debug, Args)]
pub struct CheckArguments {
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
