//! A tools.yaml with an MCP server, and its lock. The server is this program in another role.

use std::io::Write as _;
use std::path::PathBuf;

use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::floors::TOOL_NAMES;
use crate::{Result, programs};

/// A server with locked tools.
#[derive(Debug)]
pub struct LockedServer {
    tools_file: PathBuf,
}

impl LockedServer {
    /// Locks the tools of the server. They are `read` tools.
    ///
    /// # Errors
    /// The files can't be written, or the tools can't be locked.
    pub fn create(bench: &BenchContext) -> Result<Self> {
        let program = std::env::current_exe()?.display().to_string();
        let command = serde_json::to_string(&[&program, "floor", "tools-server"])?;
        let tools_file = bench.write_file("locked.yaml", |out| {
            writeln!(
                out,
                "version: 1\nconcurrency: 16\nservers:\n  bench:\n    command: {command}\n    hints: trust"
            )
        })?;
        let mut lock = programs::toolq()
            .env("TOOLQ_TOOLS", &tools_file)
            .args(["servers", "lock", "-q"])
            .command();
        if !lock.status()?.success() {
            return Err("the tools can't be locked".into());
        }
        Ok(Self { tools_file })
    }

    /// Returns toolq with this server.
    pub fn toolq(&self) -> BenchProgram {
        programs::toolq().env("TOOLQ_TOOLS", &self.tools_file)
    }
}

/// Returns the name by which a model calls a tool of the server.
pub fn tool_name() -> String {
    format!("bench_{}", TOOL_NAMES[0])
}
