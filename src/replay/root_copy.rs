//! A throw-away copy of `root`, on which the calls of one recording after the other run.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::replay::tree_copy::{TreeCopyError, copy_tree};

/// Where a directory is copied to, with everything in it: `.git`, untracked files, and files that git ignores.
///
/// All of it is removed when this is dropped, unless a copy has been kept.
#[derive(Debug)]
pub struct RootCopy {
    original: PathBuf,
    base: TempDir,
    /// Whether copies are kept, and how many have been.
    kept: Option<usize>,
}

impl RootCopy {
    /// Prepares a place for copies of `original` in the directory `place`.
    ///
    /// # Errors
    /// A directory can't be created.
    pub fn new(original: &Path, place: &Path, keep: bool) -> io::Result<Self> {
        fs::create_dir_all(place)?;
        let base = tempfile::Builder::new()
            .prefix("toolq-copy-")
            .tempdir_in(place.canonicalize()?)?;
        Ok(Self {
            original: original.to_owned(),
            base,
            kept: keep.then_some(0),
        })
    }

    /// Returns the path of the copy, which is the same for each recording.
    pub fn path(&self) -> PathBuf {
        self.base.path().join("copy")
    }

    /// Makes the copy for a recording. Returns what couldn't be read, and so isn't in it.
    ///
    /// # Errors
    /// A file can't be copied, or `is_stopped` returned true.
    pub fn make(&self, is_stopped: &dyn Fn() -> bool) -> Result<Vec<PathBuf>, TreeCopyError> {
        let copy = self.path();
        fs::create_dir(&copy).map_err(TreeCopyError::at(&copy))?;
        copy_tree(&self.original, &copy, self.base.path(), is_stopped)
    }

    /// Moves the copy of a recording out of the way of the next one, and returns where it is now; or removes it if copies
    /// aren't kept.
    ///
    /// # Errors
    /// It can't be moved or removed.
    pub fn end_recording(&mut self) -> io::Result<Option<PathBuf>> {
        let copy = self.path();
        let Some(count) = &mut self.kept else {
            return remove_tree(&copy).map(|()| None);
        };
        *count += 1;
        let place = self.base.path().join(format!("recording-{count}"));
        fs::rename(copy, &place)?;
        // It outlives this value, however that ends.
        self.base.disable_cleanup(true);
        Ok(Some(place))
    }

    /// Removes everything except copies that are kept.
    ///
    /// # Errors
    /// A file can't be removed.
    pub fn remove(self) -> io::Result<()> {
        if self.kept.is_some_and(|count| count > 0) {
            return remove_tree(&self.path());
        }
        remove_tree(self.base.path())
    }
}

/// Removes a directory if it is there, also with directories in it that calls have made unreadable or unwritable.
fn remove_tree(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_removable(directory)?;
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a directory and those in it readable and writable, but never what a link leads to.
fn make_removable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_removable(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_copy_is_as_the_original_is() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(original.path().join("x"), "1").unwrap();
        let mut copy = RootCopy::new(original.path(), place.path(), false).unwrap();
        for _ in 0..2 {
            copy.make(&|| false).unwrap();
            assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 1);
            assert_eq!(fs::read_to_string(copy.path().join("x")).unwrap(), "1");
            fs::write(copy.path().join("x"), "2").unwrap();
            fs::write(copy.path().join("y"), "2").unwrap();
            assert_eq!(copy.end_recording().unwrap(), None);
        }
        let stopped = copy.make(&|| true).unwrap_err();
        assert!(matches!(stopped, TreeCopyError::Stopped));
        copy.remove().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn kept_copies_outlive_the_value() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut copy = RootCopy::new(original.path(), place.path(), true).unwrap();
        copy.make(&|| false).unwrap();
        let kept = copy.end_recording().unwrap().unwrap();
        copy.make(&|| false).unwrap();
        let path = copy.path();
        copy.remove().unwrap();
        assert!(kept.exists() && !path.exists());
    }

    /// Otherwise, a call could choose what becomes removable after it.
    #[test]
    fn closed_directories_are_removed_and_links_are_not_followed() {
        let (dir, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let at = |name: &str| dir.path().join(name);
        fs::write(outside.path().join("file"), "").unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(at("copy/closed/inner")).unwrap();
        symlink(outside.path(), at("copy/link")).unwrap();
        fs::set_permissions(at("copy/closed"), Permissions::from_mode(0o000)).unwrap();
        make_removable(&at("copy")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&at("copy/closed")), 0o700);
        assert_eq!(mode(outside.path()), 0o755);
        remove_tree(&at("copy")).unwrap();
        assert!(!at("copy").exists() && outside.path().join("file").exists());
    }

    #[test]
    fn a_copy_inside_of_the_original_does_not_contain_itself() {
        let original = TempDir::new().unwrap();
        fs::write(original.path().join("x"), "1").unwrap();
        let copy = RootCopy::new(original.path(), &original.path().join("tmp"), false).unwrap();
        copy.make(&|| false).unwrap();
        let copied = fs::read_dir(copy.path().join("tmp")).unwrap();
        assert_eq!(copied.count(), 0);
    }
}
