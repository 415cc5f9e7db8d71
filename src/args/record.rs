//! The arguments of `toolq record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::values::SyncFlag;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordArguments {
    /// Mask the value of this environment variable in the log; can be repeated
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    #[arg(
        long,
        help = "Session log to append to [env: TOOLQ_LOG_FILE] [default: a new file below $XDG_STATE_HOME/toolq/sessions]",
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub log: Option<PathBuf>,
    /// Which calls' records must reach the disk before toolq continues
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub sync: SyncFlag,
    /// The server, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  toolq record -- mcp-server-git                       what the client starts in place of `mcp-server-git`
  toolq record --log git.jsonl -- mcp-server-git       the same, with one log for all sessions
  toolq log show git.jsonl                             show the calls
  toolq replay git.jsonl                               hold them against the tools of tools.yaml";
