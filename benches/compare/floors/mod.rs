//! The floors: the least that a row's work can cost in Rust. Since whole processes are compared, the driver starts each
//! of them as a process (`compare floor …`).

mod echo;
mod posts;
mod spawn;
mod tools_server;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Subcommand;

use crate::Result;

pub use tools_server::TOOL_NAMES;

/// The subcommand that runs a floor.
#[derive(Debug, Subcommand)]
pub enum FloorCommand {
    /// Run a floor program; started by the driver
    #[command(subcommand, hide = true)]
    Floor(FloorProgram),
}

/// The floor programs.
#[derive(Debug, Subcommand)]
pub enum FloorProgram {
    /// Start a command for each line of a file
    Spawn {
        /// Number of commands that run at once
        #[arg(long, default_value = "8")]
        jobs: NonZeroUsize,
        /// A file to append a line to, with an fsync, before and after each command
        #[arg(long)]
        synced: Option<PathBuf>,
        /// The inputs of the commands, one per line
        lines: PathBuf,
        /// The command
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Post each line of a file
    Posts {
        /// The server
        address: SocketAddr,
        /// The bodies to post, one per line
        lines: PathBuf,
    },
    /// Serve HTTP, echoing the body of each request
    Echo,
    /// Serve tools by MCP, echoing the arguments of each call
    ToolsServer,
}

impl FloorCommand {
    /// Runs the floor program.
    ///
    /// # Errors
    /// The floor program fails.
    pub fn run(self) -> Result<()> {
        let Self::Floor(role) = self;
        match role {
            FloorProgram::Spawn {
                jobs,
                synced,
                lines,
                command,
            } => spawn::run(jobs.get(), synced.as_deref(), &lines, &command),
            FloorProgram::Posts { address, lines } => posts::run(address, &lines),
            FloorProgram::Echo => echo::run(),
            FloorProgram::ToolsServer => tools_server::run(),
        }
    }
}
