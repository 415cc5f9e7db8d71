//! A throw-away copy of `root`, so that calls with side effects can run during a replay.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, ioctl_ficlone};
use rustix::process::geteuid;
use tempfile::TempDir;

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
    /// Whether nothing has run on the copy since it was made.
    is_unused: bool,
    unreadable: Vec<PathBuf>,
}

/// The unit in which a file's space is counted.
const BLOCK_BYTES: u64 = 512;

/// Copies one directory.
struct TreeCopier<'a> {
    /// The directory that contains the copy. It may lie inside the original, and isn't copied.
    base: (u64, u64),
    is_stopped: &'a dyn Fn() -> bool,
    /// Files and directories that this user can't read. They aren't copied.
    unreadable: Vec<PathBuf>,
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
        // Paths in messages and mounts are absolute.
        let copy = Self {
            original,
            base,
            temp_dirs: temp_dirs.to_vec(),
            kept: keep.then_some(0),
            is_unused: false,
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
        self.is_unused = false;
    }

    /// Makes the copy equal to the original again.
    ///
    /// # Errors
    /// A file can't be copied or removed, or `is_stopped` returned true.
    pub fn refresh(&mut self, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        if self.is_unused {
            return Ok(());
        }
        remove_contents(&self.path(), &[])?;
        self.empty_temp_dirs()?;
        let base = self.base.path().metadata()?;
        let mut copier = TreeCopier {
            base: (base.dev(), base.ino()),
            is_stopped,
            unreadable: Vec::new(),
        };
        let root = self.original.metadata()?;
        copier.copy_contents(&self.original, &self.path())?;
        copy_attributes(&root, &self.path())?;
        self.unreadable = copier.unreadable;
        self.is_unused = true;
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

    /// Moves the copy out of the way if copies are kept, and returns where it is now. An unused copy isn't kept.
    ///
    /// # Errors
    /// It can't be moved.
    pub fn keep_used(&mut self) -> io::Result<Option<PathBuf>> {
        let Some(count) = self.kept.as_mut().filter(|_| !self.is_unused) else {
            return Ok(None);
        };
        *count += 1;
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
        Ok(Some(place))
    }

    /// Removes everything except copies that are kept.
    ///
    /// # Errors
    /// A file can't be removed.
    pub fn remove(mut self) -> io::Result<()> {
        if self.kept.is_some_and(|count| count > 0) {
            self.base.disable_cleanup(true);
            remove_tree(&self.path())?;
            return remove_tree(&self.scratch_dir());
        }
        remove_tree(self.base.path())
    }
}

impl TreeCopier<'_> {
    fn copy_contents(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let Some(entries) = self.readable(from, fs::read_dir(from))? else {
            return Ok(());
        };
        for entry in entries {
            if (self.is_stopped)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if let Some(metadata) = self.readable(&from, entry.metadata())? {
                self.copy_entry(&from, &metadata, &to)
                    .map_err(|error| io::Error::new(error.kind(), describe(&from, &error)))?;
            }
        }
        Ok(())
    }

    fn copy_entry(&mut self, from: &Path, metadata: &Metadata, to: &Path) -> io::Result<()> {
        let kind = metadata.file_type();
        if kind.is_dir() {
            if (metadata.dev(), metadata.ino()) == self.base {
                return Ok(());
            }
            fs::create_dir(to)?;
            self.copy_contents(from, to)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else if kind.is_fifo() {
            rustix::fs::mknodat(CWD, to, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        } else if kind.is_file() {
            let Some(source) = self.readable(from, File::open(from))? else {
                return Ok(());
            };
            copy_file(&source, to)?;
        } else {
            // What serves a socket or a device would be shared with the original.
            return Ok(());
        }
        copy_attributes(metadata, to)
    }

    /// Returns what was opened, or `None` for what this user can't read, or was removed in the meantime.
    fn readable<T>(&mut self, path: &Path, opened: io::Result<T>) -> io::Result<Option<T>> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unreadable.push(path.to_owned());
                Ok(None)
            }
            Err(error) => Err(io::Error::new(error.kind(), describe(path, &error))),
        }
    }
}

fn describe(path: &Path, error: &io::Error) -> String {
    let message = error.to_string();
    if message.contains('/') {
        // It already names the file, which is further down.
        return message;
    }
    format!("{}: {message}", path.display())
}

/// Copies the content of a file. On file systems that support it, both share their storage until one of them changes.
fn copy_file(source: &File, to: &Path) -> io::Result<()> {
    let target = File::create_new(to)?;
    if ioctl_ficlone(&target, source).is_ok() {
        return Ok(());
    }
    let metadata = source.metadata()?;
    if metadata.blocks().saturating_mul(BLOCK_BYTES) >= metadata.len() {
        return io::copy(&mut &*source, &mut &target).map(drop);
    }
    target.set_len(metadata.len())?;
    copy_data(source, &target)
}

/// Copies the parts of a sparse file that have data. The holes, which may be larger than the disk, stay holes.
fn copy_data(mut source: &File, mut target: &File) -> io::Result<()> {
    let mut end = 0;
    loop {
        let start = match rustix::fs::seek(source, rustix::fs::SeekFrom::Data(end)) {
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            start => start?,
        };
        end = rustix::fs::seek(source, rustix::fs::SeekFrom::Hole(start))?;
        source.seek(SeekFrom::Start(start))?;
        target.seek(SeekFrom::Start(start))?;
        io::copy(&mut source.take(end - start), &mut target)?;
    }
}

/// Copies the owner, permissions and times. The times matter to `make` and `git status`.
fn copy_attributes(metadata: &Metadata, to: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    if !metadata.is_symlink() {
        fs::set_permissions(to, metadata.permissions())?;
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(metadata.atime(), metadata.atime_nsec()),
        last_modification: time(metadata.mtime(), metadata.mtime_nsec()),
    };
    Ok(rustix::fs::utimensat(
        CWD,
        to,
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        if self.kept.is_none_or(|count| count == 0) {
            // What can't be removed now, can't be removed by the directory's own drop, either.
            let _ = remove_tree(self.base.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn working_copy(original: &Path, place: &TempDir, keep: bool) -> WorkingCopy {
        let places = [place.path().to_owned()];
        let mut copy = WorkingCopy::new(original, &places, &[], keep).unwrap();
        copy.refresh(&|| false).unwrap();
        copy
    }

    #[test]
    fn a_copy_has_all_kinds_of_files_with_their_attributes() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let at = |name: &str| original.path().join(name);
        fs::create_dir_all(at("a/.hidden")).unwrap();
        fs::write(at("a/.hidden/x"), "x").unwrap();
        fs::set_permissions(at("a/.hidden/x"), Permissions::from_mode(0o751)).unwrap();
        fs::set_permissions(at("a"), Permissions::from_mode(0o555)).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let copy = working_copy(original.path(), &place, false);
        let in_copy = |name: &str| copy.path().join(name);
        assert_eq!(fs::read_to_string(in_copy("a/.hidden/x")).unwrap(), "x");
        for name in ["", "a", "a/.hidden/x", "broken", "pipe"] {
            let metadata = |path: PathBuf| path.symlink_metadata().unwrap();
            let (old, new) = (metadata(at(name)), metadata(in_copy(name)));
            assert_eq!(old.mtime_nsec(), new.mtime_nsec(), "{name}");
            assert_eq!(old.file_type(), new.file_type(), "{name}");
            if name != "pipe" {
                assert_eq!(old.mode(), new.mode(), "{name}");
            }
        }
        assert!(!in_copy("socket").exists());
        copy.remove().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        remove_tree(original.path()).unwrap();
    }

    /// A file can be larger than the disk.
    #[test]
    fn the_holes_of_a_file_take_no_space() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let source = File::create(original.path().join("sparse")).unwrap();
        let bytes: [(u64, &[u8]); 3] =
            [(0, b"begin"), (1 << 20, b"middle"), ((1 << 32) - 3, b"end")];
        for (place, text) in bytes {
            std::os::unix::fs::FileExt::write_all_at(&source, text, place).unwrap();
        }
        let copy = working_copy(original.path(), &place, false);
        let copied = File::open(copy.path().join("sparse")).unwrap();
        assert_eq!(copied.metadata().unwrap().len(), 1 << 32);
        for (place, text) in bytes {
            let mut found = vec![0; text.len()];
            std::os::unix::fs::FileExt::read_exact_at(&copied, &mut found, place).unwrap();
            assert_eq!(found, text);
        }
        if source.metadata().unwrap().blocks() < 1 << 12 {
            assert!(copied.metadata().unwrap().blocks() < 1 << 12);
        }
    }

    #[test]
    fn only_a_used_copy_is_made_again() {
        let (original, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(original.path().join("x"), "1").unwrap();
        let mut copy = working_copy(original.path(), &place, false);
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
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }

    /// The copy may lie inside the original, as with TMPDIR=./tmp. It doesn't contain itself.
    #[test]
    fn a_copy_inside_the_original_ends() {
        let original = TempDir::new().unwrap();
        let place = TempDir::new_in(original.path()).unwrap();
        let copy = working_copy(original.path(), &place, false);
        let name = place.path().file_name().unwrap();
        let inner = fs::read_dir(copy.path().join(name)).unwrap();
        assert_eq!(inner.count(), 0);
    }
}
