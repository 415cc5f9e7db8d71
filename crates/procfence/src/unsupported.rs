//! Stubs for systems without subreapers. There is no supervisor: the host starts programs itself.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Uninhabited on this system.
#[derive(Debug, Clone)]
pub enum ReaperPools {}

impl ReaperPools {
    /// Always returns `None`.
    pub fn new(_: &Path, _: &str) -> Option<Self> {
        None
    }

    /// Can't be called: the type is uninhabited.
    ///
    /// # Errors
    /// None.
    pub fn hold(&self, _: impl std::os::fd::AsFd) -> io::Result<()> {
        match *self {}
    }

    /// Can't be called: the type is uninhabited.
    pub fn close(&self) {
        match *self {}
    }
}

/// Always returns `None`: no supervisor is ever started.
pub fn supervise(_: &[OsString]) -> Option<ExitCode> {
    None
}

/// Always returns `true`: without subreapers, `/proc` makes no difference.
pub fn shows_own_pid_namespace() -> bool {
    true
}

/// Does nothing: other systems have no `/proc` to protect.
#[expect(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub fn make_non_dumpable() -> io::Result<()> {
    Ok(())
}

/// Does nothing: without a supervisor, the programs would inherit the raised limit.
#[expect(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub fn raise_open_file_limit() -> std::io::Result<()> {
    Ok(())
}
