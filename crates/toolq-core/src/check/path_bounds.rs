//! Keeps a path inside the root. The kernel resolves it, where it can; else, a walk looks at each component and follows
//! the symlinks that exist in the file system.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

/// Maximum length of a path in bytes, including the terminator: `PATH_MAX` on Linux.
pub(crate) const MAX_PATH_BYTES: usize = 4_096;

/// Why a path isn't inside the bounds, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathRefusal {
    Empty,
    ContainsNul,
    TooLong,
    Tilde,
    /// It leads outside.
    Outside,
    /// It has a `..` where nothing exists yet.
    ClimbsFromMissing,
    UnreadableWorkingDirectory,
    UnresolvedLink,
    UnreadableDirectory,
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "it is empty",
            Self::ContainsNul => "it contains a NUL character",
            Self::TooLong => "it is longer than 4,095 bytes",
            Self::Tilde => "`~` isn't expanded; write `./~` for a file with that name",
            Self::Outside => "it leads outside",
            Self::ClimbsFromMissing => "`..` after a directory that doesn't exist",
            Self::UnreadableWorkingDirectory => "the working directory can't be read",
            Self::UnresolvedLink => "a symlink in the path can't be resolved",
            Self::UnreadableDirectory => "a directory in the path can't be read",
        })
    }
}

/// The directory that paths must stay inside.
pub(crate) struct PathBounds<'a> {
    /// As declared.
    root: &'a Path,
    /// With symlinks resolved.
    canonical_root: PathBuf,
    /// Where relative paths start.
    base: &'a Path,
}

impl<'a> PathBounds<'a> {
    /// Creates the bounds of `root`. Relative paths start at `base`. Returns `None` if the root can't be read.
    pub(crate) fn new(root: &'a Path, base: &'a Path) -> Option<Self> {
        Some(Self {
            root,
            canonical_root: root.canonicalize().ok()?,
            base,
        })
    }

    /// Checks that `path` stays inside. A path that doesn't exist yet is inside if its nearest existing ancestor is.
    ///
    /// # Errors
    /// Why it doesn't, or why that can't be determined.
    pub(crate) fn check_path(&self, path: &str) -> Result<(), PathRefusal> {
        match path {
            "" => return Err(PathRefusal::Empty),
            _ if path.contains('\0') => return Err(PathRefusal::ContainsNul),
            _ if path.len() >= MAX_PATH_BYTES => return Err(PathRefusal::TooLong),
            _ if path.starts_with('~') => return Err(PathRefusal::Tilde),
            _ => {}
        }
        let path = Path::new(path);
        if path.is_relative() {
            let base = self
                .base
                .canonicalize()
                .map_err(|_| PathRefusal::UnreadableWorkingDirectory)?;
            return self.check_components(base, path);
        }
        let relative = [self.root, &self.canonical_root]
            .into_iter()
            .find_map(|root| path.strip_prefix(root).ok());
        let relative = relative.ok_or(PathRefusal::Outside)?;
        self.check_components(self.canonical_root.clone(), relative)
    }

    /// Like [`Self::check_path`], but a path that leads nowhere is fine, because no program gets there.
    ///
    /// # Errors
    /// See [`Self::check_path`].
    pub(crate) fn check_guess(&self, path: &str) -> Result<(), PathRefusal> {
        if path.is_empty() || path.starts_with('~') {
            return Ok(());
        }
        match self.check_path(path) {
            Err(PathRefusal::ClimbsFromMissing) => Ok(()),
            verdict => verdict,
        }
    }

    /// Checks a path that starts at `base`, a directory without symlinks in its path.
    fn check_components(&self, base: PathBuf, path: &Path) -> Result<(), PathRefusal> {
        if self.resolves_beneath(&base, path) {
            return Ok(());
        }
        self.walk_components(base, path)
    }

    /// Whether the kernel resolves the path to something that exists, without leaving the root on the way. It does so in one
    /// step, so that nothing can be exchanged between two components. What it doesn't resolve may be inside all the same: a
    /// path that doesn't exist yet, or an absolute symlink.
    #[cfg(target_os = "linux")]
    fn resolves_beneath(&self, base: &Path, path: &Path) -> bool {
        let Ok(from_root) = base.strip_prefix(&self.canonical_root) else {
            return false;
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let path = Path::new(".").join(from_root).join(path);
        let root = open(&self.canonical_root, flags, Mode::empty());
        let opened = root.and_then(|root| openat2(root, path, flags, Mode::empty(), resolve));
        opened.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn resolves_beneath(&self, _base: &Path, _path: &Path) -> bool {
        false
    }

    /// Walks down from `current`; no step may leave the root.
    fn walk_components(&self, mut current: PathBuf, path: &Path) -> Result<(), PathRefusal> {
        let mut exists = true;
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir if exists => {
                    current.pop();
                }
                Component::ParentDir => return Err(PathRefusal::ClimbsFromMissing),
                Component::Normal(name) => {
                    current.push(name);
                    if exists {
                        exists = follow_link(&mut current)?;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(PathRefusal::Outside),
            }
            if !current.starts_with(&self.canonical_root) {
                return Err(PathRefusal::Outside);
            }
        }
        Ok(())
    }
}

/// Resolves `path` if it is a symlink. Returns false if nothing exists there.
fn follow_link(path: &mut PathBuf) -> Result<bool, PathRefusal> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => {
            *path = path
                .canonicalize()
                .map_err(|_| PathRefusal::UnresolvedLink)?;
            Ok(true)
        }
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(_) => Err(PathRefusal::UnreadableDirectory),
    }
}
