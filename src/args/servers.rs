//! The arguments of `toolq servers`.

use clap::{Args, Subcommand};

use crate::args::values::ServersFormat;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct ServersArguments {
    /// Servers to ask, of which the tools are listed, too [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Output format; `json` always lists the tools
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ServersFormat,
    #[command(subcommand)]
    pub command: Option<ServersCommand>,
}

const EXAMPLES: &str = "\
Examples:
  toolq servers                       show which servers announce what tools.lock says
  toolq servers files                 the same for one server, with its tools
  toolq servers lock                  ask servers that aren't locked for their tools
  toolq servers lock --update files   accept what has changed";

#[derive(Debug, Subcommand)]
pub enum ServersCommand {
    /// Write what the servers announce to tools.lock, so that their tools can be called; exit 1 if one can't be locked
    Lock(ServersLockArguments),
}

#[derive(Debug, Args)]
pub struct ServersLockArguments {
    /// Servers to lock [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Also accept what has changed since a server was locked
    #[arg(long)]
    pub update: bool,
    /// Give each tool the effect that its server claims; otherwise, it is a `write` tool
    #[arg(long)]
    pub accept_hints: bool,
}
