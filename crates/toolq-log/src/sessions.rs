//! Finds the logs in the default directory, and the files that belong to each.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::LogError;
use crate::records::{blob_dir_for, is_file_extension, is_sha256_hex};
use toolq_core::os::{Clock, Environment, create_private_dir};
use toolq_core::text::to_millis;

/// Returns the logs in `dir`, sorted by name, and so by time. Empty if the directory doesn't exist.
///
/// # Errors
/// The directory can't be read.
pub fn list_sessions(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    list_matching_files(dir, |name| name.ends_with(b".jsonl"))
}

/// Returns the files in `dir` to which torn ends of logs were copied.
///
/// # Errors
/// The directory can't be read.
pub fn list_torn_copies(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    list_matching_files(dir, |name| {
        let infix = b".jsonl.torn-";
        name.windows(infix.len()).any(|window| window == infix)
    })
}

/// Returns the entries of `dir` whose names are wanted, sorted. Empty if the directory doesn't exist.
pub(crate) fn list_matching_files(
    dir: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<Vec<PathBuf>, LogError> {
    let list_error = LogError::io(dir, "listed");
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(list_error)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(list_error)?;
        if is_wanted(entry.file_name().as_encoded_bytes()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the log in `dir` that was written last.
///
/// # Errors
/// The directory can't be read, or has no logs.
pub fn find_latest_session(dir: &Path) -> Result<PathBuf, LogError> {
    // Of several with the same time, the last by name wins.
    let latest = list_sessions(dir)?.into_iter().max_by_key(last_modified);
    latest.ok_or_else(|| LogError::NoSession(dir.to_owned()))
}

/// Returns whether `dir` has more than `max_bytes` in logs and the files next to them, or more than `max_files` of them.
/// Stops counting there, so that this takes little time even for a large directory. What can't be read counts as nothing.
pub fn exceeds_size(dir: &Path, max_bytes: u64, max_files: usize) -> bool {
    let (mut bytes, mut files) = (0, 0);
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => dirs.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
            files += 1;
            if bytes > max_bytes || files > max_files {
                return true;
            }
        }
    }
    false
}

/// Returns when a log was written last.
fn last_modified(log: &PathBuf) -> SystemTime {
    let metadata = fs::symlink_metadata(log);
    let time = metadata.and_then(|metadata| metadata.modified());
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

// The paths of logs and of the directories that belong to them.

/// Returns the directory of everything that toolq remembers for a user: `$XDG_STATE_HOME/toolq`. If the variable isn't set or, as
/// the XDG specification requires, isn't an absolute path, `~/.local/state` takes its place.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn state_dir(environment: &Environment) -> Result<PathBuf, LogError> {
    let absolute_dir = |name| {
        let path = environment.get_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state_dir = absolute_dir("XDG_STATE_HOME")
        .or_else(|| Some(absolute_dir("HOME")?.join(".local/state")))
        .ok_or(LogError::NoHome)?;
    Ok(state_dir.join("toolq"))
}

/// Returns the directory of logs for which the user named no file.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn sessions_dir(environment: &Environment) -> Result<PathBuf, LogError> {
    Ok(state_dir(environment)?.join("sessions"))
}

/// Generates the default path of a log: `TIME-ID.jsonl` in [`sessions_dir`]. The time is in UTC, so that names sort by time.
///
/// # Errors
/// [`LogError::NoHome`], or the system has no random numbers.
pub fn default_log_path(environment: &Environment, clock: &Clock) -> Result<PathBuf, LogError> {
    let dir = sessions_dir(environment)?;
    let time = format_name_timestamp(clock);
    let id = getrandom::u32()
        .map_err(io::Error::other)
        .map_err(LogError::io(&dir, "given a new log"))?;
    Ok(dir.join(format!("{time}-{id:08x}.jsonl")))
}

/// Returns whether `name` has the form of a default log name, such as `20251121T200000Z-0123abcd.jsonl`.
pub(crate) fn is_default_log_name(name: &[u8]) -> bool {
    has_form(name, b"00000000T000000Z-xxxxxxxx.jsonl")
}

/// Returns whether `name` fits `pattern`, in which `0` matches a digit and `x` a hexadecimal digit.
fn has_form(name: &[u8], pattern: &[u8]) -> bool {
    let fits = |(c, expected): (&u8, &u8)| match expected {
        b'0' => c.is_ascii_digit(),
        b'x' => matches!(c, b'0'..=b'9' | b'a'..=b'f'),
        _ => c == expected,
    };
    name.len() == pattern.len() && name.iter().zip(pattern).all(fits)
}

/// Formats the current time as `20251121T200000Z`.
fn format_name_timestamp(clock: &Clock) -> String {
    let ms = i64::try_from(clock.now_ms()).unwrap_or_default();
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

// Opens the file of a log: only a regular file, and for writing only by one toolq at a time.

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
        let metadata = file.metadata().map_err(LogError::io(path, "opened"))?;
        if !is_file_at(&metadata, path) {
            continue;
        }
        if metadata.len() == 0 {
            file.set_permissions(Permissions::from_mode(0o600))
                .map_err(LogError::io(path, "opened"))?;
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
            Err(TryLockError::Error(source)) => return Err(LogError::io(path, "opened")(source)),
        }
    }
}

/// Locks a log unless a run holds the lock. Returns whether it is locked and `path` still leads to it: before the lock,
/// another process may have removed it and begun a log of its own there.
pub(crate) fn try_lock_current(file: &File, path: &Path) -> Result<bool, LogError> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(source)) => return Err(LogError::io(path, "locked")(source)),
    }
    let metadata = file.metadata().map_err(LogError::io(path, "locked"))?;
    Ok(is_file_at(&metadata, path))
}

/// Opens an existing log for reading. Follows links, and accepts any regular file that the user may read.
pub(crate) fn open_to_read(path: &Path) -> Result<File, LogError> {
    let file = open_existing(path, OFlags::empty()).map_err(|errno| match errno {
        Errno::LOOP => LogError::io(path, "opened")(errno.into()),
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
    let metadata = file.metadata().map_err(LogError::io(path, "opened"))?;
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
    create_private_dir(dir).map_err(LogError::io(log, "created"))
}

fn error_from_errno(path: &Path, errno: Errno) -> LogError {
    match errno {
        Errno::LOOP => LogError::Symlink(path.to_owned()),
        Errno::NOENT => LogError::NotFound(path.to_owned()),
        Errno::ISDIR | Errno::NXIO => LogError::NotRegularFile(path.to_owned()),
        _ => LogError::io(path, "opened")(errno.into()),
    }
}

// The files of a session: its log, the blobs next to it, and the copies of its torn ends.

/// Returns the size of a session in bytes: of its log and of all files that toolq wrote next to it. `torn_copies` are the
/// files in its directory to which torn ends were copied. What can't be read counts as nothing.
pub fn session_bytes(log: &Path, torn_copies: &[PathBuf]) -> u64 {
    SessionFiles::find(log, torn_copies).map_or(0, |files| files.bytes())
}

/// The files of one session.
pub(crate) struct SessionFiles {
    blob_dir: Option<BlobDir>,
    /// The copies of torn ends, then the log, with their sizes.
    files: Vec<(PathBuf, u64)>,
}

impl SessionFiles {
    pub(crate) fn find(log: &Path, torn_copies: &[PathBuf]) -> io::Result<Self> {
        let blob_dir = blob_dir_for(log);
        let has_blob_dir = fs::symlink_metadata(&blob_dir).is_ok_and(|metadata| metadata.is_dir());
        let torn_copies = torn_copies.iter().filter(|copy| is_torn_copy_of(copy, log));
        let paths = torn_copies.map(PathBuf::as_path).chain([log]);
        let sized = |path: &Path| Ok((path.to_owned(), fs::symlink_metadata(path)?.len()));
        Ok(Self {
            blob_dir: has_blob_dir.then(|| BlobDir::read(&blob_dir)).transpose()?,
            files: paths.map(sized).collect::<io::Result<_>>()?,
        })
    }

    /// Whether something in its blob directory isn't toolq's, so that the session can't be removed.
    pub(crate) fn has_foreign_files(&self) -> bool {
        let blob_dir = self.blob_dir.as_ref();
        blob_dir.is_some_and(|blob_dir| blob_dir.has_foreign_files)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let blobs = self.blob_dir.as_ref().map_or(0, BlobDir::bytes);
        blobs + self.files.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Removes everything, or all but the log. The log goes last, so that an interrupted removal leaves one, which the next removal
    /// finds.
    pub(crate) fn remove(&self, keeps_log: bool) -> io::Result<()> {
        self.blob_dir.as_ref().map_or(Ok(()), BlobDir::remove)?;
        let count = self.files.len() - usize::from(keeps_log);
        let mut removed = self.files[..count].iter();
        removed.try_for_each(|(path, _)| fs::remove_file(path))
    }
}

/// A blob directory, with the files in it that toolq wrote.
pub(crate) struct BlobDir {
    path: PathBuf,
    files: Vec<(PathBuf, Metadata)>,
    /// Whether it contains anything that toolq doesn't create there.
    pub(crate) has_foreign_files: bool,
}

impl BlobDir {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut dir = Self {
            path: path.to_owned(),
            files: Vec::new(),
            has_foreign_files: false,
        };
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let has_our_name = entry.file_name().to_str().is_some_and(is_blob_file_name);
            if has_our_name && metadata.is_file() {
                dir.files.push((entry.path(), metadata));
            } else {
                dir.has_foreign_files = true;
            }
        }
        Ok(dir)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, metadata)| metadata.len()).sum()
    }

    /// Returns when the latest of its files was modified: milliseconds since 1970, or 0 if it has no files.
    pub(crate) fn last_modified_ms(&self) -> u64 {
        let times = self.files.iter().map(|(_, metadata)| modified_ms(metadata));
        times.max().unwrap_or_default()
    }

    /// Removes the files, then the directory, which fails if there are others.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, _)| fs::remove_file(path))?;
        fs::remove_dir(&self.path)
    }
}

/// Returns whether `name` is that of a blob, of a saved output or attachment, or of one of them while it is being written.
fn is_blob_file_name(name: &str) -> bool {
    let digest = match name.split_once('.') {
        Some((digest, extension)) if is_file_extension(extension) => digest,
        _ => name,
    };
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".part"));
    is_sha256_hex(digest) || unfinished.is_some_and(|suffix| suffix.len() == 6)
}

/// Returns when a file was last modified: milliseconds since 1970.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
    to_millis(changed.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns whether `torn` is a copy of a torn end of `log`: `LOG.torn-SEQ`.
fn is_torn_copy_of(torn: &Path, log: &Path) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or(OsStr::new(""))
            .as_encoded_bytes()
            .to_vec()
    };
    let (torn, log) = (name(torn), name(log));
    let suffix = torn.strip_prefix(log.as_slice());
    suffix.is_some_and(|suffix| suffix.starts_with(b".torn-"))
}

/// Returns whether `path` leads to this file.
pub(crate) fn is_file_at(file: &Metadata, path: &Path) -> bool {
    let current = fs::symlink_metadata(path);
    current.is_ok_and(|current| (current.dev(), current.ino()) == (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn the_default_path_follows_the_environment() {
        let clock = Clock::new(|| 1_763_755_200_000);
        let path = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            let environment = variables
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect();
            default_log_path(&environment, &clock).map(|path| path.to_string_lossy().into_owned())
        };
        let named = path(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]).unwrap();
        assert!(
            named.starts_with("/s/toolq/sessions/20251121T200000Z-"),
            "{named}"
        );
        let home = path(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")]).unwrap();
        assert!(
            home.starts_with("/h/.local/state/toolq/sessions/"),
            "{home}"
        );
        assert!(matches!(path(&[]), Err(LogError::NoHome)));
        let name = |path: &str| is_default_log_name(path.rsplit('/').next().unwrap().as_bytes());
        assert!(name(&named) && !name(&named[..named.len() - 1]) && !name("a.jsonl"));
    }
}

#[cfg(test)]
mod lock_tests {
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
