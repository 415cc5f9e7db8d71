//! Confines one program: which files it can read and change, and which addresses it can reach.
//!
//! A reaper prepares the sandbox, and the child enters it right before the program starts, so no program can reach the
//! reaper. What costs most is the same for many calls, and no harm to a reaper: the system calls and privileges that it
//! doesn't need. So it gives them up before its first call, and its later calls all have sandboxes of the same shape.

#[cfg(target_os = "linux")]
mod reaper_sandboxes;
#[cfg(target_os = "linux")]
mod ruleset;

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fs, io};

use landlock::{RulesetCreated, RulesetStatus};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use reaper_sandboxes::ReaperSandboxes;
pub use ruleset::missing_protections;

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

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

// A sandbox that is ready for one program.

/// A sandbox that is ready to be entered, by a child of a reaper that has given up what its shape says.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    ruleset: RulesetCreated,
    created_files: Vec<CreatedFile>,
    pub(crate) allows_gaps: bool,
}

impl PreparedSandbox {
    /// Confines this process, and all that it starts.
    ///
    /// # Errors
    /// The system doesn't allow it. The process must exit.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let restricted = self.ruleset.try_clone()?.restrict_self();
        let status = restricted.map_err(io::Error::other)?;
        if !self.allows_gaps && status.ruleset != RulesetStatus::FullyEnforced {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    }

    /// Removes the files that were created for a program that failed without having written to them.
    pub(crate) fn remove_unwritten_files(&mut self) {
        for file in self.created_files.drain(..) {
            file.remove_if_empty();
        }
    }
}

// Opens the paths of a sandbox. Only what is open can be allowed, and nothing can replace it afterwards.

/// A file or directory that was opened without reading it.
struct OpenedPath {
    descriptor: OwnedFd,
    is_directory: bool,
}

impl OpenedPath {
    /// Opens what `path` leads to. Returns `None` if that doesn't exist, or can't be reached.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(descriptor) => Self::new(descriptor).map(Some),
            Err(
                Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG
                // It contains a NUL.
                | Errno::INVAL,
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let mode = fstat(&descriptor)?.st_mode;
        Ok(Self {
            descriptor,
            is_directory: FileType::from_raw_mode(mode) == FileType::Directory,
        })
    }

    /// Returns whether this is in `bounds` now, wherever the path to it led.
    fn is_inside(&self, bounds: &Path) -> bool {
        let place = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        match (fs::read_link(place), bounds.canonicalize()) {
            (Ok(place), Ok(bounds)) => place.starts_with(bounds),
            _ => false,
        }
    }
}

/// An empty file that was created so that a program may write it.
#[derive(Debug)]
struct CreatedFile {
    parent: OwnedFd,
    name: PathBuf,
    identity: (u64, u64),
}

impl CreatedFile {
    /// Creates the file, unless there is something of that name, or no directory for it. If `bounds` are given, the
    /// directory must be in them.
    pub(crate) fn create(path: &Path, bounds: Option<&Path>) -> Option<(Self, OpenedPath)> {
        let parent = OpenedPath::open(path.parent()?).ok()??;
        if bounds.is_some_and(|bounds| !parent.is_inside(bounds)) {
            return None;
        }
        let name = PathBuf::from(path.file_name()?);
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let descriptor = openat(&parent.descriptor, &name, flags, mode).ok()?;
        let found = fstat(&descriptor).ok()?;
        let created = Self {
            parent: parent.descriptor,
            name,
            identity: (found.st_dev, found.st_ino),
        };
        Some((created, OpenedPath::new(descriptor).ok()?))
    }

    /// Removes the file if it is still empty.
    fn remove_if_empty(&self) {
        let found = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if found
            .is_ok_and(|found| (found.st_dev, found.st_ino) == self.identity && found.st_size == 0)
        {
            let _ = unlinkat(&self.parent, &self.name, AtFlags::empty());
        }
    }
}
