//! Opens the file of a log: only a regular file, and for writing only by one toolq at a time.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::LogError;
use crate::open::sessions::blob_dir_for;
use crate::write::is_file_at;
use toolq_core::os::create_private_dir;

/// How often to try again if the file was replaced between opening and locking it.
const MAX_OPEN_ATTEMPTS: u32 = 5;
/// How long to wait for the lock. A run that is alive holds it for much longer. Of one that was killed, the reapers hold it until
/// its programs are gone: those get up to 2 s to end by themselves.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts to get the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Opens the file, or creates it so that only its owner can read it, and locks it until it is closed. Rejects links,
/// devices and pipes without blocking on them.
pub(crate) fn open_and_lock(path: &Path) -> Result<File, LogError> {
    check_blob_dir(path)?;
    for _ in 0..MAX_OPEN_ATTEMPTS {
        let file = open_to_write(path)?;
        lock_file(&file, path)?;
        // The file may have been replaced before it was locked. From now on, that would be noticed.
        let metadata = file.metadata().map_err(|source| open_error(path, source))?;
        if !is_file_at(&metadata, path) {
            continue;
        }
        if metadata.len() == 0 {
            let chmod = file.set_permissions(Permissions::from_mode(0o600));
            chmod.map_err(|source| open_error(path, source))?;
        }
        return Ok(file);
    }
    Err(LogError::InUse(path.to_owned()))
}

/// Waits a moment if the lock is held: a toolq that was killed between fork and exec leaves a child that keeps its
/// files open, and with them the lock, until the exec.
fn lock_file(file: &File, path: &Path) -> Result<(), LogError> {
    let waiting_since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if waiting_since.elapsed() < LOCK_TIMEOUT => {
                sleep(LOCK_POLL_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(open_error(path, source)),
        }
    }
}

/// Locks a log unless a run holds the lock. Returns whether it is locked and `path` still leads to it: before the lock,
/// another process may have removed it and begun a log of its own there.
pub(crate) fn try_lock_current(file: &File, path: &Path) -> Result<bool, LogError> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(source)) => return Err(lock_error(path, source)),
    }
    let metadata = file.metadata().map_err(|source| lock_error(path, source))?;
    Ok(is_file_at(&metadata, path))
}

/// Opens an existing log for reading. Follows links, and accepts any regular file that the user may read.
pub(crate) fn open_to_read(path: &Path) -> Result<File, LogError> {
    let file = open_existing(path, OFlags::empty()).map_err(|errno| match errno {
        Errno::LOOP => open_error(path, errno.into()),
        _ => error_from_errno(path, errno),
    })?;
    require_regular_file(path, file).map(|(file, _)| file)
}

/// Opens an existing log that is about to be continued or removed. The file has to meet the conditions of
/// [`open_and_lock`], but isn't locked.
pub(crate) fn open_owned(path: &Path) -> Result<File, LogError> {
    let file = open_existing(path, OFlags::NOFOLLOW);
    require_owned_file(path, file.map_err(|errno| error_from_errno(path, errno))?)
}

fn open_existing(path: &Path, extra_flags: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(path, flags | extra_flags, Mode::empty()).map(File::from)
}

/// Rejects a log whose blob directory can't be used. If this were only noticed when the first blob is stored, calls
/// would already have run.
fn check_blob_dir(log: &Path) -> Result<(), LogError> {
    let dir = blob_dir_for(log);
    let problem = match fs::symlink_metadata(&dir) {
        Ok(metadata) if metadata.is_symlink() => "is a symbolic link",
        Ok(metadata) if !metadata.is_dir() => "isn't a directory",
        Ok(metadata) if !is_owned_by_user(&metadata) => "belongs to another user",
        // A missing directory can be created. If it can't be inspected, neither can the log, and opening that fails.
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(LogError::InvalidBlobDir { dir, problem })
}

fn open_to_write(path: &Path) -> Result<File, LogError> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let file = file.map_err(|errno| match errno {
        Errno::NOENT => LogError::NoParentDir(path.to_owned()),
        _ => error_from_errno(path, errno),
    })?;
    require_owned_file(path, file.into())
}

/// Rejects anything but a regular file of this user.
fn require_owned_file(path: &Path, file: File) -> Result<File, LogError> {
    let (file, metadata) = require_regular_file(path, file)?;
    if !is_owned_by_user(&metadata) {
        return Err(LogError::ForeignOwner(path.to_owned()));
    }
    Ok(file)
}

fn require_regular_file(path: &Path, file: File) -> Result<(File, Metadata), LogError> {
    let metadata = file.metadata().map_err(|source| open_error(path, source))?;
    if !metadata.is_file() {
        return Err(LogError::NotRegularFile(path.to_owned()));
    }
    Ok((file, metadata))
}

fn is_owned_by_user(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Creates the parent directories of a log in the default location, with access for their owner only.
pub(crate) fn create_parent_dir(log: &Path) -> Result<(), LogError> {
    let Some(dir) = log.parent().filter(|dir| !dir.is_dir()) else {
        return Ok(());
    };
    create_private_dir(dir).map_err(|source| LogError::Io {
        path: log.to_owned(),
        action: "created",
        source,
    })
}

fn open_error(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        action: "opened",
        source,
    }
}

fn lock_error(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        action: "locked",
        source,
    }
}

fn error_from_errno(path: &Path, errno: Errno) -> LogError {
    let path = path.to_owned();
    match errno {
        Errno::LOOP => LogError::Symlink(path),
        Errno::NOENT => LogError::NotFound(path),
        Errno::ISDIR | Errno::NXIO => LogError::NotRegularFile(path),
        _ => LogError::Io {
            path,
            action: "opened",
            source: errno.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tempfile::TempDir;

    /// Pruning opens a log before it locks it. In between, another process may remove it, and a run begin one.
    #[test]
    fn a_log_that_was_replaced_before_it_was_locked_is_not_taken_for_the_new_one() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("log.jsonl");
        fs::write(&path, "old").unwrap();
        let opened = open_owned(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let run = open_and_lock(&path).unwrap();
        assert!(!try_lock_current(&opened, &path).unwrap());
        let opened = open_owned(&path).unwrap();
        assert!(!try_lock_current(&opened, &path).unwrap());
        drop(run);
        assert!(try_lock_current(&opened, &path).unwrap());
    }
}
