//! The paths of logs and of the directories that belong to them.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::error::LogError;
use toolq_core::os::{Clock, Environment};

/// Returns the directory of logs for which the user named no file: `$XDG_STATE_HOME/toolq/sessions`. If the variable
/// isn't set or, as the XDG specification requires, isn't an absolute path, `~/.local/state` takes its place.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn sessions_dir(environment: &Environment) -> Result<PathBuf, LogError> {
    let absolute_dir = |name| {
        let path = environment.get_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state_dir = absolute_dir("XDG_STATE_HOME")
        .or_else(|| Some(absolute_dir("HOME")?.join(".local/state")))
        .ok_or(LogError::NoHome)?;
    Ok(state_dir.join("toolq/sessions"))
}

/// Number of digits of the input's digest in the name of a log.
const NAMED_DIGEST_DIGITS: usize = 16;

/// Generates the default path of a log: `TIME-INPUT-ID.jsonl` in [`sessions_dir`], or `TIME-ID.jsonl` if the input isn't
/// known yet. The time is in UTC, so that names sort by time. INPUT is the beginning of the input's digest, so that the
/// sessions of an input are found without reading any log.
///
/// # Errors
/// [`LogError::NoHome`], or the system has no random numbers.
pub fn default_log_path(
    environment: &Environment,
    clock: &Clock,
    input_sha256: Option<&str>,
) -> Result<PathBuf, LogError> {
    let dir = sessions_dir(environment)?;
    let time = format_name_timestamp(clock);
    let id = getrandom::u32().map_err(|error| LogError::Io {
        path: dir.clone(),
        action: "given a new log",
        source: io::Error::other(error),
    })?;
    let name = match input_sha256.and_then(|digest| digest.get(..NAMED_DIGEST_DIGITS)) {
        Some(input) => format!("{time}-{input}-{id:08x}.jsonl"),
        None => format!("{time}-{id:08x}.jsonl"),
    };
    Ok(dir.join(name))
}

/// Generates the default path of the log of a run that applies a plan. It is made from what never changes about the
/// plan, so that applying it again finds the same log.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn plan_log_path(
    environment: &Environment,
    created_ms: i64,
    plan_id: &str,
) -> Result<PathBuf, LogError> {
    let created = u64::try_from(created_ms).unwrap_or_default();
    let time = format_name_timestamp(&Clock::new(move || created));
    let (input, id) = (plan_id.get(..16), plan_id.get(16..24));
    let (input, id) = (input.unwrap_or_default(), id.unwrap_or_default());
    Ok(sessions_dir(environment)?.join(format!("{time}-{input}-{id}.jsonl")))
}

/// Returns whether `name` has the form of a default log name, such as `20251121T200000Z-0123abcd.jsonl`, with or without
/// an input.
pub(crate) fn is_default_log_name(name: &[u8]) -> bool {
    has_form(name, b"00000000T000000Z-xxxxxxxxxxxxxxxx-xxxxxxxx.jsonl") || lacks_input(name)
}

/// Returns whether `name` is a default log name that doesn't say which input the session had.
pub(crate) fn lacks_input(name: &[u8]) -> bool {
    has_form(name, b"00000000T000000Z-xxxxxxxx.jsonl")
}

/// Returns whether `name` is the default name of a log whose input has this digest.
pub(crate) fn names_input(name: &[u8], input_sha256: &str) -> bool {
    let input = input_sha256.as_bytes().get(..NAMED_DIGEST_DIGITS);
    is_default_log_name(name) && !lacks_input(name) && name.get(17..33) == input
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
            default_log_path(&environment, &clock, None)
                .map(|path| path.to_string_lossy().into_owned())
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

    #[test]
    fn a_name_says_which_input_the_session_had() {
        let clock = Clock::new(|| 1_763_755_200_000);
        let environment = [(OsString::from("HOME"), OsString::from("/h"))];
        let environment = environment.into_iter().collect();
        let (input, other) = ("0123456789abcdef".repeat(4), "f".repeat(64));
        let path = default_log_path(&environment, &clock, Some(&input)).unwrap();
        let name = path.file_name().unwrap().as_encoded_bytes();
        assert!(name.starts_with(b"20251121T200000Z-0123456789abcdef-"));
        assert!(is_default_log_name(name) && !lacks_input(name));
        assert!(names_input(name, &input) && !names_input(name, &other));
        let unknown = default_log_path(&environment, &clock, None).unwrap();
        let unknown = unknown.file_name().unwrap().as_encoded_bytes();
        assert!(lacks_input(unknown) && !names_input(unknown, &input));
    }
}
