use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::LogError;

/// The file of a log, locked for as long as it is open: only the end of it is ever written.
pub(super) struct LogFile {
    file: File,
    /// Bytes of whole records.
    len: u64,
}

impl LogFile {
    /// Opens or makes the file, readable by its owner only, and locks it. A link, a device or a pipe is refused, and
    /// waits for nobody.
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| refusal(path, errno))?;
        let file = File::from(file);
        check(path, &file)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(opening(path, source)),
        }
        // Its length counts only now that nobody else can add to it.
        let metadata = file.metadata();
        let len = metadata.map_err(|source| opening(path, source))?.len();
        Ok(Self { file, len })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Adds a line by one write. What a full disk left of it is taken away again.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let written = loop {
            match self.file.write(line) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => break written?,
            }
        };
        if written < line.len() {
            self.file.set_len(self.len)?;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.len += written as u64;
        Ok(())
    }
}

/// Makes the folder of the default place, and those above it, for its owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), LogError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| LogError::Io {
        path: path.to_owned(),
        doing: "created",
        source,
    })
}

/// Opens a log for reading, under the same conditions, and makes none.
pub(super) fn open_to_read(path: &Path) -> Result<File, LogError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => LogError::Missing(path.to_owned()),
        _ => refusal(path, errno),
    })?;
    let file = File::from(file);
    check(path, &file)?;
    Ok(file)
}

/// Refuses what is no file of this user.
fn check(path: &Path, file: &File) -> Result<(), LogError> {
    let metadata = file.metadata().map_err(|source| opening(path, source))?;
    if !metadata.is_file() {
        return Err(LogError::NotAFile(path.to_owned()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(LogError::Foreign(path.to_owned()));
    }
    Ok(())
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
        Errno::NOENT => LogError::NoFolder(path),
        Errno::ISDIR | Errno::NXIO => LogError::NotAFile(path),
        _ => LogError::Io {
            path,
            doing: "opened",
            source: errno.into(),
        },
    }
}
