//! The temporary directory of a confined program.

use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

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

    /// Removes the directory and everything in it, which the program may have made unlistable.
    fn remove(self) {
        make_listable(self.path());
        drop(self);
    }

    /// Leaves the directory to processes that continue to run.
    pub(crate) fn keep(self) {
        let _ = self.0.keep();
    }
}

/// A thread that removes directories. Its reaper refuses itself what it refuses its programs, such as changing who may list
/// a directory; a thread that was started before does not.
#[derive(Debug)]
pub(crate) struct TempDirRemover {
    directories: Sender<PrivateTempDir>,
    removals: Receiver<()>,
}

impl TempDirRemover {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system is out of threads.
    pub(crate) fn start() -> io::Result<Self> {
        let (directories, waiting) = mpsc::channel::<PrivateTempDir>();
        let (done, removals) = mpsc::channel();
        std::thread::Builder::new()
            .name("temp-dir-remover".to_owned())
            .spawn(move || {
                for directory in waiting {
                    directory.remove();
                    if done.send(()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            directories,
            removals,
        })
    }

    /// Removes a directory and waits until it is gone: no other thread may be busy when the reaper starts a program.
    pub(crate) fn remove(&self, directory: PrivateTempDir) {
        if self.directories.send(directory).is_ok() {
            let _ = self.removals.recv();
        }
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
        let directory = PrivateTempDir::create(&found).unwrap();
        let closed = directory.path().join("a/closed");
        fs::create_dir_all(closed.join("b")).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        TempDirRemover::start().unwrap().remove(directory);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
