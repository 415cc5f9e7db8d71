//! Finds the logs in the default directory.

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use jiff::Timestamp;

use crate::error::LogError;
use toolq_core::os::{Clock, Environment};

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
    let list_error = |source| LogError::Io {
        path: dir.to_owned(),
        action: "listed",
        source,
    };
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
    let id = getrandom::u32().map_err(|error| LogError::Io {
        path: dir.clone(),
        action: "given a new log",
        source: io::Error::other(error),
    })?;
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

/// Returns the directory next to a log for content that is too large for a record: `LOG.d`.
pub fn blob_dir_for(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
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
