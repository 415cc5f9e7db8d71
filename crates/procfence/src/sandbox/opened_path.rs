//! Opens the paths of a sandbox. Only what is open can be allowed, and nothing can replace it afterwards.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// A file or directory that was opened without reading it.
pub(crate) struct OpenedPath {
    pub(crate) descriptor: OwnedFd,
    pub(crate) is_directory: bool,
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
    pub(crate) fn is_inside(&self, bounds: &Path) -> bool {
        let place = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        match (fs::read_link(place), bounds.canonicalize()) {
            (Ok(place), Ok(bounds)) => place.starts_with(bounds),
            _ => false,
        }
    }
}

/// An empty file that was created so that a program may write it.
#[derive(Debug)]
pub(crate) struct CreatedFile {
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
    pub(crate) fn remove_if_empty(&self) {
        let found = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if found
            .is_ok_and(|found| (found.st_dev, found.st_ino) == self.identity && found.st_size == 0)
        {
            let _ = unlinkat(&self.parent, &self.name, AtFlags::empty());
        }
    }
}
