//! The floors: the least that a row's work can cost in Rust. Since whole processes are compared, the driver starts each
//! of them as a process (`compare floor …`).

mod echo;
mod posts;
mod spawn;
mod synced;
mod tool_client;
mod tools_server;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Subcommand;

use crate::Result;

pub use tools_server::TOOL_NAMES;
use tools_server::ToolsServerOptions;

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
    /// Run a command, then append lines to a file, each with an fsync
    Synced {
        /// Number of lines
        #[arg(long)]
        times: usize,
        /// The file
        file: PathBuf,
        /// The command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
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
    ToolsServer(ToolsServerOptions),
    /// Call a tool of an MCP server with each line of a file
    ToolClient {
        /// Number of calls without an answer at any time
        #[arg(long, default_value = "16")]
        in_flight: usize,
        /// The tool
        tool: String,
        /// The inputs of the calls, one per line
        lines: PathBuf,
        /// The server
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
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
            FloorProgram::Synced {
                times,
                file,
                command,
            } => synced::run(times, &file, &command),
            FloorProgram::Posts { address, lines } => posts::run(address, &lines),
            FloorProgram::Echo => echo::run(),
            FloorProgram::ToolsServer(options) => tools_server::run(&options),
            FloorProgram::ToolClient {
                in_flight,
                tool,
                lines,
                command,
            } => tool_client::run(in_flight, &tool, &lines, &command),
        }
    }
}
