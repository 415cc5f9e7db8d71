//! The arguments of `toolq serve`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::args::shared_flags::{BudgetFlags, LOG_FILE_HELP, WatchFlags};
use crate::args::values::{parse_http_address, parse_jobs};

#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Serve only tools whose name matches this glob; can be repeated [default: all]
    #[arg(long, value_name = "GLOB")]
    pub only: Vec<String>,
    /// Serve only tools with `effect: read`
    #[arg(long)]
    pub read_only: bool,
    /// Maximum number of calls to run at once; 1 turns parallelism off [default: `concurrency` in tools.yaml]
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<NonZeroUsize>,
    #[arg(
        long,
        help = LOG_FILE_HELP,
        value_name = "FILE",
        value_hint = ValueHint::FilePath
    )]
    pub log: Option<PathBuf>,
    /// Serve over HTTP at IP:PORT, path /mcp, instead of over stdin and stdout; port 0 is any free one
    #[arg(long, value_name = "ADDR", value_parser = parse_http_address)]
    pub http: Option<SocketAddr>,
    /// Environment variable with the token that every HTTP request must have; required unless ADDR is a loopback address
    #[arg(long, value_name = "NAME", requires = "http")]
    pub token_env: Option<String>,
    /// Also answer web pages of this origin, and requests to its host; can be repeated [default: those on this machine]
    #[arg(long, value_name = "URL", requires = "http")]
    pub origin: Vec<String>,
    #[command(flatten)]
    pub watch: WatchFlags,
    #[command(flatten)]
    pub budgets: BudgetFlags,
}
