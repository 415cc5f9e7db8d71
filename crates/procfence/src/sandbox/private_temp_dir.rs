//! The temporary directory of a confined program.

use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const VARIABLE: &[u8] = b"TMPDIR=";

/// A directory that only one call has, in the directory that `TMPDIR` named.
#[derive(Debug)]
pub(crate) struct PrivateTempDir(TempDir);

impl PrivateTempDir {
    /// Removes `TMPDIR` from `env`, and returns the directory that it named.
    pub(crate) fn take_outer(env: &mut Vec<CString>) -> PathBuf {
        let is_variable = |variable: &CString| variable.as_bytes().starts_with(VARIABLE);
        let outer = env.iter().find(|variable| is_variable(variable));
        let outer = outer.map(|variable| OsStr::from_bytes(&variable.as_bytes()[VARIABLE.len()..]));
        let outer = outer.map(Path::new).filter(|outer| outer.is_absolute());
        let outer = outer.unwrap_or(Path::new("/tmp")).to_owned();
        env.retain(|variable| !is_variable(variable));
        outer
    }

    /// Creates a directory in `outer`.
    ///
    /// # Errors
    /// The system doesn't allow it.
    pub(crate) fn create(outer: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder
            .prefix("call-")
            .permissions(Permissions::from_mode(0o700));
        builder.tempdir_in(outer).map(Self)
    }

    /// Returns the variable that names the directory.
    pub(crate) fn variable(&self) -> io::Result<CString> {
        let path = self.path().as_os_str().as_bytes();
        Ok(CString::new([VARIABLE, path].concat())?)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Whether this is a directory in `outer`, and still exists.
    pub(crate) fn is_in(&self, outer: &Path) -> bool {
        self.path().parent() == Some(outer) && self.path().is_dir()
    }

    /// Removes everything in the directory. Returns `None` if that doesn't succeed.
    pub(crate) fn emptied(self) -> Option<Self> {
        let is_empty = || Some(fs::read_dir(self.path()).ok()?.next().is_none());
        if is_empty()? {
            return Some(self);
        }
        // The program may have left directories that can't be listed.
        make_listable(self.path());
        None
    }

    /// Leaves the directory to processes that go on.
    pub(crate) fn keep(self) {
        let _ = self.0.keep();
    }
}

fn make_listable(directory: &Path) {
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        // This type isn't that of what a link leads to.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_listable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_listed_is_removed_too() {
        let outer = tempfile::tempdir().unwrap();
        let text = |text: String| CString::new(text).unwrap();
        let other = text("A=b".to_owned());
        let variable = text(format!("TMPDIR={}", outer.path().display()));
        let mut env = vec![variable, other.clone()];
        let found = PrivateTempDir::take_outer(&mut env);
        assert_eq!((&*found, env), (outer.path(), vec![other]));
        let directory = PrivateTempDir::create(&found).unwrap().emptied().unwrap();
        let closed = directory.path().join("a/closed");
        fs::create_dir_all(closed.join("b")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        assert!(directory.emptied().is_none());
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
