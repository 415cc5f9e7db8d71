//! The temporary directory of a confined program.

use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

const VARIABLE: &[u8] = b"TMPDIR=";

/// A directory that only one call has, in the directory that `TMPDIR` named.
#[derive(Debug)]
pub(crate) struct PrivateTempDir(TempDir);

impl PrivateTempDir {
    /// Creates the directory, and has `TMPDIR` in `env` name it.
    ///
    /// # Errors
    /// The directory can't be created.
    pub(crate) fn create(env: &mut Vec<CString>) -> io::Result<Self> {
        let is_variable = |variable: &CString| variable.as_bytes().starts_with(VARIABLE);
        let outer = env.iter().find(|variable| is_variable(variable));
        let outer = outer.map(|variable| OsStr::from_bytes(&variable.as_bytes()[VARIABLE.len()..]));
        let outer = outer.map(Path::new).filter(|outer| outer.is_absolute());
        let directory = tempfile::Builder::new()
            .prefix("call-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(outer.unwrap_or(Path::new("/tmp")))?;
        env.retain(|variable| !is_variable(variable));
        let path = directory.path().as_os_str().as_bytes();
        env.push(CString::new([VARIABLE, path].concat())?);
        Ok(Self(directory))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes the directory and everything in it.
    pub(crate) fn remove(self) {
        let path = self.0.keep();
        if fs::remove_dir_all(&path).is_err() {
            // The program may have left directories that can't be listed.
            make_listable(&path);
            let _ = fs::remove_dir_all(&path);
        }
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
        let mut env = vec![
            text(format!("TMPDIR={}", outer.path().display())),
            text("A=b".to_owned()),
        ];
        let directory = PrivateTempDir::create(&mut env).unwrap();
        let expected = text(format!("TMPDIR={}", directory.path().display()));
        assert_eq!(env, [text("A=b".to_owned()), expected]);
        let closed = directory.path().join("a/closed");
        fs::create_dir_all(closed.join("b")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0)).unwrap();
        directory.remove();
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
