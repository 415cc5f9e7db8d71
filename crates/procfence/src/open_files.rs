//! The limit on open files. A host that runs many programs at once needs more descriptors than the usual soft limit
//! allows. Its programs get the soft limit that the host itself was started with, because some of them can't handle
//! descriptors of 1024 and above.

use std::ffi::CString;
use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The variable that tells a supervisor the soft limit of its programs.
const LIMIT_VARIABLE: &str = "PROCFENCE_OPEN_FILES";

/// The soft limit before it was raised.
static ORIGINAL_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises this process's soft limit on open files to the hard limit. Programs that are started under a
/// [`ReaperPools`](crate::ReaperPools) aren't affected.
///
/// # Errors
/// The system refuses it.
pub fn raise_open_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else {
        return Ok(());
    };
    if limit.maximum.is_some_and(|maximum| maximum <= current) {
        return Ok(());
    }
    set_soft_limit(limit.maximum)?;
    ORIGINAL_LIMIT.get_or_init(|| current);
    Ok(())
}

/// Returns the environment of a supervisor: the limit of its programs, if the host's own was raised.
pub(crate) fn supervisor_environment() -> io::Result<Vec<CString>> {
    match ORIGINAL_LIMIT.get() {
        Some(limit) => Ok(vec![CString::new(format!("{LIMIT_VARIABLE}={limit}"))?]),
        None => Ok(Vec::new()),
    }
}

/// Applies the limit that the host passed to this supervisor. Its reapers, and their programs, inherit it.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of a supervisor has no other variable"
)]
pub(crate) fn restore_limit() -> io::Result<()> {
    let limit = std::env::var(LIMIT_VARIABLE);
    match limit.ok().and_then(|limit| limit.parse().ok()) {
        Some(limit) => set_soft_limit(Some(limit)),
        None => Ok(()),
    }
}

fn set_soft_limit(current: Option<u64>) -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
