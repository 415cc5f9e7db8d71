//! Builds the Landlock ruleset of a sandbox, and has what is ready to be entered.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fs, io};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::sandbox::{NetworkAccess, PathAccess, ProgramSandbox, SandboxPath, missing_protections};

/// The newest version of Landlock whose restrictions are used. Later ones would change what programs can do.
const VERSION: ABI = ABI::V6;

/// Prepares the ruleset, which allows everything in `sandbox`, and nothing else that Landlock knows.
///
/// # Errors
/// The kernel can't do it, and the sandbox doesn't allow gaps; or a system call failed.
pub(crate) fn prepare_ruleset(sandbox: &ProgramSandbox) -> io::Result<PreparedSandbox> {
    let gaps = missing_protections(&sandbox.network);
    if !gaps.is_empty() && !sandbox.allows_gaps {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let level = if sandbox.allows_gaps {
        CompatLevel::BestEffort
    } else {
        CompatLevel::HardRequirement
    };
    let mut builder = RulesetBuilder {
        ruleset: empty_ruleset(&sandbox.network, level).map_err(io::Error::other)?,
        sandbox,
        created_files: Vec::new(),
    };
    for path in &sandbox.paths {
        builder.allow(path)?;
    }
    Ok(PreparedSandbox {
        ruleset: builder.ruleset,
        created_files: builder.created_files,
        allows_gaps: sandbox.allows_gaps,
    })
}

struct RulesetBuilder<'s> {
    ruleset: RulesetCreated,
    sandbox: &'s ProgramSandbox,
    created_files: Vec<CreatedFile>,
}

impl RulesetBuilder<'_> {
    fn allow(&mut self, path: &SandboxPath) -> io::Result<()> {
        let bounds = path.stays_inside.then_some(&*self.sandbox.bounds);
        let opened = match OpenedPath::open(&path.path)? {
            None if path.access == PathAccess::Write && path.stays_inside => {
                let created = CreatedFile::create(&path.path, bounds);
                created.map(|(file, opened)| {
                    self.created_files.push(file);
                    opened
                })
            }
            opened => opened,
        };
        let Some(opened) = opened else {
            return Ok(());
        };
        if bounds.is_some_and(|bounds| !opened.is_inside(bounds)) {
            return Ok(());
        }
        let rule = PathBeneath::new(&opened.descriptor, rights(path.access, opened.is_directory));
        (&mut self.ruleset)
            .add_rule(rule)
            .map_err(io::Error::other)?;
        Ok(())
    }
}

fn empty_ruleset(
    network: &NetworkAccess,
    level: CompatLevel,
) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?;
    let NetworkAccess::TcpPorts(ports) = network else {
        return ruleset.create();
    };
    let ports = ports
        .iter()
        .map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp)));
    ruleset
        .handle_access(AccessNet::from_all(VERSION))?
        .create()?
        .add_rules(ports)
}

/// Returns what Landlock calls an access. A program that can make device files could read the disk.
fn rights(access: PathAccess, is_directory: bool) -> BitFlags<AccessFs> {
    let rights = match access {
        PathAccess::Read => AccessFs::from_read(VERSION),
        PathAccess::Write => {
            AccessFs::from_all(VERSION)
                & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
        PathAccess::Device => {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
        }
    };
    if is_directory {
        rights
    } else {
        rights & AccessFs::from_file(VERSION)
    }
}

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
