//! The arguments of `toolq record`.

use std::ffi::OsString;

use clap::Args;

use crate::args::shared_flags::NewSessionLogFlags;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordArguments {
    /// Mask the value of this environment variable in the log; can be repeated
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    #[command(flatten)]
    pub log: NewSessionLogFlags,
    /// The server, and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  toolq record -- mcp-server-git                       what the client starts in place of `mcp-server-git`
  toolq record --log git.jsonl -- mcp-server-git       the same, with one log for all sessions
  toolq log show git.jsonl                             show the calls
  toolq replay git.jsonl                               hold them against the tools of tools.yaml";
