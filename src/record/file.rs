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
        let opening = |source| LogError::Io {
            path: path.to_owned(),
            doing: "opened",
            source,
        };
        let metadata = file.metadata().map_err(opening)?;
        if !metadata.is_file() {
            return Err(LogError::NotAFile(path.to_owned()));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(LogError::Foreign(path.to_owned()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(opening(source)),
        }
        // Its length counts only now that nobody else can add to it.
        let len = file.metadata().map_err(opening)?.len();
        Ok(Self { file, len })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn len(&self) -> u64 {
        self.len
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
