//! Opening the file of a log: only what can be one, and only by one toolq at a time.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::LogError;
use crate::open::paths::folder_of;
use crate::write::is_at;
use toolq_core::os::make_private_folder;

/// How often a file is opened that is another when it is locked.
const ATTEMPTS: u32 = 5;
/// How long a lock is waited for, which whoever is alive keeps for much longer.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// Opens or makes the file, readable by its owner only, and locks it for as long as it is open. A link, a device or a
/// pipe is refused, and waits for nobody.
pub(crate) fn claim(path: &Path) -> Result<File, LogError> {
    check_bodies(path)?;
    for _ in 0..ATTEMPTS {
        let file = open_to_write(path)?;
        lock(&file, path)?;
        // Only now can nobody put another file in its place without being noticed.
        let metadata = file.metadata().map_err(|source| opening(path, source))?;
        if !is_at(&metadata, path) {
            continue;
        }
        if metadata.len() == 0 {
            let private = file.set_permissions(Permissions::from_mode(0o600));
            private.map_err(|source| opening(path, source))?;
        }
        return Ok(file);
    }
    Err(LogError::InUse(path.to_owned()))
}

/// A toolq that was killed while it started a process leaves one that has its files until it becomes another program.
fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => sleep(LOOK),
            Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(opening(path, source)),
        }
    }
}

/// Opens a log to look at it, and makes none: whichever file the system lets one read, also behind a link.
pub(crate) fn open_to_read(path: &Path) -> Result<File, LogError> {
    let file = open_existing(path, OFlags::empty()).map_err(|errno| match errno {
        Errno::LOOP => opening(path, errno.into()),
        _ => refusal(path, errno),
    })?;
    regular(path, file).map(|(file, _)| file)
}

/// Opens a log that is about to be continued or removed, under the conditions of [`claim`], and makes none.
pub(crate) fn open_own(path: &Path) -> Result<File, LogError> {
    let file = open_existing(path, OFlags::NOFOLLOW);
    checked(path, file.map_err(|errno| refusal(path, errno))?)
}

fn open_existing(path: &Path, more: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(path, flags | more, Mode::empty()).map(File::from)
}

/// Refuses a log whose folder of bodies can't be one: found out when the first large body comes, something has run.
fn check_bodies(log: &Path) -> Result<(), LogError> {
    let folder = folder_of(log);
    let wrong = match fs::symlink_metadata(&folder) {
        Ok(found) if found.is_symlink() => "is a symbolic link",
        Ok(found) if !found.is_dir() => "is no folder",
        Ok(found) if !is_own(&found) => "belongs to another user",
        // What is not there can be made. What can't be looked at hides the log, too, whose opening says so.
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(LogError::Bodies { folder, wrong })
}

fn open_to_write(path: &Path) -> Result<File, LogError> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let file = file.map_err(|errno| match errno {
        Errno::NOENT => LogError::NoFolder(path.to_owned()),
        _ => refusal(path, errno),
    })?;
    checked(path, file.into())
}

/// Refuses what is no file of this user.
fn checked(path: &Path, file: File) -> Result<File, LogError> {
    let (file, metadata) = regular(path, file)?;
    if !is_own(&metadata) {
        return Err(LogError::Foreign(path.to_owned()));
    }
    Ok(file)
}

fn regular(path: &Path, file: File) -> Result<(File, Metadata), LogError> {
    let metadata = file.metadata().map_err(|source| opening(path, source))?;
    if !metadata.is_file() {
        return Err(LogError::NotAFile(path.to_owned()));
    }
    Ok((file, metadata))
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Makes the folder of the default place, and those above it, for its owner only.
pub(crate) fn make_folder(path: &Path) -> Result<(), LogError> {
    let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) else {
        return Ok(());
    };
    make_private_folder(folder).map_err(|source| LogError::Io {
        path: path.to_owned(),
        doing: "created",
        source,
    })
}

fn opening(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        doing: "opened",
        source,
    }
}

fn refusal(path: &Path, errno: Errno) -> LogError {
    let path = path.to_owned();
    match errno {
        Errno::LOOP => LogError::Link(path),
        Errno::NOENT => LogError::Missing(path),
        Errno::ISDIR | Errno::NXIO => LogError::NotAFile(path),
        _ => LogError::Io {
            path,
            doing: "opened",
            source: errno.into(),
        },
    }
}
