//! A tools.yaml with MCP servers, and its lock. The servers are this program in another role.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::bench_context::BenchContext;
use crate::bench_program::BenchProgram;
use crate::floors::TOOL_NAMES;
use crate::programs;

/// Servers with locked tools.
#[derive(Debug)]
pub struct LockedServers {
    /// The tools.yaml.
    pub tools_file: PathBuf,
    /// The program of all servers.
    program: PathBuf,
    /// What a server creates when it is started after [`forbid_starts`](Self::forbid_starts).
    start_marker: PathBuf,
}

impl LockedServers {
    /// Locks the tools of `count` servers, each with these further arguments. Their tools are `read` tools.
    ///
    /// # Errors
    /// The files can't be written, or the tools can't be locked.
    pub fn create(
        bench: &BenchContext,
        name: &str,
        count: usize,
        arguments: &[&str],
    ) -> Result<Self> {
        let program = bench.path(&format!("{name}-server"));
        symlink(std::env::current_exe()?, &program)?;
        let tools_file = bench.write_file(&format!("{name}.yaml"), |out| {
            write_servers(out, count, &program, arguments)
        })?;
        let mut lock = programs::toolq()
            .env("TOOLQ_TOOLS", &tools_file)
            .args(["servers", "lock", "-q"])
            .command();
        if !lock.status()?.success() {
            return Err("the tools can't be locked".into());
        }
        Ok(Self {
            tools_file,
            program,
            start_marker: bench.path(&format!("{name}-started")),
        })
    }

    /// Returns toolq with these servers.
    pub fn toolq(&self) -> BenchProgram {
        programs::toolq().env("TOOLQ_TOOLS", &self.tools_file)
    }

    /// From now on, [`check_not_started`](Self::check_not_started) notices the start of a server.
    ///
    /// # Errors
    /// The program of the servers can't be replaced.
    pub fn forbid_starts(&self) -> io::Result<()> {
        fs::remove_file(&self.program)?;
        let marker = self.start_marker.display();
        fs::write(&self.program, format!("#!/bin/sh\n: > '{marker}'\n"))?;
        fs::set_permissions(&self.program, fs::Permissions::from_mode(0o755))
    }

    /// # Errors
    /// A server was started.
    pub fn check_not_started(&self) -> Result<()> {
        if self.start_marker.exists() {
            return Err("a server was started".into());
        }
        Ok(())
    }
}

/// Returns the name by which a model calls a tool of the server with this number.
pub fn tool_name(server: usize) -> String {
    format!("s{server}_{}", TOOL_NAMES[0])
}

fn write_servers(
    out: &mut impl io::Write,
    count: usize,
    program: &Path,
    arguments: &[&str],
) -> io::Result<()> {
    let mut command = vec![program.display().to_string()];
    command.extend(["floor", "tools-server"].map(str::to_owned));
    command.extend(arguments.iter().map(|&argument| argument.to_owned()));
    let command = serde_json::to_string(&command)?;
    writeln!(out, "version: 1\nconcurrency: 16\nservers:")?;
    (0..count).try_for_each(|number| {
        writeln!(
            out,
            "  s{number}:\n    command: {command}\n    hints: trust"
        )
    })
}
