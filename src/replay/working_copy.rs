//! A throw-away copy of `root`, so that calls with side effects can run during a replay.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::replay::tree_copy::{TreeCopyError, copy_tree};
use crate::replay::tree_removal::{remove_contents, remove_tree};

/// A copy of a directory, with everything in it: `.git`, untracked files, and files that git ignores.
///
/// It is removed when it is dropped, unless it is to be kept.
#[derive(Debug)]
pub struct WorkingCopy {
    original: PathBuf,
    base: TempDir,
    /// The directories for temporary files that are replaced by private ones, which are numbered in this order.
    temp_dirs: Vec<PathBuf>,
    /// Whether copies are kept, and how many have been.
    kept: Option<usize>,
    state: CopyState,
    unreadable: Vec<PathBuf>,
}

/// How a copy compares to the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    /// It isn't filled yet, or only in part.
    Incomplete,
    /// It is as it was made.
    Fresh,
    /// Something may have changed it since.
    Used,
}

impl WorkingCopy {
    /// Creates an empty copy of `original` in the first of `places` that is on the same file system, so that files can
    /// share their storage, or else in the first place. Where calls run, private directories take the place of
    /// `temp_dirs`.
    ///
    /// # Errors
    /// A directory can't be created.
    pub fn new(
        original: &Path,
        places: &[PathBuf],
        temp_dirs: &[PathBuf],
        keep: bool,
    ) -> io::Result<Self> {
        // Paths in messages and mounts are absolute.
        let original = original.canonicalize()?;
        let device = original.metadata()?.dev();
        let is_near = |place: &&PathBuf| {
            fs::create_dir_all(place).is_ok()
                && place
                    .metadata()
                    .is_ok_and(|metadata| metadata.dev() == device)
        };
        let place = places.iter().find(is_near).or(places.first());
        let place = place.ok_or(io::ErrorKind::NotFound)?;
        let base = tempfile::Builder::new()
            .prefix("toolq-copy-")
            .tempdir_in(place)?;
        let copy = Self {
            original,
            base,
            temp_dirs: temp_dirs.to_vec(),
            kept: keep.then_some(0),
            state: CopyState::Incomplete,
            unreadable: Vec::new(),
        };
        fs::create_dir(copy.path())?;
        fs::create_dir(copy.scratch_dir())?;
        Ok(copy)
    }

    /// Returns the directory with the copy.
    pub fn path(&self) -> PathBuf {
        self.base.path().join("copy")
    }

    /// Returns a directory for private temporary directories.
    pub fn scratch_dir(&self) -> PathBuf {
        self.base.path().join("scratch")
    }

    /// Returns what couldn't be read, and so isn't in the copy.
    pub fn unreadable(&self) -> &[PathBuf] {
        &self.unreadable
    }

    /// Notes that something may have changed the copy.
    pub fn mark_used(&mut self) {
        self.state = CopyState::Used;
    }

    /// Makes the copy equal to the original again.
    ///
    /// # Errors
    /// A file can't be copied or removed, or `is_stopped` returned true.
    pub fn refresh(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), TreeCopyError> {
        if self.state == CopyState::Fresh {
            return Ok(());
        }
        self.state = CopyState::Incomplete;
        let emptied = remove_contents(&self.path(), &[]).and_then(|()| self.empty_temp_dirs());
        emptied.map_err(TreeCopyError::at(self.base.path()))?;
        self.unreadable = copy_tree(&self.original, &self.path(), self.base.path(), is_stopped)?;
        self.state = CopyState::Fresh;
        Ok(())
    }

    /// Empties the private temporary directories, except for places where something is mounted.
    fn empty_temp_dirs(&self) -> io::Result<()> {
        let private =
            (0..self.temp_dirs.len()).map(|number| self.scratch_dir().join(number.to_string()));
        remove_contents(&self.scratch_dir(), &private.collect::<Vec<_>>())?;
        for (number, directory) in self.temp_dirs.iter().enumerate() {
            let scratch = self.scratch_dir().join(number.to_string());
            let mounted = self.temp_dirs.iter().chain([&self.original]);
            let mounted = mounted.filter(|place| *place != directory);
            let mounted: Vec<PathBuf> = mounted
                .filter_map(|place| Some(scratch.join(place.strip_prefix(directory).ok()?)))
                .collect();
            if scratch.exists() {
                remove_contents(&scratch, &mounted)?;
                fs::set_permissions(&scratch, Permissions::from_mode(0o1777))?;
            }
        }
        Ok(())
    }

    /// Moves the copy out of the way if copies are kept, and returns where it is now. Only a used copy is kept.
    ///
    /// # Errors
    /// It can't be moved.
    pub fn keep_used(&mut self) -> io::Result<Option<PathBuf>> {
        let is_used = self.state == CopyState::Used;
        let Some(count) = self.kept.as_mut().filter(|_| is_used) else {
            return Ok(None);
        };
        *count += 1;
        // It outlives this value, however that ends.
        self.base.disable_cleanup(true);
        let place = self.base.path().join(format!("recording-{count}"));
        fs::create_dir(&place)?;
        let copy = self.path();
        let permissions = copy.metadata()?.permissions();
        // The directory itself stays, because it is mounted where calls run.
        fs::set_permissions(&copy, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&copy)? {
            let entry = entry?;
            fs::rename(entry.path(), place.join(entry.file_name()))?;
        }
        fs::set_permissions(&place, permissions)?;
        self.state = CopyState::Incomplete;
        Ok(Some(place))
    }

    /// Removes everything except copies that are kept.
    ///
    /// # Errors
    /// A file can't be removed.
    pub fn remove(self) -> io::Result<()> {
        self.remove_unkept()
    }

    fn remove_unkept(&self) -> io::Result<()> {
        if self.kept.is_some_and(|count| count > 0) {
            remove_tree(&self.path())?;
            return remove_tree(&self.scratch_dir());
        }
        remove_tree(self.base.path())
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        // What can't be removed now, can't be removed by the directory's own drop, either.
        let _ = self.remove_unkept();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn working_copy(original: &Path, place: &TempDir) -> WorkingCopy {
        let places = [place.path().to_owned()];
        let mut copy = WorkingCopy::new(original, &places, &[], false).unwrap();
        copy.refresh(&|| false).unwrap();
        copy
    }

    #[test]
    fn only_a_used_copy_is_made_again() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(original.path().join("x"), "1").unwrap();
        let mut copy = working_copy(original.path(), &place);
        let identity = |copy: &WorkingCopy| {
            let file = copy.path().join("x");
            (
                fs::metadata(&file).unwrap().ino(),
                fs::read_to_string(file).unwrap(),
            )
        };
        let first = identity(&copy);
        copy.refresh(&|| false).unwrap();
        assert_eq!(identity(&copy), first);
        copy.mark_used();
        fs::write(copy.path().join("x"), "2").unwrap();
        fs::write(copy.path().join("y"), "2").unwrap();
        copy.refresh(&|| false).unwrap();
        assert_eq!(identity(&copy).1, "1");
        assert!(!copy.path().join("y").exists());
        copy.mark_used();
        let stopped = copy.refresh(&|| true).unwrap_err();
        assert!(matches!(stopped, TreeCopyError::Stopped), "{stopped}");
        copy.remove().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    /// A panic drops the copy, too.
    #[test]
    fn a_kept_copy_outlives_the_value_that_made_it() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(original.path().join("x"), "1").unwrap();
        let places = [place.path().to_owned()];
        let mut copy = WorkingCopy::new(original.path(), &places, &[], true).unwrap();
        copy.refresh(&|| false).unwrap();
        assert_eq!(copy.keep_used().unwrap(), None, "nothing has run on it");
        copy.mark_used();
        let kept = copy.keep_used().unwrap().unwrap();
        copy.refresh(&|| false).unwrap();
        let (path, scratch_dir) = (copy.path(), copy.scratch_dir());
        drop(copy);
        assert_eq!(fs::read_to_string(kept.join("x")).unwrap(), "1");
        assert!(!path.exists() && !scratch_dir.exists());
    }

    /// The copy may lie inside the original, as with TMPDIR=./tmp. It doesn't contain itself.
    #[test]
    fn a_copy_inside_the_original_ends() {
        let original = TempDir::new().unwrap();
        let place = TempDir::new_in(original.path()).unwrap();
        let copy = working_copy(original.path(), &place);
        let name = place.path().file_name().unwrap();
        let inner = fs::read_dir(copy.path().join(name)).unwrap();
        assert_eq!(inner.count(), 0);
    }
}
