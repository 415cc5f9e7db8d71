//! The floors: the least that a row's work can cost in Rust. Each runs as a process of its own, started by the driver
//! (`compare floor …`), since whole processes are compared.

mod echo;
mod posts;
mod spawn;
mod synced;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Subcommand;

use crate::Result;

/// Which floor.
#[derive(Debug, Subcommand)]
pub enum Floor {
    /// A floor program; the driver starts it
    #[command(subcommand, hide = true)]
    Floor(Role),
}

/// What it does.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// Start a command for each line of a file
    Spawn {
        /// Commands that run at once
        #[arg(long, default_value = "8")]
        jobs: NonZeroUsize,
        /// A file that gets a line and a sync before each command and behind it
        #[arg(long)]
        synced: Option<PathBuf>,
        /// What they read, a line each
        lines: PathBuf,
        /// The command
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Run a command, then grow a file by lines and sync each
    Synced {
        /// How many lines
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
        /// What is posted
        lines: PathBuf,
    },
    /// Serve: answer each request with its body
    Echo,
}

impl Floor {
    /// Does the work.
    ///
    /// # Errors
    /// Whatever went wrong.
    pub fn run(self) -> Result<()> {
        let Self::Floor(role) = self;
        match role {
            Role::Spawn {
                jobs,
                synced,
                lines,
                command,
            } => spawn::run(jobs.get(), synced.as_deref(), &lines, &command),
            Role::Synced {
                times,
                file,
                command,
            } => synced::run(times, &file, &command),
            Role::Posts { address, lines } => posts::run(address, &lines),
            Role::Echo => echo::run(),
        }
    }
}
