//! Confines one program: which files it can read and change, and which addresses it can reach.
//!
//! A reaper prepares the sandbox, and the child enters it right before the program starts, so the reaper itself stays
//! free. Everything that the program starts inherits it.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
mod encoding;
#[cfg(target_os = "linux")]
mod entry;
#[cfg(target_os = "linux")]
mod opened_path;
#[cfg(target_os = "linux")]
mod private_temp_dir;
#[cfg(target_os = "linux")]
mod ruleset;
mod support;

#[cfg(target_os = "linux")]
pub(crate) use entry::PreparedSandbox;
pub use support::missing_protections;

/// What a program, and all that it starts, can reach. It gets a private temporary directory, which `TMPDIR` names, and
/// can't signal or inspect processes outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSandbox {
    /// Files, and directories with everything below them. One that doesn't exist allows nothing.
    pub paths: Vec<SandboxPath>,
    /// Links of those [`SandboxPath`]s that `stays_inside` must not lead out of this directory.
    pub bounds: PathBuf,
    /// What it can reach over the network.
    pub network: NetworkAccess,
    /// Whether the program starts even if the kernel lacks some of the [`missing_protections`].
    pub allows_gaps: bool,
}

/// A path that a program can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPath {
    /// Absolute.
    pub path: PathBuf,
    /// What the program may do there.
    pub access: PathAccess,
    /// Whether it allows nothing if it leads out of [`ProgramSandbox::bounds`].
    pub stays_inside: bool,
}

/// What a program may do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Read and execute.
    Read,
    /// Also change, create and remove. A file that doesn't exist is created empty before the program starts, because only
    /// what exists can be allowed; it is removed if the program fails without having written to it.
    Write,
    /// Read and write what exists: device files.
    Device,
}

/// What a program can reach over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkAccess {
    /// Nothing: it can open no socket of any family, only pairs of them.
    None,
    /// Everything, also the sockets of programs on this machine.
    All,
    /// These ports, as a client over TCP.
    TcpPorts(Vec<u16>),
}
