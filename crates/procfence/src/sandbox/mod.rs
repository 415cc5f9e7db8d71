//! Confines one program: which files it can read and change, and which addresses it can reach.
//!
//! A reaper prepares the sandbox, and the child enters it right before the program starts, so no program can reach the
//! reaper. What costs most is the same for many calls, and no harm to a reaper: the system calls and privileges that it
//! doesn't need. So it gives them up before its first call, and its later calls all have sandboxes of the same shape.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
mod entry;
#[cfg(target_os = "linux")]
mod opened_path;
#[cfg(target_os = "linux")]
mod private_temp_dir;
#[cfg(target_os = "linux")]
mod reaper_sandboxes;
#[cfg(target_os = "linux")]
mod ruleset;
mod support;

#[cfg(target_os = "linux")]
pub(crate) use entry::PreparedSandbox;
#[cfg(target_os = "linux")]
pub(crate) use reaper_sandboxes::ReaperSandboxes;
pub use support::missing_protections;

/// What a program, and all that it starts, can reach. It gets a private temporary directory, which `TMPDIR` names, and
/// can't signal or inspect processes outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSandbox {
    /// Files, and directories with everything below them. One that doesn't exist allows nothing.
    pub paths: Vec<SandboxPath>,
    /// Links of those [`SandboxPath`]s that `stays_inside` must not lead out of this directory.
    #[serde(with = "raw_path")]
    pub bounds: PathBuf,
    /// What it can reach over the network.
    pub network: NetworkAccess,
    /// Whether the program starts even if the kernel lacks some of the [`missing_protections`].
    pub allows_gaps: bool,
}

/// A path that a program can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPath {
    /// Absolute.
    #[serde(with = "raw_path")]
    pub path: PathBuf,
    /// What the program may do there.
    pub access: PathAccess,
    /// Whether it allows nothing if it leads out of [`ProgramSandbox::bounds`].
    pub stays_inside: bool,
}

/// What a program may do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathAccess {
    /// Read and execute.
    Read,
    /// Also change, create and remove. A file that doesn't exist and stays inside is created empty before the program
    /// starts, because only what exists can be allowed; it is removed if the program fails without having written to it.
    Write,
    /// Read and write what exists: device files.
    Device,
}

/// What a reaper gives up for good to start programs with this sandbox, and all with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SandboxShape {
    pub(crate) sockets: SandboxSockets,
    /// Whether programs may change files that aren't temporary.
    pub(crate) changes_files: bool,
}

/// The sockets that programs may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxSockets {
    None,
    All,
    TcpClients,
}

impl ProgramSandbox {
    pub(crate) fn shape(&self) -> SandboxShape {
        let changes_files = |path: &SandboxPath| path.access == PathAccess::Write;
        SandboxShape {
            sockets: match self.network {
                NetworkAccess::None => SandboxSockets::None,
                NetworkAccess::All => SandboxSockets::All,
                NetworkAccess::TcpPorts(_) => SandboxSockets::TcpClients,
            },
            changes_files: self.paths.iter().any(changes_files),
        }
    }
}

/// What a program can reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkAccess {
    /// Nothing: it can open no socket of any family, only pairs of them.
    None,
    /// Everything, also the sockets of programs on this machine.
    All,
    /// These ports, as a client over TCP.
    TcpPorts(Vec<u16>),
}

/// Paths as the system has them. As paths, serde takes only those that are UTF-8.
mod raw_path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}
