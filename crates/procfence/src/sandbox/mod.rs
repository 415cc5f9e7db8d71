//! Confines one program: which files it can read and change, and which addresses it can reach.
//!
//! A reaper prepares the sandbox, and the child enters it right before the program starts, so no program can reach the
//! reaper. What costs most is the same for many calls, and no harm to a reaper: the system calls and privileges that it
//! doesn't need. So it gives them up before its first call, and its later calls all have sandboxes of the same shape.

#[cfg(target_os = "linux")]
mod reaper_sandboxes;
#[cfg(target_os = "linux")]
mod ruleset;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::system_call_filter::{SandboxShape, SandboxSockets};

#[cfg(target_os = "linux")]
pub(crate) use reaper_sandboxes::ReaperSandboxes;
#[cfg(target_os = "linux")]
pub(crate) use ruleset::PreparedSandbox;

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

#[cfg(target_os = "linux")]
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

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

// What the running kernel can't confine. This file contains unsafe code.

#[cfg(target_os = "linux")]
const CREATE_RULESET_VERSION: u32 = 1;

/// Returns what a sandbox with this access can't keep a program from on this system, each as the end of "this system can't
/// confine".
pub fn missing_protections(network: &NetworkAccess) -> Vec<&'static str> {
    #[cfg(target_os = "linux")]
    {
        missing_in(landlock_version(), network)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = network;
        vec!["programs (that needs Linux)"]
    }
}

/// Returns the version of Landlock, or 0 if the kernel doesn't support it. The `landlock` crate doesn't expose it.
#[cfg(target_os = "linux")]
fn landlock_version() -> libc::c_long {
    // SAFETY: with this flag, the kernel reads nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

/// As [`missing_protections`], for this version of Landlock.
#[cfg(target_os = "linux")]
fn missing_in(version: libc::c_long, network: &NetworkAccess) -> Vec<&'static str> {
    if version == 0 {
        return vec![
            "files (its kernel lacks Landlock, which needs Linux 6.2, or has it switched off)",
        ];
    }
    let limits_ports = matches!(network, NetworkAccess::TcpPorts(_));
    let gaps = [
        (3, true, "the truncation of files (that needs Linux 6.2)"),
        (4, limits_ports, "TCP ports (that needs Linux 6.7)"),
        (5, true, "requests to device files (that needs Linux 6.10)"),
        (
            6,
            true,
            "signals and abstract Unix sockets (that needs Linux 6.12)",
        ),
    ];
    let missing = gaps
        .into_iter()
        .filter(|(since, matters, _)| version < *since && *matters);
    missing.map(|(_, _, what)| what).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_lacks_what_it_came_before() {
        let counts = |network: NetworkAccess| {
            [0, 1, 2, 3, 4, 5, 6, 7, 20].map(|version| missing_in(version, &network).len())
        };
        assert_eq!(counts(NetworkAccess::None), [1, 3, 3, 2, 2, 1, 0, 0, 0]);
        let ports = NetworkAccess::TcpPorts(vec![443]);
        assert_eq!(counts(ports), [1, 4, 4, 3, 2, 1, 0, 0, 0]);
    }
}
