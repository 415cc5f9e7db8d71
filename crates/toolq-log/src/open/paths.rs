use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::error::LogError;
use toolq_core::os::{Clock, Environment};

/// The folder of session logs whose place nobody named: `$XDG_STATE_HOME/toolq/sessions`, and `~/.local/state` in the
/// place of a variable that is not set or, as its specification has it, not absolute.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn sessions_folder(environment: &Environment) -> Result<PathBuf, LogError> {
    let folder = |name| {
        let path = environment.raw(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let state = folder("XDG_STATE_HOME")
        .or_else(|| Some(folder("HOME")?.join(".local/state")))
        .ok_or(LogError::NoHome)?;
    Ok(state.join("toolq/sessions"))
}

/// Where a session log stands unless somebody says otherwise: `TIME-ID.jsonl` in [`sessions_folder`]. The time is UTC, so
/// that names sort.
///
/// # Errors
/// [`LogError::NoHome`].
pub fn default_path(environment: &Environment, clock: &Clock) -> Result<PathBuf, LogError> {
    let folder = sessions_folder(environment)?;
    let id = fastrand::u32(..);
    let name = format!("{}-{id:08x}.jsonl", time_of_name(clock));
    Ok(folder.join(name))
}

/// Whether a log of toolq's own choice has such a name: `20251121T200000Z-0123abcd.jsonl`.
pub(crate) fn is_default_name(name: &[u8]) -> bool {
    let form = b"00000000T000000Z-xxxxxxxx.jsonl";
    let fits = |(c, form): (&u8, &u8)| match form {
        b'0' => c.is_ascii_digit(),
        b'x' => matches!(c, b'0'..=b'9' | b'a'..=b'f'),
        _ => c == form,
    };
    name.len() == form.len() && name.iter().zip(form).all(fits)
}

/// `20251121T200000Z`.
fn time_of_name(clock: &Clock) -> String {
    let ms = i64::try_from(clock.ms()).unwrap_or_default();
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The folder beside a log for what is too large for a record: `LOG.d`.
pub(crate) fn folder_of(log: &Path) -> PathBuf {
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
        let name = |path: &str| is_default_name(path.rsplit('/').next().unwrap().as_bytes());
        assert!(name(&named) && !name(&named[..named.len() - 1]) && !name("a.jsonl"));
    }
}
