use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::model::{Clock, Environment};

use super::line::sha256;
use super::metadata::SessionStart;
use super::{LogError, Records};

/// Where a session log stands unless somebody says otherwise: `$XDG_STATE_HOME/toolq/sessions/TIME-ID.jsonl`, and
/// `~/.local/state` in the place of a variable that is not set or, as its specification has it, not absolute. The time
/// is UTC, so that names sort.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn default_path(environment: &Environment, clock: &Clock) -> Result<PathBuf, LogError> {
    let id = fastrand::u32(..);
    let name = format!("{}-{id:08x}.jsonl", time_of_name(clock));
    Ok(default_folder(environment)?.join(name))
}

fn default_folder(environment: &Environment) -> Result<PathBuf, LogError> {
    let folder = |name| {
        let path = environment.raw(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = folder("XDG_STATE_HOME")
        .or_else(|| Some(folder("HOME")?.join(".local/state")))
        .ok_or(LogError::NoHome)?;
    Ok(state.join("toolq/sessions"))
}

/// The latest session below the default folder.
///
/// # Errors
/// There is none, or [`LogError::NoHome`].
pub fn latest_session(environment: &Environment) -> Result<PathBuf, LogError> {
    let folder = default_folder(environment)?;
    let latest = sessions(&folder).pop();
    latest.ok_or(LogError::Missing(folder.join("*.jsonl")))
}

/// The latest session below the default folder that had this input.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn latest_of_input(
    environment: &Environment,
    input_sha256: &str,
) -> Result<Option<PathBuf>, LogError> {
    let logs = sessions(&default_folder(environment)?);
    let is_of_input = |path: &PathBuf| input_of(path).as_deref() == Some(input_sha256);
    Ok(logs.into_iter().rev().find(is_of_input))
}

/// The logs of a folder in the order of their names, which begin with the time.
fn sessions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut logs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    logs.sort();
    logs
}

/// The digest of the input of a log's first session.
fn input_of(log: &Path) -> Option<String> {
    let first = Records::open(log).ok()?.next()?.ok()?;
    let session: SessionStart = first.metadata().ok()?;
    session.input_sha256
}

/// The digest of several inputs: that of one is its own, that of many is of their digests one behind the other.
pub fn digest_of<'a>(inputs: impl Iterator<Item = &'a str>) -> String {
    let digests: Vec<&str> = inputs.collect();
    match digests.as_slice() {
        [one] => (*one).to_owned(),
        many => sha256(many.concat().as_bytes()),
    }
}

/// `20251121T200000Z`.
fn time_of_name(clock: &Clock) -> String {
    let ms = i64::try_from(clock.ms()).unwrap_or_default();
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The folder beside a log for what is too large for a record: `LOG.d`.
pub(super) fn folder_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn the_default_follows_the_environment() {
        let clock = Clock::new(|| 1_763_755_200_000);
        let path = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            let environment = variables
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect();
            default_path(&environment, &clock).map(|path| path.to_string_lossy().into_owned())
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
    }
}
